// kind.cc: a kind of target whose hook RelayToRuntime compiles whole sub-graphs into commands for a device, and whose
// hook UpdateConstants packs other weights for commands that are there already, as TVM's ethos-n does.
#include <collage/ir/op.h>
#include <collage/ir/visitor.h>
#include <collage/target/target_kind.h>

#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "commands.h"

namespace ethos_n_like {
namespace {

using namespace collage;  // NOLINT: this file speaks of little else

constexpr const char* kName = "ethos-n-like";

/// A fully connected layer: a match of the pattern below.
struct Layer {
  Expr data;       ///< its input, outside of the match
  Tensor weights;  ///< [outputs, inputs]
  Tensor bias;     ///< [outputs]; undefined: none
  bool has_relu = false;
  Shape shape;  ///< its result has it
};

/// Reads a call of a match, or, as predicates get it, the match alone.
class LayerReader {
 public:
  explicit LayerReader(const Function& match) : root_(match->body()) {}
  explicit LayerReader(const CallNode& call) : LayerReader(AsShared<FunctionNode>(call.callee())) {
    const Function match = AsShared<FunctionNode>(call.callee());
    for (size_t i = 0; i < call.args().size(); ++i) arguments_[match->params()[i].get()] = call.args()[i];
  }

  Result<Layer> Read() const {
    Layer layer;
    layer.shape = AsTensorType(root_->checked_type())->static_shape();
    const CallNode* call = As<CallNode>(root_);
    if (call->op()->name == "nn.relu") {
      layer.has_relu = true;
      call = As<CallNode>(call->args()[0]);
    }
    if (call->op()->name != "nn.dense") {
      layer.bias = ConstantOf(call->args()[1]);
      call = As<CallNode>(call->args()[0]);
    }
    layer.data = Outside(call->args()[0]);
    layer.weights = ConstantOf(call->args()[1]);
    if (layer.weights.dtype() != kFloat32 || layer.shape.empty()) return Reason{"works on float32", kName};
    if (layer.bias.defined() && layer.bias.shape() != Shape{layer.shape.back()}) {
      return Reason{"adds one number to each output", kName};
    }
    return layer;
  }

 private:
  Expr Outside(const Expr& expr) const {
    const auto it = arguments_.find(expr.get());
    return it == arguments_.end() ? expr : it->second;
  }
  Tensor ConstantOf(const Expr& expr) const { return As<ConstantNode>(Outside(expr))->value(); }

