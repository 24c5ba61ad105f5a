// sign.cc: `collage sign`, and the option by which other commands want its signatures.
#include "command.h"
#include "runtime/plan/signature.h"

namespace collage::cli {
namespace {

struct Arguments {
  std::string executable;
  std::string key;
  bool json = false;
};

void Run(const Arguments& arguments) {
  const std::filesystem::path place = SignFile(arguments.executable, arguments.key);
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(arguments.executable));
  PrintReport(Fact::Report(1, {Fact::Line("", {Fact::Text("signature", "signature", place.string()),
                                               Fact::Text("executable", "executable", arguments.executable),
                                               Fact::Bytes("bytes", "bytes", bytes)})
                                   .Says("{signature}: the signature of {executable}, {bytes}")}),
              arguments.json);
}

}  // namespace

CLI::Option* AddRequiredSignature(CLI::App& command) {
  return command.add_option_function<std::string>(
      "--require-signature", [](const std::string& key) { RequireSignatures(key); },
      "Load only what the owner of this public key has signed (`collage sign`): a file in PEM format");
}

void AddSignCommand(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("sign", "Sign an executable, for those who run only what is signed");
  command->add_option("executable", arguments->executable, "Executable (.clg); its signature goes beside it (.clg.sig)")
      ->required();
  command->add_option("--key", arguments->key, "Private key for Ed25519, a file in PEM format")->required();
  command->add_flag("--json", arguments->json, "Print as JSON");
  command->footer(
      "Examples:\n"
      "  openssl genpkey -algorithm ed25519 -out private.pem\n"
      "  openssl pkey -in private.pem -pubout -out public.pem\n"
      "  collage sign model.clg --key private.pem\n"
      "  collage run model.clg --random --require-signature public.pem");
  command->callback([arguments] { Run(*arguments); });
}

}  // namespace collage::cli
