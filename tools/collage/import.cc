// import.cc: `collage import`: what the compiler makes of a model before it looks for partitions.
#include <map>

#include "collage/frontend/onnx.h"
#include "collage/ir/op.h"
#include "collage/ir/visitor.h"
#include "collage/transform/passes.h"
#include "command.h"
#include "compile_options.h"

namespace collage::cli {
namespace {

struct Arguments {
  std::string model;
  SettingTexts settings;
  bool prepare = false;
  bool json = false;
};

void Run(const Arguments& arguments) {
  IRModule module = ImportOnnx(arguments.model, ImportOptionsOf(OptionsFrom(arguments.settings)));
  if (arguments.prepare) module = PrepareForPartitioning(std::move(module));
  std::map<std::string, int64_t> counts;
  PostOrder(module.main(), [&](const Expr& expr) {
    const CallNode* call = As<CallNode>(expr);
    if (call != nullptr && call->op() != nullptr) ++counts[call->op()->name];
  });
  std::vector<Fact> rows;
  for (const auto& [name, count] : counts) {
    rows.push_back(Fact::Record("", "", {Fact::Text("name", "operator", name), Fact::Count("calls", "calls", count)}));
  }
  const std::string type = ToString(module.main()->checked_type());
  PrintReport(
      Fact::Report(1, {Fact::Counts("operators", "operators", counts).Detail(), Fact::Text("type", "type", type),
                       Fact::Table("", "", rows).Columns({{"operator", "{name}"}, {"calls", "{calls}"}})})
          .Says("{type}"),
      arguments.json);
}

}  // namespace

void AddImportCommand(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("import", "Read a model and list its Relay operators");
  command->add_option("model", arguments->model, "ONNX model")->required();
  AddSetting(*command, "shapes", arguments->settings);
  AddSetting(*command, "dims", arguments->settings);
  AddSetting(*command, "constants", arguments->settings);
  AddSetting(*command, "lengths", arguments->settings);
  command->add_flag("--prepare", arguments->prepare, "Run the passes that precede partitioning first");
  command->add_flag("--json", arguments->json, "Print as JSON");
  command->footer(
      "Examples:\n"
      "  collage import model.onnx\n"
      "  collage import model.onnx --prepare    after the passes that precede partitioning");
  command->callback([arguments] { Run(*arguments); });
}

}  // namespace collage::cli
