// control.cc: nested graphs of ONNX. A branch that is known is taken now; a loop of known length is unrolled, so that
// shapes stay known and every toolchain can run it; other branches become Relay's if, other loops recursive functions.
#include <fmt/format.h>

#include "collage/ir/infer_type.h"
#include "frontend/onnx/builders.h"
#include "frontend/onnx/values.h"
#include "ir/tensor_types.h"

namespace collage {
namespace {

using Results = std::vector<Expr>;
using V = std::vector<int64_t>;

// Unrolling stops being a help when the program gets this long.
constexpr int64_t kMostUnrolledNodes = 20000;

/// A condition of one element as a scalar.
Expr Scalar(NodeContext& node, const Expr& x) { return node.Reshape(x, {}); }

bool Holds(const Expr& constant) { return As<ConstantNode>(constant)->value().At(0) != 0; }
bool IsConstant(const Expr& expr) { return As<ConstantNode>(expr) != nullptr; }

/// One value as itself, several as a tuple.
Expr Pack(NodeContext& node, const Results& values) { return values.size() == 1 ? values[0] : node.Tuple(values); }

Results Unpack(NodeContext& node, const Expr& packed, size_t count) {
  if (count == 1) return {packed};
  Results values;
  for (size_t i = 0; i < count; ++i) values.push_back(node.Field(packed, static_cast<int>(i)));
  return values;
}

/// Refuses values of another form than `wanted` have, where a run chooses.
void CheckForms(NodeContext& node, const char* what, const Results& wanted, const Results& found) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (FormOf(wanted[i]) == FormOf(found[i])) continue;
    node.Unsupported(fmt::format("{} that only a run chooses and whose value {} is {} in place of {}", what, i,
                                 FormOf(found[i]), FormOf(wanted[i])));
  }
}

Results ConvertIf(NodeContext& node) {
  const Expr condition = Scalar(node, node.Input(0));
  if (IsConstant(condition)) return node.ConvertSubgraph(Holds(condition) ? "then_branch" : "else_branch", {});
  const Results then_values = node.ConvertSubgraph("then_branch", {});
  const Results else_values = node.ConvertSubgraph("else_branch", {});
  if (then_values.size() != else_values.size() || then_values.empty())
    node.Invalid("the branches differ in their results");
  CheckForms(node, "a branch", then_values, else_values);
  const Results then_tensors = TensorsOf(then_values), else_tensors = TensorsOf(else_values);
  if (then_tensors.empty()) return then_values;
  const auto branch = std::make_shared<const IfNode>(condition, Pack(node, then_tensors), Pack(node, else_tensors));
  branch->set_span({node.name(), 0, 0});
  InferType(branch);
  node.NameSizes(branch);
  return ValuesLike(then_values, Unpack(node, branch, then_tensors.size()));
}

/// Values that come out of every turn of a loop, joined along a new first axis.
Expr Joined(NodeContext& node, const Results& turns) {
  Results rows;
  for (const Expr& turn : turns) {
    Sizes shape = node.SizesOf(turn);
    shape.insert(shape.begin(), 1);
    rows.push_back(node.Reshape(turn, shape));
  }
  return Concatenate(node, std::move(rows), 0);
}

[[noreturn]] void FailAtResults(NodeContext& node, size_t found, size_t wanted) {
  node.Invalid(fmt::format("the loop's body has {} results, {} are wanted", found, wanted));
}

