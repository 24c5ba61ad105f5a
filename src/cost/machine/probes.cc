// probes.cc: the probes' functions, timed candidate by candidate.
#include "cost/machine/probes.h"

#include <fmt/format.h>

#include <algorithm>

#include "collage/ir/infer_type.h"
#include "collage/support/error.h"
#include "cost/measure/measure.h"
#include "partition/extract.h"
#include "partition/partition_rule.h"

namespace collage {
namespace {

Var Data(const Shape& shape) { return MakeVar("x", TensorType(shape, kFloat32)); }

Expr Weight(const Shape& shape) {
  const Tensor tensor = Tensor::Empty(shape, kFloat32);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.Set(i, 0.01 * static_cast<double>(i % 13) - 0.05);
  return MakeConstant(tensor);
}

Function Typed(const Var& x, const Expr& value) {
  const Function function = MakeFunction({x}, value);
  InferType(function);
  return function;
}

/// One operator of each kind that some toolchain has, on one element.
Function Tiny() {
  const Var x = Data({1, 1});
  Expr value = MakeCall("nn.relu", {x});
  value = MakeCall("nn.softmax", {value}, {{"axis", -1}});
  value = MakeCall("add", {value, MakeScalar(0.5, kFloat32)});
  value = MakeCall("nn.dense", {value, MakeConstant(Tensor::Zeros({1, 1}, kFloat32))});
  return Typed(x, MakeCall("nn.relu", {value}));
}

/// 1 MiB read and written, next to nothing computed.
Function Moving() {
  const Var x = Data({1, 64, 64, 64});
  return Typed(x, MakeCall("nn.relu", {x}));
}

/// Returns the same probe with four operators.
Function Elements() {
  const Var x = Data({1, 64, 64, 64});
  Expr value = MakeCall("multiply", {x, MakeScalar(0.5, kFloat32)});
  value = MakeCall("add", {value, MakeScalar(0.25, kFloat32)});
  value = MakeCall("sigmoid", {value});
  return Typed(x, MakeCall("nn.relu", {value}));
}

Function Reduction() {
  const Var x = Data({256, 1024});
  return Typed(x, MakeCall("nn.softmax", {x}, {{"axis", -1}}));
}

/// 34 million products.
Function Product() {
  const Var x = Data({128, 512});
  return Typed(x, MakeCall("nn.dense", {x, Weight({512, 512})}));
}

Expr Convolve(const Var& x, const Shape& weight, int groups, int stride) {
  using Ints = std::vector<int64_t>;
  return MakeCall("nn.conv2d", {x, Weight(weight)},
                  {{"padding", Ints{1, 1, 1, 1}},
                   {"channels", weight[0]},
                   {"kernel_size", Ints{weight[2], weight[3]}},
                   {"groups", groups},
                   {"strides", Ints{stride, stride}}});
}

/// 28 million products, with a stride, since no algorithm spares any of those: most convolutions cannot spare any.
Function Convolution() {
  const Var x = Data({1, 64, 56, 56});
  return Typed(x, Convolve(x, {64, 64, 3, 3}, 1, 2));
}

/// A group for each channel: 3.5 million products.
Function GroupedConvolution() {
  const Var x = Data({1, 128, 56, 56});
  return Typed(x, Convolve(x, {128, 1, 3, 3}, 128, 1));
}

constexpr Probe kProbes[] = {
    {kSmallestCall, "one operator on one element", Tiny, false},
    {kMovingProbe, "relu of 1 MiB", Moving, true},
    {kElementsProbe, "four element-wise operators on 1 MiB", Elements, true},
    {kReductionProbe, "softmax of 256 rows of 1024", Reduction, true},
    {kProductProbe, "[128, 512] x [512, 512]", Product, true},
    {kConvolutionProbe, "64 to 64 channels, 3x3, stride 2, 28x28", Convolution, true},
    {kGroupedProbe, "128 channels by themselves, 3x3, 56x56", GroupedConvolution, true},
};

/// Layouts that the toolchain offers when all that has channels may be channels-last.
std::vector<BoundaryLayouts> LayoutsOf(const Toolchain& toolchain, const Function& function) {
  const auto has_channels = [](const Type& type) { return AsTensorType(type)->rank() >= 4; };
  std::vector<bool> inputs;
  for (const Var& param : function->params()) inputs.push_back(has_channels(param->checked_type()));
  return toolchain.Layouts(function, inputs, {has_channels(function->body()->checked_type())});
}

}  // namespace

std::span<const Probe> Probes() { return kProbes; }

const Probe& ProbeNamed(const std::string& name) {
  for (const Probe& probe : kProbes) {
    if (name == probe.name) return probe;
  }
  throw Error(ErrorCategory::kInput, fmt::format("there is no probe '{}'", name));
}

std::vector<PartitionRequest> PartitionsOf(const Toolchain& toolchain, const Probe& probe, int num_threads) {
  const DataflowGraph graph(probe.make());
  int num_operators = 0;
  for (int index = 0; index < static_cast<int>(graph.size()); ++index) num_operators += graph.OpAt(index) != nullptr;
  std::vector<PartitionRequest> partitions;
  RuleLog log;
  for (const CandidatePartition& candidate : GatherPartitionRule(toolchain)->AllCandidates(graph, toolchain, log)) {
    const auto is_operator = [&](int index) { return graph.OpAt(index) != nullptr; };
    const std::vector<int>& members = candidate.sub_graph.members();
    if (probe.is_whole && std::count_if(members.begin(), members.end(), is_operator) != num_operators) continue;
    const Function function = Extract(graph, candidate.sub_graph).function;
    std::vector<BoundaryLayouts> choices =
        probe.is_whole
            ? LayoutsOf(toolchain, function)
            : std::vector<BoundaryLayouts>{In(MainMemoryOf(toolchain), PlainLayouts(function->params().size(), 1))};
    for (BoundaryLayouts& layouts : choices) partitions.push_back({function, std::move(layouts), num_threads});
  }
  return partitions;
}

TuningRecord MeasureProbe(const Toolchain& toolchain, const Probe& probe, int num_threads, const TimingOptions& timing,
                          CompiledStore* store) {
  TuningRecord least;
  least.reason = "it takes none of the operators tried";
  for (const PartitionRequest& partition : PartitionsOf(toolchain, probe, num_threads)) {
    const TuningRecord record = MeasurePartition(toolchain, partition, timing, store);
    if (record.ok && (!least.ok || record.p50 < least.p50)) least = record;
  }
  return least;
}

}  // namespace collage
