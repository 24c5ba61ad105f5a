// export.cc: `collage export`: a model or a program of Relay as an ONNX model; an executable for other viewers.
#include <fmt/format.h>

#include "collage/frontend/onnx_export.h"
#include "collage/support/error.h"
#include "collage/transform/passes.h"
#include "inspect/inspect_input.h"
#include "views/export_views.h"

namespace collage::cli {
namespace {

struct Arguments {
  InspectArguments input;
  std::string output;
  ViewArguments view;
  bool prepare = false;
  int64_t most_inside = int64_t{1} << 30;
};

/// Exports an executable.
void RunView(const Arguments& arguments) {
  if (arguments.prepare || arguments.input.function != "main" || !arguments.input.settings.empty() ||
      !arguments.input.constants.empty()) {
    throw Error(
        ErrorCategory::kInput, "only models and Relay text are prepared, and have functions and shapes to choose",
        arguments.input.file, "leave out --prepare, --function, --constants, --shape, --dim, --constant, --length");
  }
  ViewArguments view = arguments.view;
  view.executable = arguments.input.file;
  view.output = arguments.output;
  view.json = arguments.input.json;
  ExportView(view);
}

void Run(const Arguments& arguments) {
  if (IsCompiled(arguments.input.file)) return RunView(arguments);
  const ViewArguments& view = arguments.view;
  if (!view.format.empty() || !view.model.empty() || !view.profile.empty()) {
    throw Error(ErrorCategory::kInput, "--format, --model and --profile are for executables", arguments.input.file,
                "compile it first: collage compile model.onnx -o model.clg");
  }
  WithPlace(arguments.input.file, [&] {
    const InspectedFile file = ReadInspected(arguments.input);
    IRModule module = file.module;
    if (arguments.input.function != "main") module.Set("main", InspectedFunction(file, arguments.input));
    if (arguments.prepare) module = PrepareForPartitioning(std::move(module));
    module = RunPasses({"qnn.CanonicalizeOps"}, std::move(module));  // ONNX has its forms, not the dialect
    const int64_t bytes = WriteOnnx(module, arguments.output, {}, arguments.most_inside);
    const Fact report =
        Fact::Report(1, {Fact::Text("output", "output", arguments.output), Fact::Bytes("bytes", "size", bytes)})
            .Says("{output}: {bytes}");
    PrintReport(report, arguments.input.json);
  });
}

}  // namespace

void AddExportCommand(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("export", "Write an executable for another viewer, or a model or a Relay program as ONNX");
  AddInspectFlags(*command, arguments->input);
  command->add_option("-o,--output", arguments->output, "File to write; a folder for node-data")->required();
  command->add_option("--format", arguments->view.format, fmt::format("Of an executable: {}", kViewFormats));
  command->add_option("--model", arguments->view.model, "Of an executable: the ONNX model that it was compiled from");
  command->add_option("--profile", arguments->view.profile,
                      "Of an executable: times from this file, which `collage profile --json` printed, in place of "
                      "estimates");
  command->add_flag("--prepare", arguments->prepare, "Run the passes that precede partitioning first");
  command
      ->add_option("--inline-constants", arguments->most_inside,
                   "Write constants to OUTPUT.data, beside the model, if they have more bytes than this")
      ->capture_default_str();
  command->footer(
      "Examples:\n"
      "  collage export model.clg --format onnx --model model.onnx -o seen.onnx     your model with each node's "
      "partition\n"
      "  collage export model.onnx -o again.onnx                                    the model as it was imported");
  command->callback([arguments] { Run(*arguments); });
}

}  // namespace collage::cli