/// `count` turns in a row, or fewer when the condition becomes false; nothing when the condition is not known.
std::optional<Results> Unroll(NodeContext& node, int64_t count, Expr condition, Results carried) {
  const size_t num_carried = carried.size();
  if (node.num_outputs() < num_carried)
    node.Invalid(fmt::format("a loop of {} values has {} outputs, one for every value is wanted", num_carried,
                             node.num_outputs()));
  std::vector<Results> scans(node.num_outputs() - num_carried);
  for (int64_t turn = 0; turn < count; ++turn) {
    if (!IsConstant(condition)) return std::nullopt;
    if (!Holds(condition)) break;
    Results inputs{MakeScalar(static_cast<double>(turn), kInt64), condition};
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    const Results outputs = node.ConvertSubgraph("body", inputs);
    if (outputs.size() != 1 + num_carried + scans.size())
      FailAtResults(node, outputs.size(), 1 + num_carried + scans.size());
    condition = Scalar(node, outputs[0]);
    carried.assign(outputs.begin() + 1, outputs.begin() + 1 + static_cast<int64_t>(num_carried));
    for (size_t i = 0; i < scans.size(); ++i) scans[i].push_back(outputs[1 + num_carried + i]);
  }
  for (const Results& turns : scans) {
    if (turns.empty()) node.Unsupported("a loop without turns whose results are collected");
    carried.push_back(Joined(node, turns));
  }
  return carried;
}

/// `%loop(0, condition, values…)` where `%loop` calls itself with what its body gives.
Results Recurse(NodeContext& node, const Expr& limit, const Expr& condition, const Results& carried) {
  if (node.num_outputs() > carried.size()) {
    node.Unsupported("collecting results of a loop whose number of turns is known at run time only");
  }
  std::vector<Var> params{MakeVar("i", TensorType(Shape{}, kInt64)), MakeVar("go_on", TensorType(Shape{}, kBool))};
  // A turn may hand on values of other sizes than it was given.
  const Results tensors = TensorsOf(carried);
  for (const Expr& value : tensors) params.push_back(MakeVar("value", WithoutSymbols(value->checked_type())));
  for (const Var& param : params) {
    param->set_checked_type(param->type_annotation());
    node.NameSizes(param);
  }
  const Results values(params.begin() + 2, params.end());
  Results inputs{params[0], params[1]};
  const Results given = ValuesLike(carried, values);
  inputs.insert(inputs.end(), given.begin(), given.end());
  const Results outputs = node.ConvertSubgraph("body", inputs);
  if (outputs.size() != 1 + carried.size()) FailAtResults(node, outputs.size(), 1 + carried.size());
  const Results results(outputs.begin() + 1, outputs.end());
  CheckForms(node, "a number of turns", carried, results);
  const Results next_tensors = TensorsOf(results);
  std::vector<Type> types;
  for (size_t i = 0; i < tensors.size(); ++i) {
    types.push_back(params[i + 2]->type_annotation());
    if (!TypeEqual(types.back(), next_tensors[i]->checked_type())) {
      node.Unsupported(fmt::format("a loop whose value {} changes its type from {} to {}", i, ToString(types.back()),
                                   ToString(next_tensors[i]->checked_type())));
    }
  }
  const Type result = types.size() == 1 ? types[0] : TupleType(types);
  std::vector<Type> param_types;
  for (const Var& param : params) param_types.push_back(param->type_annotation());
  const Var loop = MakeVar("loop", FuncType(param_types, result));
  std::vector<Expr> next{Shifted(node, params[0], 1), Scalar(node, outputs[0])};
  next.insert(next.end(), next_tensors.begin(), next_tensors.end());
  Expr go_on = params[1];
  if (limit) go_on = node.Op("logical_and", {go_on, node.Op("less", {params[0], limit})});
  const Expr body = std::make_shared<const IfNode>(go_on, MakeCall(Expr(loop), next), Pack(node, values));
  const Function function = MakeFunction(params, body, result);
  std::vector<Expr> first{MakeScalar(0, kInt64), condition};
  first.insert(first.end(), tensors.begin(), tensors.end());
  const auto let = std::make_shared<const LetNode>(loop, function, MakeCall(Expr(loop), first));
  let->set_span({node.name(), 0, 0});
  InferType(let);
  node.NameSizes(let);
  return ValuesLike(carried, Unpack(node, let, tensors.size()));
}

