// report.cc: `collage report`: what an executable is made of and why, as one HTML file.
#include <memory>
#include <optional>
#include <string>

#include "command.h"
#include "explain/explanation_file.h"
#include "explain/html_page.h"
#include "support/file.h"

namespace collage::cli {
namespace {

struct Arguments {
  std::string executable;
  std::string output;
  std::string profile;
  std::string other;
  bool json = false;
};

void Run(const Arguments& arguments) {
  CheckCanWrite(arguments.output);
  const Explanation explanation = ReadExplanation(arguments.executable);
  HtmlPageOptions options{
      .name = arguments.executable, .other_name = arguments.other, .profile_name = arguments.profile};
  std::optional<Explanation> other;
  if (!arguments.other.empty()) options.other = &other.emplace(ReadExplanation(arguments.other));
  if (!arguments.profile.empty()) options.profile = ReadFile(arguments.profile);
  const std::string page = HtmlPageOf(explanation, options);
  WriteWhole(arguments.output, page);
  PrintReport(Fact::Report(1, {Fact::Text("output", "output", arguments.output),
                               Fact::Bytes("bytes", "size", static_cast<int64_t>(page.size()))})
                  .Says("wrote {output}: {bytes}"),
              arguments.json);
}

}  // namespace

void AddReportCommand(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "report", "Write one HTML file that shows what an executable is made of, why, and how fast each part is");
  command->add_option("executable", arguments->executable, "Executable, or explanation as JSON")->required();
  command->add_option("-o,--output", arguments->output, "HTML file to write")->required();
  command->add_option("--profile", arguments->profile,
                      "Also show real runs: the file that `collage profile --json` printed on this executable");
  command->add_option("--compare", arguments->other, "Also compare with this executable of the same model");
  command->add_flag("--json", arguments->json, "Print what was written as JSON");
  command->footer(
      "Examples:\n"
      "  collage report model.clg -o model.html\n"
      "  collage report model.clg -o model.html --compare other.clg   what the other computes otherwise");
  command->callback([arguments] { Run(*arguments); });
}

}  // namespace collage::cli
