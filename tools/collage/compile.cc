// compile.cc: `collage compile`: the main job, its progress and its report.
#include "collage/compile.h"

#include <fmt/format.h>

#include <functional>

#include "collage/settings.h"
#include "collage/support/error.h"
#include "collage/target/toolchain.h"
#include "command.h"
#include "compile_options.h"
#include "console_progress.h"
#include "emit/emit.h"
#include "report/compile_facts.h"
#include "report/json.h"
#include "support/file.h"
#include "support/interruption.h"

namespace collage::cli {
namespace {

struct Arguments {
  SettingTexts settings;
  std::string model;
  std::string output;
  std::string emit;
  bool prints_settings = false;
  bool json = false;
  bool details = false;
  ProgressArguments progress;
};

/// Compiles and prints the report, to which `then` may add.
void Compile(const Arguments& arguments, CompileOptions& options,
             const std::function<void(CompileReport&)>& then = {}) {
  CompileReport report;
  {
    ConsoleProgress progress(arguments.progress, options.budget_seconds);
    options.progress = &progress;
    EndGently();
    options.should_stop = IsAskedToEnd;
    report = CompileModel(arguments.model, options);
  }
  if (then) then(report);
  PrintReport(CompileFacts(report), arguments.json, {.details = arguments.details});
}

/// The file that the model goes to unless one is named: "MODEL", "libMODEL.so", "libMODEL.a", "MODEL.o".
std::filesystem::path OutputOf(EmitKind kind, const std::filesystem::path& model) {
  const std::string name = model.stem();
  switch (kind) {
    case EmitKind::kProgram: return name;
    case EmitKind::kShared: return "lib" + name + ".so";
    case EmitKind::kStatic: return "lib" + name + ".a";
    case EmitKind::kObject: return name + ".o";
  }
  return name;
}

/// Only native kernels can be linked, so that no others are looked for unless somebody names them.
void CompileAndEmit(const Arguments& arguments, CompileOptions& options) {
  const EmitKind kind = EmitKindOf(arguments.emit);
  const std::filesystem::path output = options.output.empty() ? OutputOf(kind, arguments.model) : options.output;
  CheckCanWrite(output);
  const TemporaryFolder folder;
  options.output = folder / "model.clg";
  options.explanation = "none";
  if (options.toolchains.empty() && options.targets.empty() && options.partition_for.empty()) {
    ProbeToolchains();  // registers them
    options.toolchains = {ToolchainRegistry::Global().Native()->name()};
  }
  Compile(arguments, options, [&](CompileReport& report) {
    const Emitted emitted = Emit(options.output, kind, output);
    report.output = output;
    report.output_bytes = emitted.bytes;
  });
}

void Run(const Arguments& arguments) {
  CompileOptions options = OptionsFrom(arguments.settings);
  if (arguments.prints_settings) {
    return PrintReport(Fact::Report(1, {FactOfJson("settings", "", SettingsJson(options))}), /*as_json=*/true);
  }
  if (arguments.model.empty())
    throw Error(ErrorCategory::kInput, "no model is given", "", "collage compile MODEL.onnx");
  options.output = arguments.output;
  if (!arguments.emit.empty()) return CompileAndEmit(arguments, options);
  if (options.output.empty()) options.output = std::filesystem::path(arguments.model).stem().string() + ".clg";
  Compile(arguments, options);
}

void AddReportFlags(CLI::App& command, Arguments& arguments) {
  command.add_flag("--json", arguments.json, "Print the report as JSON");
  command.add_flag("--details", arguments.details, "Print also the facts that only --json has otherwise");
  AddProgressFlags(command, arguments.progress);
}

}  // namespace

void AddCompileCommand(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("compile", "Find the fastest mix of toolchains for a model and write it");
  command->add_option("model", arguments->model, "ONNX model, or Relay text (.relay)");
  command->add_option("-o,--output", arguments->output, "Executable to write (default: MODEL.clg)");
  command
      ->add_option(
          "--emit", arguments->emit,
          "Write in its place a program, a shared or static library with a C header, or an object file, with the "
          "model inside and nothing to install. For native kernels, the only ones then unless others are named")
      ->type_name("program|shared|static|object");
  command->add_flag("--print-settings", arguments->prints_settings, "Print the settings as JSON; compile nothing");
  AddReportFlags(*command, *arguments);
  AddSettings(*command, SettingCommands::kCompile, arguments->settings);
  command->footer(
      "Examples:\n"
      "  collage compile model.onnx -o model.clg                    the fastest mix of all available toolchains\n"
      "  collage compile model.onnx --threads 1 --budget 5m         for one core, measuring for five minutes at most\n"
      "  collage compile model.onnx --shape input=1x1x28x28         a dynamic input of one size\n"
      "  collage compile model.onnx --partition-for native          one toolchain, without a search\n"
      "  collage compile model.onnx --emit program --budget 10s     a program that runs the model");
  command->callback([arguments] { Run(*arguments); });
}

}  // namespace collage::cli
