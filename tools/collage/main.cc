// main.cc: the `collage` command: sub-commands, errors, exit codes.
#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <system_error>

#include "collage/support/error.h"
#include "command.h"
#include "support/environment.h"
#include "support/interruption.h"

namespace {

constexpr const char* kFooter = R"(Examples:
  collage compile model.onnx -o model.clg                   the fastest mix of all available toolchains
  collage compile detector.onnx -o d.clg --shape x=1x3x640x640 --threads 1 --budget 10m
  collage run model.clg --inputs in.npz --outputs out.npz
  collage benchmark model.clg --model model.onnx            beside every toolchain alone, run in turns
  collage profile model.clg                                 the time of every partition, and the machine's limits
  collage explain model.clg                                 why it is made so, and how good it can get
  collage targets                                           which toolchains are available, and why not

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

int Fail(const collage::Error& error) {
  // A place comes first, as editors and other tools expect it.
  std::fprintf(stderr, "%s%s\n", error.where().empty() ? "collage: " : "", error.Format().c_str());
  return collage::ExitCode(error.category());
}

/// `code`, unless what was printed could not be written: its reader must not take a part for all.
int Finish(int code) {
  std::cout.flush();
  const bool is_written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && !std::cout.fail();
  if (is_written || code > 1) return code;
  return Fail({collage::ErrorCategory::kResource, "cannot write all to standard output"});
}

/// The sub-commands, in the order of the help text.
void AddCommands(CLI::App& app) {
  collage::cli::AddCompileCommand(app);
  collage::cli::AddTuneCommand(app);
  collage::cli::AddPackCommand(app);
  collage::cli::AddMeasureCommand(app);
  collage::cli::AddSettingsCommand(app);
  collage::cli::AddRunCommand(app);
  collage::cli::AddBenchmarkCommand(app);
  collage::cli::AddProfileCommand(app);
  collage::cli::AddInfoCommand(app);
  collage::cli::AddExplainCommand(app);
  collage::cli::AddReportCommand(app);
  collage::cli::AddTargetsCommand(app);
  collage::cli::AddImportCommand(app);
  collage::cli::AddExportCommand(app);
  collage::cli::AddOptCommand(app);
  collage::cli::AddParseCommand(app);
  collage::cli::AddDataflowCommand(app);
  collage::cli::AddSubGraphCommand(app);
  collage::cli::AddCandidatesCommand(app);
  collage::cli::AddRewriteCommand(app);
  collage::cli::AddPartitionCommand(app);
  collage::cli::AddDatabaseCommand(app);
  collage::cli::AddBundleCommand(app);
  collage::cli::AddWorkerCommand(app);
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file that grows beyond its limit is an error of that write, not the end
  collage::CleanUpWhenInterrupted();
  CLI::App app(
      "Compiles a trained model into one file that runs it at the lowest latency measured on this machine:\n"
      "measures which sub-graphs run fastest on which toolchain, and covers the model with the best mix.");
  app.name("collage");
  app.footer(kFooter);
  app.require_subcommand(1);
  app.set_version_flag("--version", COLLAGE_VERSION);
  AddCommands(app);
  app.footer(kFooter + EnvironmentHelp());  // after the sub-commands, which take over the footer that they find
  try {
    app.parse(argc, argv);
    return Finish(0);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    const bool is_answer = code == 0 || error.get_name() == "RuntimeError";
    return Finish(is_answer ? code : collage::ExitCode(collage::ErrorCategory::kInput));
  } catch (const collage::Error& error) {
    return Fail(error);
  } catch (const std::bad_alloc&) {
    return Fail({collage::ErrorCategory::kResource, "out of memory"});
  } catch (const std::system_error& error) {
    return Fail({collage::ErrorCategory::kResource, error.what()});  // of fmt::print, when it cannot write
  } catch (const std::exception& error) {
    return Fail({collage::ErrorCategory::kInternal, error.what()});
  }
}