  Expr root_;
  std::map<const ExprNode*, Expr> arguments_;  ///< parameter of the match → what it is called with
};

Result<void> Check(const Function& match) {
  const Result<Layer> layer = LayerReader(match).Read();
  if (!layer.ok()) return layer.reason();
  return {};
}

/// The largest first: partitioning without costs takes what matches first.
std::vector<PatternTableEntry> Patterns(const Attrs&) {
  const std::string name = "ethos-n-like.fully_connected", dense = "nn.dense(*, const)";
  const std::string biased = "(nn.bias_add(" + dense + ", const) | add(" + dense + ", const))";
  return {
      {name, "nn.relu((" + biased + " | " + dense + "))", Check},
      {name, biased, Check},
      {name, dense, Check},
  };
}

/// Packs the weights of a layer as commands.h says.
Tensor Pack(const Layer& layer, const Command& command) {
  const Tensor packed = Tensor::Zeros({NumBlocks(command), command.num_inputs + 1, kBlock}, kFloat32);
  for (int64_t o = 0; o < command.num_outputs; ++o) {
    float* column = packed.data<float>() + o / kBlock * (command.num_inputs + 1) * kBlock + o % kBlock;
    const float* weights = layer.weights.data<float>() + o * command.num_inputs;
    for (int64_t i = 0; i < command.num_inputs; ++i) column[i * kBlock] = weights[i];
    if (layer.bias.defined()) column[command.num_inputs * kBlock] = layer.bias.data<float>()[o];
  }
  return packed;
}

/// A partition's commands, and their weights.
struct Program {
  std::vector<Command> commands;
  std::vector<Tensor> weights;
  int64_t memory_bytes = 0;  ///< the memory that values between layers take
};

/// The results of a partition, in order.
std::vector<Expr> ResultsOf(const Function& function) {
  const auto* tuple = As<TupleNode>(function->body());
  return tuple == nullptr ? std::vector<Expr>{function->body()} : tuple->fields();
}

Result<Program> Compile(const Function& function) {
  std::map<const ExprNode*, Place> places;
  const std::vector<Var>& params = function->params();
  for (size_t i = 0; i < params.size(); ++i) places[params[i].get()] = {Place::kInput, static_cast<int64_t>(i)};
  int64_t num_outputs = 0;
  for (const Expr& result : ResultsOf(function)) {
    if (!places.emplace(result.get(), Place{Place::kOutput, num_outputs++}).second) {
      return Reason{"gives each result once", kName};
    }
  }
  Program program;
  std::optional<Reason> problem;
  PostOrderInScope(function->body(), [&](const Expr& expr) {
    const auto* call = As<CallNode>(expr);
    if (call == nullptr || problem) return;
    const Result<Layer> layer = LayerReader(*call).Read();
    if (!layer.ok()) {
      problem = layer.reason();
      return;
    }
    Command command{.num_inputs = layer->weights.shape()[1], .num_outputs = layer->shape.back()};
    command.num_rows = command.num_outputs == 0 ? 0 : NumElements(layer->shape) / command.num_outputs;
    command.has_relu = layer->has_relu ? 1 : 0;
    command.from = places.at(layer->data.get());
    const auto [place, is_new] = places.emplace(expr.get(), Place{Place::kMemory, program.memory_bytes});
    command.to = place->second;
    if (is_new) program.memory_bytes += NumElements(layer->shape) * static_cast<int64_t>(sizeof(float));
    program.commands.push_back(command);
    program.weights.push_back(Pack(*layer, command));
  });
  if (problem) return *problem;
  return program;
}

Result<CompiledPartition> RelayToRuntime(const PartitionRequest& request, const Attrs& options) {
  const Result<Program> program = Compile(request.function);
  if (!program.ok()) return program.reason();
  constexpr int64_t kKib = 1024;
  const int64_t has_kib = options.Int("sram_kib"), needs_kib = (program->memory_bytes + kKib - 1) / kKib;
  if (needs_kib > has_kib) {
    return Reason{"needs " + std::to_string(needs_kib) + " KiB of the device's " + std::to_string(has_kib), kName};
  }
  CompiledPartition compiled;
  compiled.loader = kName;
  compiled.blob.resize(program->commands.size() * sizeof(Command));
  std::memcpy(compiled.blob.data(), program->commands.data(), compiled.blob.size());
  compiled.constants = program->weights;
  compiled.workspace_bytes = static_cast<size_t>(program->memory_bytes);
  return compiled;
}

/// No command depends on a weight: those of an equal partition hold.
Result<std::vector<Tensor>> UpdateConstants(const PartitionRequest& request, const CompiledPartition&, const Attrs&) {
  const Result<Program> program = Compile(request.function);
  if (!program.ok()) return program.reason();
  return program->weights;
}

Availability Probe() {
  if (const auto missing = WhyModuleMissing({"libcollage_rt_ethos-n-like.so"})) {
    return {false, "", *missing, "build examples/target_kinds/ethos_n_like"};
  }
  return {true, "1.0", "", ""};
}

TargetKind MakeKind() {
  return TargetKind(kName, kDLCPU, "fully connected layers on a device of its own")
      .add_attr_option({"sram_kib", AttrKind::kInt, 1024, "memory of the device for values between layers, in KiB"})
      .set_attr<FTVMRelayToRuntime>("RelayToRuntime", RelayToRuntime)
      .set_attr<FTVMConstantUpdater>("UpdateConstants", UpdateConstants)
      .set_attr<FPatternTable>("PatternTable", Patterns)
      .set_attr<FProbe>("Probe", Probe)
      .set_attr<FusionStyle>("FusionStyle", FusionStyle::kArbitrary)
      .set_attr<int>("MaxDepth", 8)
      .set_attr<std::string>("License", "Apache-2.0");
}

}  // namespace
}  // namespace ethos_n_like

COLLAGE_TARGET_KIND_MODULE(ethos_n_like::MakeKind)
