// passes_on_models.cc: every small test model computes the same before and after each pass, and after the sequences in
// which passes depend on each other. Exits with 77 when there are no models (tools/models/prepare-tests makes them).
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "backends/builtin_toolchains.h"
#include "collage/frontend/onnx.h"
#include "collage/ir/infer_type.h"
#include "collage/support/error.h"
#include "collage/target/toolchain.h"
#include "collage/transform/passes.h"
#include "ir/eval/interpreter.h"
#include "runtime/compare.h"
#include "runtime/random_inputs.h"

namespace collage {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

PassContext Context() {
  PassContext context;
  context.opt_level = 4;
  // The first toolchains with patterns and with a predicate will do; which they are does not matter.
  std::string targets;
  for (const Toolchain* toolchain : ToolchainRegistry::Global().All()) {
    if (toolchain->is_native()) continue;
    targets += (targets.empty() ? "" : ",") + toolchain->name();
    if (!toolchain->PatternTable().empty()) context.SetConfig("relay.MergeComposite.toolchain", toolchain->name());
  }
  context.SetConfig("relay.AnnotateTarget.targets", targets);
  context.SetConfig("relay.ConvertLayout.desired_layouts", "nn.conv1d=NWC,nn.conv2d=NHWC,nn.conv3d=NDHWC");
  return context;
}

/// Each pass alone, but for those that change precision or need others before them; then sequences.
std::vector<Names> Sequences() {
  const Names not_alone{"ToMixedPrecision", "DefuseOps",      "MergeCompilerRegions", "PartitionGraph",
                        "AnnotateTarget",   "MergeComposite", "ToGraphNormalForm"};
  std::vector<Names> sequences;
  for (const Pass& pass : AllPasses()) {
    if (std::find(not_alone.begin(), not_alone.end(), pass.name) == not_alone.end()) sequences.push_back({pass.name});
  }
  sequences.push_back({"FuseOps", "DefuseOps"});
  sequences.push_back({"ToANormalForm", "DeadCodeElimination", "ToGraphNormalForm"});
  sequences.push_back({"ToANormalForm", "PartialEvaluate"});
  sequences.push_back({"SimplifyInference", "FoldConstant", "SimplifyExpr", "FoldScaleAxis", "MergeComposite",
                       "AnnotateTarget", "MergeCompilerRegions", "PartitionGraph"});
  return sequences;
}

std::vector<Value> RandomInputs(const Function& function) {
  std::vector<Value> inputs;
  for (const Var& param : function->params()) {
    const TensorTypeNode* type = AsTensorType(param->checked_type());
    const Tensor tensor = Tensor::Empty(type->static_shape(), type->dtype());
    FillRandom(tensor, 1 + inputs.size());
    inputs.emplace_back(tensor);
  }
  return inputs;
}

/// Empty, or what differs.
std::string Compare(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected) {
  if (actual.size() != expected.size()) return "another number of results";
  for (size_t i = 0; i < actual.size(); ++i) {
    Tolerance tolerance = ToleranceFor(expected[i]);
    if (expected[i].dtype().is_floating()) tolerance.relative = std::max(tolerance.relative, 1e-3);
    const Comparison comparison = Compare(actual[i], expected[i], tolerance);
    if (!comparison.agrees) return fmt::format("result {}: {}", i, comparison.difference);
  }
  return "";
}

int CheckModel(const fs::path& path) {
  const PassContext context = Context();
  const IRModule before = InferTypes(ImportOnnx(path.string(), {}));
  const std::vector<Value> inputs = RandomInputs(before.main());
  const std::vector<Tensor> expected = FlattenTensors(Interpret(before, "main", inputs));
  int failed = 0;
  for (const Names& names : Sequences()) {
    std::string difference;
    try {
      const IRModule after = RunPasses(names, before, context);
      difference = Compare(FlattenTensors(Interpret(after, "main", inputs)), expected);
    } catch (const Error& error) {
      difference = error.Format();
    }
    if (difference.empty()) continue;
    ++failed;
    fmt::print("FAILED  {} after {}{}: {}\n", path.filename().string(), names.size() > 1 ? "… " : "", names.back(),
               difference);
  }
  return failed;
}

int Main() {
  const char* chosen = std::getenv("COLLAGE_MODELS");
  const char* home = std::getenv("HOME");
  const fs::path folder =
      fs::path(chosen != nullptr ? chosen : std::string(home != nullptr ? home : "") + "/.cache/collage/models") /
      "small";
  std::vector<fs::path> models;
  if (fs::is_directory(folder)) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() == ".onnx") models.push_back(entry.path());
    }
  }
  if (models.empty()) {
    fmt::print("skipped: no models in {}; run tools/models/prepare-tests\n", folder.string());
    return 77;
  }
  AddBuiltinToolchains(ToolchainRegistry::Global());
  std::sort(models.begin(), models.end());
  int failed = 0;
  for (const fs::path& model : models) failed += CheckModel(model);
  fmt::print("{} models, {} sequences of passes each, {} failed\n", models.size(), Sequences().size(), failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace collage

int main() { return collage::Main(); }
