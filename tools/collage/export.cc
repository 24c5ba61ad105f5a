// export.cc: `collage export`: a model or a program of Relay as an ONNX model.
#include "collage/frontend/onnx_export.h"
#include "collage/support/error.h"
#include "collage/transform/passes.h"
#include "inspect_input.h"

namespace collage::cli {
namespace {

struct Arguments {
  InspectArguments input;
  std::string output;
  bool prepare = false;
  int64_t most_inside = int64_t{1} << 30;
};

void Run(const Arguments& arguments) {
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
  CLI::App* command = app.add_subcommand("export", "Write an ONNX model or a Relay program as an ONNX model");
  AddInspectFlags(*command, arguments->input);
  command->add_option("-o,--output", arguments->output, "ONNX model to write")->required();
  command->add_flag("--prepare", arguments->prepare, "Run the passes that precede partitioning first");
  command
      ->add_option("--inline-constants", arguments->most_inside,
                   "Write constants to OUTPUT.data, beside the model, if they have more bytes than this")
      ->capture_default_str();
  command->callback([arguments] { Run(*arguments); });
}

}  // namespace collage::cli
