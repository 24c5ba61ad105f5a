// database.cc: `collage db`: what the tuning database holds.
#include <fmt/format.h>

#include "command.h"
#include "cost/tuning_database.h"

namespace collage::cli {
namespace {

void Run(const std::string& path, bool json) {
  TuningDatabase database(path.empty() ? TuningDatabase::DefaultPath() : std::filesystem::path(path));
  const TuningStats stats = database.Stats();
  if (json) {
    PrintJson({{"schema", 1}, {"path", database.path().string()}, {"records", stats.records},
               {"failures", stats.failures}, {"bytes", stats.bytes}, {"by_toolchain", stats.by_toolchain}});
    return;
  }
  for (const std::string& notice : database.notices()) fmt::print(stderr, "collage: warning: {}\n", notice);
  fmt::print("{}  {} records, {} of failures, {}\n", database.path().string(), stats.records, stats.failures,
             FormatBytes(static_cast<double>(stats.bytes)));
  Table table({"toolchain", "records"});
  for (const auto& [name, count] : stats.by_toolchain) table.Add({name, std::to_string(count)});
  fmt::print("{}", table.ToText());
}

}  // namespace

void AddDatabaseCommand(CLI::App& app) {
  auto path = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("db", "Show what the tuning database holds");
  command->add_option("--database", *path, "Tuning database (default: $COLLAGE_DATABASE or ~/.cache/collage/tuning.db)");
  command->add_flag("--json", *json, "Print as JSON");
  command->callback([path, json] { Run(*path, *json); });
}

}  // namespace collage::cli
