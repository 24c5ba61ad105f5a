// command.h: what the sub-commands share: registration, arguments, reports.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "collage/runtime/tensor.h"
#include "report/fact.h"
#include "report/text.h"

namespace collage::cli {

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

/// Prints a report to standard output, as text or as JSON.
void PrintReport(const Fact& report, bool as_json, const TextOptions& options = {});

}  // namespace collage::cli
