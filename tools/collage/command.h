// command.h: what the sub-commands share: registration, arguments, reports.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "report/fact.h"
#include "report/text.h"
#include "support/argument_text.h"

namespace collage::cli {

// Each adds its sub-command to `app`; the callback throws Error, or CLI::RuntimeError for an answer "no" (exit 1).
void AddCompileCommand(CLI::App& app);
void AddSettingsCommand(CLI::App& app);
void AddTuneCommand(CLI::App& app);
void AddPackCommand(CLI::App& app);
void AddMeasureCommand(CLI::App& app);
void AddRunCommand(CLI::App& app);
void AddBenchmarkCommand(CLI::App& app);
void AddProfileCommand(CLI::App& app);
void AddSignCommand(CLI::App& app);
void AddTargetsCommand(CLI::App& app);
void AddInfoCommand(CLI::App& app);
void AddExplainCommand(CLI::App& app);
void AddReportCommand(CLI::App& app);
void AddImportCommand(CLI::App& app);
void AddExportCommand(CLI::App& app);
void AddOptCommand(CLI::App& app);
void AddParseCommand(CLI::App& app);
void AddDataflowCommand(CLI::App& app);
void AddSubGraphCommand(CLI::App& app);
void AddCandidatesCommand(CLI::App& app);
void AddRewriteCommand(CLI::App& app);
void AddPartitionCommand(CLI::App& app);
void AddBundleCommand(CLI::App& app);
void AddDatabaseCommand(CLI::App& app);
void AddWorkerCommand(CLI::App& app);
void AddDoctorCommand(CLI::App& app);
void AddCompletionCommand(CLI::App& app);
void AddVersionCommand(CLI::App& app);
void AddHelpCommand(CLI::App& app);

/// Adds --require-signature to a command that loads executables: it loads only those that are signed.
CLI::Option* AddRequiredSignature(CLI::App& command);

/// Prints what `collage --version` does.
void PrintVersion();

/// Prints a report to standard output, as text or as JSON.
void PrintReport(const Fact& report, bool as_json, const TextOptions& options = {});

}  // namespace collage::cli
