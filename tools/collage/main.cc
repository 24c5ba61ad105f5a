// main.cc: the `collage` command: sub-commands, errors, exit codes.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "collage/support/error.h"
#include "command.h"
#include "command_line.h"
#include "support/environment.h"
#include "support/interruption.h"

namespace {

constexpr const char* kFooter = R"(Examples:
  collage compile model.onnx -o model.clg                   the fastest mix of all available toolchains
  collage run model.clg --random
  collage benchmark model.clg --model model.onnx            beside every toolchain alone, run in turns
  collage explain model.clg                                 why it is made so, and how good it can get
  collage help compile                                      all of a command's options, and examples

Exit codes: 0 success · 1 ran, but the answer is no (a comparison failed) · 2 wrong input · 3 unsupported
            4 not available here · 5 damaged file · 6 disk, memory or permission · 70 internal error of Collage)";

/// The environment variables that Collage reads, a line each.
std::string EnvironmentHelp() {
  std::string text = "\n\nEnvironment:";
  for (const collage::EnvironmentVariable& variable : collage::EnvironmentVariables()) {
    text += fmt::format("\n  {:<22}{} (default: {})", variable.name, variable.meaning, variable.when_unset);
  }
  return text;
}

/// `code`, unless what was printed could not be written: its reader must not take a part for all.
int Finish(int code) {
  std::cout.flush();
  const bool is_written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && !std::cout.fail();
  if (is_written || code > 1) return code;
  return collage::cli::PrintError({collage::ErrorCategory::kResource, "cannot write all to standard output"}, false);
}

/// The commands by groups, in the order of the help text.
void AddCommands(CLI::App& app) {
  namespace cli = collage::cli;
  const std::pair<const char*, std::vector<void (*)(CLI::App&)>> groups[] = {
      {"Compile and run", {cli::AddCompileCommand, cli::AddRunCommand, cli::AddBenchmarkCommand, cli::AddSignCommand}},
      {"See what was chosen, and why",
       {cli::AddExplainCommand, cli::AddReportCommand, cli::AddProfileCommand, cli::AddInfoCommand,
        cli::AddExportCommand}},
      {"Measure ahead, and on other machines",
       {cli::AddTuneCommand, cli::AddDatabaseCommand, cli::AddPackCommand, cli::AddMeasureCommand,
        cli::AddBundleCommand}},
      {"Know this machine and this command",
       {cli::AddTargetsCommand, cli::AddDoctorCommand, cli::AddSettingsCommand, cli::AddCompletionCommand,
        cli::AddVersionCommand, cli::AddHelpCommand}},
      {"For authors of toolchains, rules and passes",
       {cli::AddImportCommand, cli::AddParseCommand, cli::AddOptCommand, cli::AddDataflowCommand,
        cli::AddSubGraphCommand, cli::AddCandidatesCommand, cli::AddRewriteCommand, cli::AddPartitionCommand,
        cli::AddWorkerCommand}},
  };
  for (const auto& [group, commands] : groups) {
    for (const auto& add : commands) {
      add(app);
      app.get_subcommands({}).back()->group(group);
    }
  }
}

/// Whether errors are wanted as JSON, even if the command line cannot be understood.
bool WantsJson(int argc, char** argv) {
  return std::any_of(argv + 1, argv + argc, [](const char* word) { return std::string_view(word) == "--json"; });
}

/// Runs the command that the line names. Returns the exit code; throws collage::Error.
int RunLine(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& error) {
    return app.exit(error);
  } catch (const CLI::CallForAllHelp& error) {
    return app.exit(error);
  } catch (const CLI::RuntimeError& error) {
    return error.get_exit_code();
  } catch (const CLI::ParseError& error) {
    throw collage::cli::UsageErrorOf(app, error);
  }
  if (!app.get_subcommands().empty()) return 0;
  if (app.count("--version") > 0) return collage::cli::PrintVersion(), 0;
  throw collage::Error(collage::ErrorCategory::kInput, "no command is given", "",
                       "`collage --help` lists the commands");
}

/// Reads the command line and does what it says; returns the exit code.
int Run(int argc, char** argv) {
  CLI::App app(
      "Compiles a trained model into one file that runs it at the lowest latency measured on this machine:\n"
      "measures which sub-graphs run fastest on which toolchain, and covers the model with the best mix.");
  app.name("collage");
  app.require_subcommand(0, 1);
  bool wants_version = false;
  app.add_flag("--version", wants_version,
               "Print the versions of Collage, its toolchains and formats, and the machine");
  app.set_help_all_flag("--help-all", "Print help on all commands");
  AddCommands(app);
  app.footer(kFooter + EnvironmentHelp());  // after the commands, which take over the footer that they find
  return Finish(RunLine(app, argc, argv));
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file that grows beyond its limit is an error of that write, not the end
  collage::CleanUpWhenInterrupted();
  const bool as_json = WantsJson(argc, argv);
  try {
    return Run(argc, argv);
  } catch (const collage::Error& error) {
    return collage::cli::PrintError(error, as_json);
  } catch (const std::bad_alloc&) {
    return collage::cli::PrintError({collage::ErrorCategory::kResource, "out of memory"}, as_json);
  } catch (const std::system_error& error) {  // of fmt::print, when it cannot write
    return collage::cli::PrintError({collage::ErrorCategory::kResource, error.what()}, false);
  } catch (const std::exception& error) {
    return collage::cli::PrintError({collage::ErrorCategory::kInternal, error.what()}, as_json);
  }
}
