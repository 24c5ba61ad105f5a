// report.cc: `collage report`: what an executable is and why, as one HTML file.
#include <fmt/format.h>

#include <memory>
#include <string>

#include "command.h"
#include "report/html/html_report.h"
#include "support/file.h"

namespace collage::cli {
namespace {

struct Arguments {
  std::string executable;
  std::string output;
  std::string profile;
  std::string compare;
  bool json = false;
};

void Run(const Arguments& arguments) {
  HtmlReportSources sources;
  sources.explanation = ReadFile(arguments.executable);
  if (!arguments.compare.empty()) sources.diff = ReadFile(arguments.compare);
  if (!arguments.profile.empty()) sources.profile = ReadFile(arguments.profile);
  const std::string page = RenderHtmlReport(sources);
  WriteWhole(arguments.output, page);
  const Fact report = Fact::Report(1, {Fact::Text("output", "output", arguments.output),
                                       Fact::Bytes("bytes", "size", static_cast<int64_t>(page.size()))})
                          .Says("wrote {output}: {bytes}");
  PrintReport(report, arguments.json);
}

}  // namespace

void AddReportCommand(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "report", "Write one HTML file that shows what an executable is made of, why, and how fast each part is");
  command->add_option("executable", arguments->executable, "The executable, or its explanation as JSON")->required();
  command->add_option("-o,--output", arguments->output, "HTML file to write")->required();
  command->add_option("--profile", arguments->profile,
                      "Also show times of real runs: JSON of `collage profile --json`");
  command->add_option("--compare", arguments->compare, "Also compare with this executable of the same model");
  command->add_flag("--json", arguments->json, "Print the report as JSON");
  command->callback([arguments] { Run(*arguments); });
}

}  // namespace collage::cli
