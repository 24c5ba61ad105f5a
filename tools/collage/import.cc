// import.cc: `collage import`: what the compiler makes of a model before it looks for partitions.
#include <fmt/format.h>

#include <fstream>

#include "collage/frontend/onnx.h"
#include "collage/ir/op.h"
#include "collage/ir/visitor.h"
#include "collage/transform/passes.h"
#include "command.h"

namespace collage::cli {
namespace {

struct Arguments {
  std::string model;
  std::vector<std::string> shapes;
  bool prepare = false;
  bool json = false;
};

void Run(const Arguments& arguments) {
  IRModule module = ImportOnnx(arguments.model, {ParseShapeArguments(arguments.shapes)});
  if (arguments.prepare) module = PrepareForPartitioning(std::move(module));
  std::map<std::string, int64_t> counts;
  PostOrder(module.main(), [&](const Expr& expr) {
    const CallNode* call = As<CallNode>(expr);
    if (call != nullptr && call->op() != nullptr) ++counts[call->op()->name];
  });
  if (arguments.json) {
    PrintJson({{"schema", 1}, {"operators", counts}, {"type", ToString(module.main()->checked_type())}});
    return;
  }
  Table table({"operator", "calls"});
  for (const auto& [name, count] : counts) table.Add({name, std::to_string(count)});
  fmt::print("{}\n{}", ToString(module.main()->checked_type()), table.ToText());
}

}  // namespace

void AddImportCommand(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("import", "Read a model and list its Relay operators");
  command->add_option("model", arguments->model, "ONNX model")->required();
  command->add_option("--shape", arguments->shapes, "Shape of a dynamic input, NAME=1x3x640x640; may be repeated");
  command->add_flag("--prepare", arguments->prepare, "Run the passes that precede partitioning first");
  command->add_flag("--json", arguments->json, "Print as JSON");
  command->callback([arguments] { Run(*arguments); });
}

}  // namespace collage::cli