Results ConvertLoop(NodeContext& node) {
  Results carried;
  for (size_t i = 2; i < node.num_inputs(); ++i) carried.push_back(node.Input(i));
  const Expr condition = node.HasInput(1) ? Scalar(node, node.Input(1)) : Expr(MakeScalar(1, kBool));
  const Expr limit = node.HasInput(0) ? Scalar(node, node.Input(0)) : Expr();
  const int64_t body = std::max<int64_t>(1, static_cast<int64_t>(node.NumSubgraphNodes("body")));
  const int64_t most = kMostUnrolledNodes / body;
  if (IsConstant(condition) && (!limit || IsConstant(limit))) {
    const int64_t count = limit ? As<ConstantNode>(limit)->value().ToInts()[0] : most;
    if (count <= most) {
      std::optional<Results> unrolled = Unroll(node, count, condition, carried);
      if (unrolled) return *std::move(unrolled);
    }
  }
  return Recurse(node, limit, condition, carried);
}

/// Attributes of a Scan, and the numbers of its operands.
struct ScanForm {
  size_t num_scans;
  size_t num_states;
  size_t num_collected;
  V in_axes;  ///< normalised by ScanSteps
  V in_directions;
  V out_axes;
  V out_directions;
};

/// `num_inputs` of states and of what is scanned.
ScanForm ReadScan(NodeContext& node, size_t num_inputs) {
  const auto num_scans = static_cast<size_t>(node.Int("num_scan_inputs", 0));
  if (num_scans < 1 || num_scans > num_inputs)
    node.Invalid(fmt::format("num_scan_inputs is {}, there are {} inputs", num_scans, num_inputs));
  const size_t num_states = num_inputs - num_scans;
  if (node.num_outputs() < num_states)
    node.Invalid(fmt::format("{} outputs for {} states", node.num_outputs(), num_states));
  const size_t num_collected = node.num_outputs() - num_states;
  const auto padded = [&](const char* name, size_t count) {
    V values = node.Ints(name, {});
    values.resize(count, 0);
    return values;
  };
  return {num_scans,
          num_states,
          num_collected,
          padded("scan_input_axes", num_scans),
          padded(node.opset() < 9 ? "directions" : "scan_input_directions", num_scans),
          padded("scan_output_axes", num_collected),
          padded("scan_output_directions", num_collected)};
}

/// Returns the number of slices, the same of all `inputs` that are scanned, and normalises their axes.
int64_t ScanSteps(NodeContext& node, ScanForm& form, Results& inputs) {
  SymbolicSize size;
  for (size_t i = 0; i < form.num_scans; ++i) {
    const Expr& x = inputs[form.num_states + i];
    form.in_axes[i] = NormalAxis(node, form.in_axes[i], node.Rank(x));
    const SymbolicSize own = node.SizesOf(x)[static_cast<size_t>(form.in_axes[i])];
    if (i > 0 && own.is_known() && size.is_known() && own.known() != size.known()) {
      node.Invalid(fmt::format("input {} has {} slices, the inputs before it {}", form.num_states + i, own.known(),
                               size.known()));
    }
    if (i == 0 || own.is_known()) size = own;
  }
  const int64_t steps = node.Known(size, "the number of slices");
  // A run checks the number where the model leaves it open.
  for (size_t i = 0; i < form.num_scans; ++i) {
    Expr& x = inputs[form.num_states + i];
    x = node.WithSizeAlong(x, node.SizesOf(x), form.in_axes[i], steps);
  }
  if (steps < 1) node.Unsupported("a scan without slices");
  const auto body = static_cast<int64_t>(node.NumSubgraphNodes("body"));
  if (steps > kMostUnrolledNodes / std::max<int64_t>(body, 1))
    node.Unsupported(fmt::format("a scan of {} steps", steps));
  return steps;
}

