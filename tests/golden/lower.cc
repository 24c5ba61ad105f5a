// lower.cc: prints the MLIR that native code generation makes of a module's @main, for any processor, or why it
// declines: the command `lower` of golden tests.
//
//     test_lower FILE [-OPTION=VALUE …] [--threads=N] [--channels-last] [--constant=DTYPE [SIZES] …]
//
// Options with one dash are the native toolchain's, as a target's text has them. The i-th --constant is the i-th
// meta[relay.Constant], of random values.
#include <fmt/format.h>

#include <string>

#include "backends/builtin_toolchains.h"
#include "collage/ir/infer_type.h"
#include "collage/ir/text.h"
#include "collage/support/error.h"
#include "golden/random_constant.h"
#include "support/file.h"
#include "target/toolchain_configuration.h"

namespace collage {
namespace {

struct Request {
  std::string file;
  std::string target = "llvm";
  int num_threads = 1;
  Layout layout = Layout::kPlain;  ///< of every input and output
  ParseOptions parsing;
};

/// What `word` has behind `prefix`, or nothing.
std::optional<std::string> Behind(const std::string& word, const std::string& prefix) {
  if (!word.starts_with(prefix)) return std::nullopt;
  return word.substr(prefix.size());
}

Request ReadRequest(int argc, char** argv) {
  Request request;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (const auto threads = Behind(word, "--threads=")) {
      request.num_threads = std::stoi(*threads);
    } else if (const auto constant = Behind(word, "--constant=")) {
      request.parsing.constants.push_back(golden::RandomConstant(*constant, 100 + request.parsing.constants.size()));
    } else if (word == "--channels-last") {
      request.layout = Layout::kChannelsLast;
    } else if (word.starts_with("-")) {
      request.target += " " + word;
    } else {
      request.file = word;
    }
  }
  return request;
}

void Print(const Request& request) {
  AddBuiltinToolchains(ToolchainRegistry::Global());
  const ToolchainConfiguration configuration =
      ToolchainConfiguration::Of(Target::Parse(request.target), ToolchainRegistry::Global());
  const std::unique_ptr<const Toolchain> made = configuration.Make();
  const Toolchain& native = made == nullptr ? configuration.registered() : *made;
  const IRModule module = ParseModule(ReadFile(request.file), request.file, request.parsing);
  const Function function = module.main();
  const size_t num_outputs = FlattenTensorTypes(function->body()->checked_type()).size();
  BoundaryLayouts layouts = PlainLayouts(function->params().size(), num_outputs);
  for (std::vector<Layout>* side : {&layouts.inputs, &layouts.outputs}) {
    std::fill(side->begin(), side->end(), request.layout);
  }
  const Result<LoweredPartition> lowered = native.RelayToTIR({function, layouts, request.num_threads});
  fmt::print("{}\n", lowered.ok() ? lowered->mlir : "declined: " + lowered.reason().text);
}

}  // namespace
}  // namespace collage

int main(int argc, char** argv) {
  try {
    collage::Print(collage::ReadRequest(argc, argv));
    return 0;
  } catch (const collage::Error& error) {
    fmt::print(stderr, "{}\n", error.Format());
    return collage::ExitCode(error.category());
  }
}
