// database.cc: `collage db`: shows, moves and tidies the tuning database.
#include <fmt/format.h>

#include <fstream>
#include <iostream>
#include <sstream>

#include "collage/compile.h"
#include "collage/support/error.h"
#include "command.h"
#include "compile_options.h"
#include "cost/database/tuning_database.h"
#include "cost/database/tuning_json.h"
#include "driver/garbage_rule.h"
#include "report/json.h"
#include "support/file.h"

namespace collage::cli {
namespace {

constexpr int kSchema = 2;

struct Arguments {
  SettingTexts settings;
  bool json = false;
  std::vector<std::string> files;
  bool other_versions = false;
  bool failures = false;
  std::string older_than;
};

/// The database that --database names, or the default.
std::string PlaceOf(const Arguments& arguments) {
  const std::string place = OptionsFrom(arguments.settings).database;
  return place.empty() ? TuningDatabase::DefaultPlace() : place;
}

/// Passes a database on, with what opening it had to say.
TuningDatabase Opened(TuningDatabase database) {
  for (const std::string& notice : database.notices()) fmt::print(stderr, "collage: warning: {}\n", notice);
  return database;
}

Fact CompilationRow(const CompilationRecord& one) {
  const auto share = [&](std::optional<double> seconds) {
    return seconds ? std::optional(*seconds / one.seconds) : std::nullopt;
  };
  return Fact::Record(
             "", "",
             {Fact::Text("model", "compilation", one.model), Fact::Text("machine", "machine", one.machine).Detail(),
              Fact::Count("threads", "threads", one.num_threads),
              Fact::Text("versions", "versions", one.versions).Detail(), Fact::Text("winner", "winner", one.winner),
              Fact::Seconds("p50_seconds", "p50", one.seconds),
              Fact::Number("additive_error_seconds", "additive error", one.additive_error, Unit::kDifference).Detail(),
              Fact::Number("additive_error_share", "additive error", share(one.additive_error), Unit::kMoreShare),
              FactOfJson("apparent_loss_seconds", "apparent loss", one.apparent_loss).Detail(),
              Fact::Number("optimality_loss_seconds", "optimality loss", one.optimality_loss, Unit::kDifference)
                  .Detail(),
              Fact::Number("optimality_loss_share", "optimality loss", share(one.optimality_loss), Unit::kMoreShare),
              Fact::Text("compiled_at", "compiled at", one.compiled_at)})
      .Says(one.optimality_loss ? "{optimality_loss_share}" : "unknown");
}

void ShowStats(const Arguments& arguments) {
  TuningDatabase database = TuningDatabase::ForReading(PlaceOf(arguments));
  const TuningStats stats = database.Stats();
  const std::vector<CompilationRecord> compilations = database.Compilations();
  std::vector<Fact> toolchains;
  for (const auto& [name, count] : stats.by_toolchain) {
    toolchains.push_back(
        Fact::Record("", "", {Fact::Text("name", "toolchain", name), Fact::Count("records", "records", count)}));
  }
  PrintReport(
      Fact::Report(
          kSchema,
          {Fact::Line(
               "", {Fact::Text("path", "database", database.place()), Fact::Count("records", "records", stats.records),
                    Fact::Count("failures", "of failures", stats.failures), Fact::Bytes("bytes", "size", stats.bytes)})
               .Says("{path}  {records} records, {failures} of failures, {bytes}"),
           Fact::Counts("by_toolchain", "by toolchain", {stats.by_toolchain.begin(), stats.by_toolchain.end()})
               .Detail(),
           Fact::Counts("by_kind", "by kind", {stats.by_kind.begin(), stats.by_kind.end()}).Detail(),
           Fact::Table("", "", std::move(toolchains)).Columns({{"toolchain", "{name}"}, {"records", "{records}"}}),
           TableOf("compilations", "compilations", compilations, CompilationRow)
               .Columns({{"compilation", "{model}"},
                         {"threads", "{threads}"},
                         {"winner", "{winner}"},
                         {"p50", "{p50_seconds}"},
                         {"additive error", "{additive_error_share}"},
                         {"optimality loss", "{}{?optimality_loss_share}"},
                         {"compiled at", "{compiled_at}"}})}),
      arguments.json);
}

void Export(const Arguments& arguments) {
  TuningDatabase database = TuningDatabase::ForReading(PlaceOf(arguments));
  if (arguments.files[0] == "-") {
    ExportRecords(database, std::cout);
    return;
  }
  std::ostringstream text;
  const int64_t count = ExportRecords(database, text);
  WriteWhole(arguments.files[0], text.view());
  fmt::print("wrote {}  {} records\n", arguments.files[0], count);
}

void PrintCounts(const std::string& source, const ImportCounts& counts) {
  fmt::print("{}  {} records, {} of them new or newer\n", source, counts.read, counts.taken);
  for (const auto& [reason, count] : counts.dropped) {
    fmt::print(stderr, "collage: warning: {}: not imported: {} x {}\n", source, count, reason);
  }
}

void Import(const Arguments& arguments) {
  TuningDatabase database = Opened(TuningDatabase(PlaceOf(arguments)));
  for (const std::string& name : arguments.files) {
    if (name == "-") {
      PrintCounts("standard input", ImportRecords(database, std::cin, "standard input"));
      continue;
    }
    std::istringstream text(ReadFile(name));
    PrintCounts(name, ImportRecords(database, text, name));
  }
}

void Merge(const Arguments& arguments) {
  TuningDatabase database = Opened(TuningDatabase(PlaceOf(arguments)));
  for (const std::string& place : arguments.files) {
    TuningDatabase other = TuningDatabase::ForReading(place);
    PrintCounts(other.place(), MergeRecords(database, other));
  }
}

std::optional<double> OlderThan(const std::string& text) {
  if (text.empty()) return std::nullopt;
  try {
    return ParseDuration(text);
  } catch (const Error& error) {
    throw Error(error.category(), error.message(), "--older-than", error.hint());
  }
}

void Collect(const Arguments& arguments) {
  const std::optional<double> older_than = OlderThan(arguments.older_than);
  if (!arguments.other_versions && !older_than && !arguments.failures) {
    throw Error(ErrorCategory::kInput, "nothing says what to remove", "db gc",
                "give --other-versions, --older-than or --failures");
  }
  const GarbageRule rule = GarbageRuleFor(arguments.other_versions, older_than, arguments.failures);
  TuningDatabase database = Opened(TuningDatabase::OpenExisting(PlaceOf(arguments)));
  fmt::print("{}  {} records removed\n", database.place(), database.Collect(rule));
}

void Verify(const Arguments& arguments) {
  const std::string place = PlaceOf(arguments);
  const StoreCheck check = TuningDatabase::Check(place);
  for (const std::string& problem : check.problems) fmt::print("{}\n", problem);
  fmt::print("{}  {} records, {} problems\n", WithoutPassword(place), check.records, check.problems.size());
  if (!check.problems.empty()) throw CLI::RuntimeError(1);
}

using Action = void (*)(const Arguments&);

/// Adds `db NAME`, with the files or stores that `positional` describes.
CLI::App* AddAction(CLI::App& command, const std::shared_ptr<Arguments>& arguments, const char* name,
                    const char* summary, const std::string& example, Action action, const char* positional = nullptr) {
  CLI::App* sub = command.add_subcommand(name, summary);
  sub->fallthrough();
  if (positional != nullptr) sub->add_option(positional, arguments->files)->required();
  sub->footer(fmt::format("Examples:\n  collage db {}{}", name, example));
  sub->callback([arguments, action] { action(*arguments); });
  return sub;
}

}  // namespace

void AddDatabaseCommand(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("db", "Show, export, import and clean up the tuning database");
  AddSetting(*command, "database", arguments->settings);
  command->add_flag("--json", arguments->json, "Print as JSON");
  command->require_subcommand(0, 1);
  command->footer(
      "Examples:\n"
      "  collage db                       how many records there are\n"
      "  collage db export costs.jsonl    for another machine of this kind");
  command->callback([command, arguments] {
    if (command->get_subcommands().empty()) ShowStats(*arguments);
  });
  AddAction(*command, arguments, "stats",
            "Count records by toolchain; compare estimates with times of past compilations (default)", "", ShowStats);
  AddAction(*command, arguments, "export", "Write all records to a file, one line of JSON each; - is standard output",
            " costs.jsonl", Export, "FILE")
      ->get_option("FILE")
      ->expected(1);
  AddAction(*command, arguments, "import", "Read exported files; add records that are new or newer", " costs.jsonl",
            Import, "FILE");
  AddAction(*command, arguments, "merge", "Add records of other databases that are new or newer", " other.db", Merge,
            "DATABASE");
  AddAction(*command, arguments, "verify", "Check the store and every record; exit code 1 when something is wrong", "",
            Verify);
  CLI::App* gc = AddAction(*command, arguments, "gc", "Remove records that are no longer needed",
                           " --failures --older-than 90d", Collect);
  gc->add_flag("--other-versions", arguments->other_versions,
               "Remove this machine's records of toolchain versions that are no longer installed");
  gc->add_option("--older-than", arguments->older_than, "Remove records older than this, such as 90d");
  gc->add_flag("--failures", arguments->failures, "Remove records of failures, so that they are tried again");
}

}  // namespace collage::cli