/// The values of one output, one of each step, along a new axis.
Expr Stacked(NodeContext& node, const Results& values, int64_t out_axis, bool is_reversed) {
  const Sizes shape = node.SizesOf(values[0]);
  const int64_t axis = NormalAxis(node, out_axis, static_cast<int>(shape.size()) + 1);
  Sizes row = shape;
  row.insert(row.begin() + axis, 1);
  Results rows;
  for (const Expr& value : values) rows.push_back(node.Reshape(value, row));
  if (is_reversed) std::reverse(rows.begin(), rows.end());
  return Concatenate(node, std::move(rows), axis);
}

/// Slice `at` of `x` along `axis`, without that axis.
Expr Row(NodeContext& node, const Expr& x, int64_t axis, int64_t at) {
  Sizes shape = node.SizesOf(x);
  shape.erase(shape.begin() + axis);
  return node.Reshape(Slice(node, x, axis, at, at + 1), shape);
}

/// A loop over slices of its inputs; how many there are is always known.
Results ScanOver(NodeContext& node, ScanForm form, Results given) {
  const int64_t steps = ScanSteps(node, form, given);
  Results states(given.begin(), given.begin() + static_cast<int64_t>(form.num_states));
  std::vector<Results> collected(form.num_collected);
  for (int64_t step = 0; step < steps; ++step) {
    Results inputs = states;
    for (size_t i = 0; i < form.num_scans; ++i) {
      const int64_t at = form.in_directions[i] != 0 ? steps - 1 - step : step;
      inputs.push_back(Row(node, given[form.num_states + i], form.in_axes[i], at));
    }
    const Results outputs = node.ConvertSubgraph("body", inputs);
    if (outputs.size() != node.num_outputs())
      node.Invalid(fmt::format("the scan's body has {} results, the scan {}", outputs.size(), node.num_outputs()));
    states.assign(outputs.begin(), outputs.begin() + static_cast<int64_t>(form.num_states));
    for (size_t i = 0; i < form.num_collected; ++i) collected[i].push_back(outputs[form.num_states + i]);
  }
  Results results = states;
  for (size_t i = 0; i < form.num_collected; ++i) {
    results.push_back(Stacked(node, collected[i], form.out_axes[i], form.out_directions[i] != 0));
  }
  return results;
}

/// As before opset 9: a scan for each sample of a batch, behind an input of the lengths of sequences.
Results ScanBatch(NodeContext& node) {
  if (node.HasInput(0)) node.Unsupported("Scan of sequences of several lengths, as before opset 9");
  const ScanForm form = ReadScan(node, node.num_inputs() - 1);
  const int64_t batch = node.ShapeOf(node.Input(1)).at(0);
  if (batch < 1) node.Unsupported("a scan of no samples");
  std::vector<Results> all(node.num_outputs());
  for (int64_t sample = 0; sample < batch; ++sample) {
    Results inputs;
    for (size_t i = 1; i < node.num_inputs(); ++i) {
      const Shape shape = node.ShapeOf(node.Input(i));
      if (shape.empty() || shape[0] != batch) node.Invalid(fmt::format("input {} has not {} samples", i, batch));
      inputs.push_back(Row(node, node.Input(i), 0, sample));
    }
    const Results results = ScanOver(node, form, inputs);
    for (size_t i = 0; i < all.size(); ++i) all[i].push_back(results[i]);
  }
  Results results;
  for (const Results& values : all) results.push_back(Stacked(node, values, 0, /*is_reversed=*/false));
  return results;
}

Results ConvertScan(NodeContext& node) {
  if (node.opset() < 9) return ScanBatch(node);
  for (size_t i = 0; i < node.num_inputs(); ++i) (void)node.Input(i);
  return ScanOver(node, ReadScan(node, node.num_inputs()), node.inputs());
}

}  // namespace

void AddControlConverters(OnnxConverters& converters) {
  converters.Add("If", ConvertIf, "cond: bool -> outputs+");
  converters.Add("Loop", ConvertLoop, "M?: int[0..1], cond?: bool[0..1], v_initial*: value -> outputs+");
  converters.Add("Scan", ConvertScan, "inputs?+ -> outputs+");
}

}  // namespace collage
