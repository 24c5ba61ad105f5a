// smallest_call.cc: a chain of tiny operators, timed candidate by candidate.
#include "cost/smallest_call.h"

#include "collage/extract.h"
#include "collage/ir/infer_type.h"
#include "collage/partition_rule.h"
#include "cost/measure.h"

namespace collage {
namespace {

/// One operator of each kind that some toolchain has.
Function TinyFunction() {
  const Var x = MakeVar("x", TensorType(Shape{1, 1}, kFloat32));
  const Expr weight = MakeConstant(Tensor::Zeros({1, 1}, kFloat32));
  Expr value = MakeCall("nn.relu", {x});
  value = MakeCall("nn.softmax", {value}, {{"axis", -1}});
  value = MakeCall("add", {value, MakeScalar(0.5, kFloat32)});
  value = MakeCall("nn.dense", {value, weight});
  value = MakeCall("nn.relu", {value});
  const Function function = MakeFunction({x}, value);
  InferType(function);
  return function;
}

}  // namespace

TuningRecord MeasureSmallestCall(const Toolchain& toolchain, int num_threads, const TimingOptions& timing) {
  const DataflowGraph graph(TinyFunction());
  TuningRecord least;
  least.reason = "it takes none of the operators tried";
  RuleLog log;
  for (const CandidatePartition& candidate : GatherPartitionRule(toolchain)->AllCandidates(graph, toolchain, log)) {
    const ExtractedFunction extracted = Extract(graph, candidate.sub_graph);
    const BoundaryLayouts layouts = PlainLayouts(extracted.boundary.inputs.size(), extracted.boundary.outputs.size());
    const TuningRecord record = MeasurePartition(toolchain, {extracted.function, layouts, num_threads}, timing);
    if (record.ok && (!least.ok || record.p50 < least.p50)) least = record;
  }
  return least;
}

}  // namespace collage
