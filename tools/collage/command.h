// command.h: what the sub-commands share: registration, arguments, tables, JSON.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collage/compile.h"
#include "collage/runtime/tensor.h"

namespace collage::cli {

using Json = nlohmann::ordered_json;

// Each adds its sub-command to `app`; the callback throws Error, or CLI::RuntimeError for an answer "no" (exit 1).
void AddCompileCommand(CLI::App& app);
void AddTuneCommand(CLI::App& app);
void AddRunCommand(CLI::App& app);
void AddBenchmarkCommand(CLI::App& app);
void AddTargetsCommand(CLI::App& app);
void AddInfoCommand(CLI::App& app);
void AddImportCommand(CLI::App& app);
void AddExportCommand(CLI::App& app);
void AddOptCommand(CLI::App& app);
void AddParseCommand(CLI::App& app);
void AddDataflowCommand(CLI::App& app);
void AddSubGraphCommand(CLI::App& app);
void AddCandidatesCommand(CLI::App& app);
void AddRewriteCommand(CLI::App& app);
void AddPartitionCommand(CLI::App& app);
void AddDatabaseCommand(CLI::App& app);
void AddWorkerCommand(CLI::App& app);

/// "x=1x3x640x640" → {"x", {1, 3, 640, 640}}; throws kInput.
std::pair<std::string, Shape> ParseShapeArgument(const std::string& text);
std::map<std::string, Shape> ParseShapeArguments(const std::vector<std::string>& texts);

/// Splits at commas, dropping empty parts.
std::vector<std::string> SplitCommas(const std::string& text);

/// "90s", "10m", "1h", "90d" or a number of seconds; throws kInput.
double ParseDuration(const std::string& text);
/// What the search for schedules did, for people; empty when there was none.
std::string TuningText(const TuningReport& tuning);
Json TuningJson(const TuningReport& tuning);

/// "8.71 ms", "412 us": three significant digits with the unit that fits.
std::string FormatSeconds(double seconds);
/// "437 MB".
std::string FormatBytes(double bytes);

/// Columns aligned by their widest cell; numbers right, the first column left.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string ToText() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// Prints a JSON report to standard output.
void PrintJson(const Json& json);

}  // namespace collage::cli
