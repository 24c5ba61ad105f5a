// doctor.cc: `collage doctor`: whether this machine is fit for measurements, and what Collage has on it.
#include <fmt/format.h>

#include <algorithm>

#include "collage/compile.h"
#include "command.h"
#include "compile_options.h"
#include "cost/database/tuning_database.h"
#include "doctor/installation.h"
#include "doctor/machine.h"

namespace collage::cli {
namespace {

struct Arguments {
  SettingTexts settings;
  bool json = false;
};

std::string StateText(Finding::State state) {
  switch (state) {
    case Finding::State::kFine: return "fine";
    case Finding::State::kNote: return "note";
    case Finding::State::kProblem: return "problem";
  }
  return "problem";
}

Fact FindingRow(const Finding& finding) {
  return Fact::Record(
             "", "",
             {Fact::Text("state", "state", StateText(finding.state)), Fact::Text("subject", "subject", finding.subject),
              Fact::Text("text", "found", finding.text), Fact::Text("advice", "advice", finding.advice)})
      .Says(Literal(fmt::format("{:<9}{:<17}", StateText(finding.state), finding.subject)) +
            "{text}[. Advice: {advice}]{?state}{?subject}");
}

void Run(const Arguments& arguments) {
  const CompileOptions options = OptionsFrom(arguments.settings);
  std::vector<Finding> findings = ExamineMachine();
  findings.push_back(ExamineSteadiness());
  std::ranges::move(ExamineInstallation(options.database.empty() ? TuningDatabase::DefaultPlace() : options.database),
                    std::back_inserter(findings));
  const auto problems = std::ranges::count(findings, Finding::State::kProblem, &Finding::state);
  PrintReport(Fact::Report(1, {Fact::Line("", {Fact::Count("problems", "problems", problems)})
                                   .Says(problems == 0 ? "Nothing here would spoil a measurement.{?problems}"
                                                       : "{problems} problem{s:problems}."),
                               TableOf("findings", "", findings, FindingRow)}),
              arguments.json);
  if (problems > 0) throw CLI::RuntimeError(1);
}

}  // namespace

void AddDoctorCommand(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "doctor", "Check whether this machine is fit for measurements, and which parts of Collage are missing");
  AddSetting(*command, "database", arguments->settings);
  command->add_flag("--json", arguments->json, "Print as JSON");
  command->footer(
      "Examples:\n"
      "  collage doctor           exit code 1 if there is a problem\n"
      "  collage doctor --json");
  command->callback([arguments] { Run(*arguments); });
}

}  // namespace collage::cli
