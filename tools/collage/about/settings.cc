// settings.cc: `collage settings`: the table of settings.
#include "collage/settings.h"

#include <fmt/format.h>

#include "command.h"
#include "report/json.h"

namespace collage::cli {
namespace {

void Run(bool as_json) {
  if (as_json) return PrintReport(Fact::Report(1, {FactOfJson("rows", "", SettingsTableJson())}), /*as_json=*/true);
  std::string group;
  for (const Setting& setting : Settings()) {
    if (setting.group != group) fmt::print("{}{}:\n", group.empty() ? "" : "\n", setting.group);
    group = setting.group;
    fmt::print("  {} {}   Python: {}=   default: {}\n      {}\n", setting.flag, setting.type.placeholder, setting.name,
               DefaultText(setting), setting.doc);
  }
}

}  // namespace

void AddSettingsCommand(CLI::App& app) {
  auto as_json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("settings", "List the settings of compilations: flag, Python name, default");
  command->add_flag("--json", *as_json, "Print as JSON");
  command->footer(
      "Examples:\n"
      "  collage settings\n"
      "  collage settings --json");
  command->callback([as_json] { Run(*as_json); });
}

}  // namespace collage::cli
