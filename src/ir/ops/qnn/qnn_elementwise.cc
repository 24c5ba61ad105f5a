// qnn_elementwise.cc: operators of Relay's quantised dialect that give quantised values: they compute on the numbers
// that their arguments stand for, in float32, and quantise what comes out, ties to even. It is rounded once: TVM, which
// requantises the arguments of some to the result's scale first, rounds twice there.
#include <fmt/format.h>

#include <algorithm>

#include "collage/support/error.h"
#include "ir/ops/families.h"
#include "ir/ops/qnn/quantised.h"
#include "ir/ops/relations.h"
#include "ir/ops/traits.h"

namespace collage {
namespace {

using V = std::vector<int64_t>;

Type Bytes(Shape shape, DataType dtype = kInt8) { return TensorType(shape, dtype); }
Type I32(Shape shape = {}) { return TensorType(shape, kInt32); }

// ---- two arguments ----

OpDef Binary(const std::string& name, const std::string& base) {
  OpDef op;
  op.name = "qnn." + name;
  op.doc = base + " of the numbers that the arguments stand for, quantised.";
  op.args = {
      "lhs", "rhs", "lhs_scale", "lhs_zero_point", "rhs_scale", "rhs_zero_point", "output_scale", "output_zero_point"};
  op.attrs = {{"lhs_axis", AttrKind::kInt, -1, "the axis of the left argument's scales per channel"},
              {"rhs_axis", AttrKind::kInt, -1, "the axis of the right argument's scales per channel"}};
  op.pattern = OpPatternKind::kBroadcast;
  op.relation = Relation([](const OpCall& call) {
    const TensorTypeNode& lhs = IntegersArg(call, 0);
    const TensorTypeNode& rhs = IntegersArg(call, 1);
    if (lhs.dtype() != rhs.dtype()) {
      throw RelationFailure{
          fmt::format("expects equal dtypes, got {} and {}", ToString(call.args[0]), ToString(call.args[1]))};
    }
    CheckParameters(call, lhs, call.attrs.Int("lhs_axis"), 2, 3);
    CheckParameters(call, rhs, call.attrs.Int("rhs_axis"), 4, 5);
    CheckParameters(call, 6, 7);
    return TensorType(BroadcastShapes(lhs.shape(), rhs.shape()), lhs.dtype());
  });
  SetRoundedReference(
      op, [base](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs, Rounder round) {
        const Tensor result = Apply(base, {Dequantised(inputs[0], inputs[2], inputs[3], attrs.Int("lhs_axis")),
                                           Dequantised(inputs[1], inputs[4], inputs[5], attrs.Int("rhs_axis"))});
        Quantise(result, inputs[6], inputs[7], -1, round, outputs[0]);
      });
  const auto parameters = [](const Shape& channels) {
    return std::vector<Type>{F32(channels), I32(channels), F32({}), I32(), F32({}), I32()};
  };
  const auto with = [](std::vector<Type> types, const std::vector<Type>& more) {
    types.insert(types.end(), more.begin(), more.end());
    return types;
  };
  op.examples = {{with({Bytes({2, 3, 5}), Bytes({2, 3, 5})}, parameters({})), {}, 0.1, 9},
                 {with({Bytes({2, 3, 5}, kUInt8), Bytes({3, 1}, kUInt8)}, parameters({3})), {{"lhs_axis", 1}}, 0.1, 9}};
  return op;
}

// ---- one argument ----

/// A row of an operator whose data, scale, zero point and the result's scale and zero point are its arguments.
/// `compute` gets the numbers that the data stand for.
OpDef OfOne(const std::string& name, std::string doc, std::function<Tensor(const Tensor&, const Attrs&)> compute) {
  OpDef op;
  op.name = "qnn." + name;
  op.doc = std::move(doc);
  op.args = {"data", "input_scale", "input_zero_point", "output_scale", "output_zero_point"};
  op.pattern = OpPatternKind::kElemWise;
  op.relation = Relation([](const OpCall& call) {
    IntegersArg(call, 0);
    CheckParameters(call, 1, 2);
    CheckParameters(call, 3, 4);
    return call.args[0];
  });
  SetRoundedReference(op, [compute](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs,
                                    Rounder round) {
    Quantise(compute(Dequantised(inputs[0], inputs[1], inputs[2]), attrs), inputs[3], inputs[4], -1, round, outputs[0]);
  });
  op.examples = {{{Bytes({2, 3, 7}), F32({}), I32(), F32({}), I32()}, {}, 0.1, 5},
                 {{Bytes({33}, kUInt8), F32({}), I32(), F32({}), I32()}, {}, 0.1, 5}};
  return op;
}

OpDef Unary(const std::string& name, const std::string& base) {
  return OfOne(name, base + " of the numbers that the data stand for, quantised.",
               [base](const Tensor& x, const Attrs&) { return Apply(base, {x}); });
}

Tensor Number(float value) { return Tensor::Of<float>({}, kFloat32, std::vector<float>{value}); }

/// x * clip(x + 3, 0, 6) / 6.
Tensor HardSwish(const Tensor& x, const Attrs&) {
  const Tensor limited = Apply("clip", {Apply("add", {x, Number(3)})}, {{"a_min", 0.0}, {"a_max", 6.0}});
  return Apply("divide", {Apply("multiply", {x, limited}), Number(6)});
}

const OpDef& RowOf(const std::vector<OpDef>& rows, const std::string& name) {
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const OpDef& other) { return other.name == name; });
  COLLAGE_CHECK(row != rows.end()) << "there is no operator '" << name << "'";
  return *row;
}

/// As Unary, with the attributes of `base` and what it may do to the shape.
OpDef WithAttrs(const std::vector<OpDef>& rows, const std::string& name, const std::string& base) {
  OpDef op = OfOne(name, base + " of the numbers that the data stand for, quantised.",
                   [base](const Tensor& x, const Attrs& attrs) { return Apply(base, {x}, attrs); });
  const OpDef& row = RowOf(rows, base);
  op.attrs = row.attrs;
  op.pattern = row.pattern;
  op.spatial = row.spatial;
  op.equal_dims = row.equal_dims;
  op.relation = Relation([base](const OpCall& call) {
    const TensorTypeNode& data = IntegersArg(call, 0);
    CheckParameters(call, 1, 2);
    CheckParameters(call, 3, 4);
    const std::vector<Type> floats{TensorType(data.shape(), kFloat32)};
    const Result<Type> type = GetOp(base)->def().relation({floats, call.attrs});
    if (!type.ok()) throw RelationFailure{type.reason().text};
    return TensorType(AsTensorType(*type)->shape(), data.dtype());
  });
  return op;
}

// ---- tuples ----

const std::vector<Type>& Fields(const OpCall& call, size_t index) {
  const TupleTypeNode* tuple = index < call.args.size() ? AsTupleType(call.args[index]) : nullptr;
  if (tuple == nullptr) throw RelationFailure{fmt::format("expects a tuple as argument {}", index)};
  return tuple->fields();
}

/// Joins quantised tensors, each requantised to the result's scale and zero point.
OpDef Concatenate() {
  OpDef op;
  op.name = "qnn.concatenate";
  op.doc = "Joins the tensors of a tuple along an axis, each quantised anew with the result's scale and zero point.";
  op.args = {"data", "input_scales", "input_zero_points", "output_scale", "output_zero_point"};
  op.attrs = {{"axis", AttrKind::kInt, 0, "the axis"}};
  op.pattern = OpPatternKind::kInjective;
  op.relation = Relation([](const OpCall& call) {
    const size_t count = Fields(call, 0).size();
    if (Fields(call, 1).size() != count || Fields(call, 2).size() != count) {
      throw RelationFailure{fmt::format("expects {} scales and zero points, got {} and {}", count,
                                        Fields(call, 1).size(), Fields(call, 2).size())};
    }
    for (size_t i = 0; i < count; ++i) {
      const std::vector<Type> one{Fields(call, 0)[i], Fields(call, 1)[i], Fields(call, 2)[i]};
      const OpCall field{one, call.attrs};
      IntegersArg(field, 0);
      CheckParameters(field, 1, 2);
    }
    CheckParameters(call, 3, 4);
    const Result<Type> type = GetOp("concatenate")->def().relation({call.args.first(1), call.attrs});
    if (!type.ok()) throw RelationFailure{type.reason().text};
    return *type;
  });
  SetRoundedReference(op,
                      [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs, Rounder round) {
                        const size_t count = (inputs.size() - 2) / 3;
                        std::vector<Tensor> parts;
                        for (size_t i = 0; i < count; ++i) {
                          parts.push_back(Tensor::Empty(inputs[i].shape(), outputs[0].dtype()));
                          Quantise(Dequantised(inputs[i], inputs[count + i], inputs[2 * count + i]), inputs[3 * count],
                                   inputs[3 * count + 1], -1, round, parts.back());
                        }
                        outputs[0] = Apply("concatenate", parts, attrs);
                      });
  op.examples = {{{TupleType({Bytes({2, 3, 5}), Bytes({2, 4, 5})}), TupleType({F32({}), F32({})}),
                   TupleType({I32(), I32()}), F32({}), I32()},
                  {{"axis", 1}},
                  0.1,
                  9}};
  return op;
}

}  // namespace

void AddQuantisedElementwise(std::vector<OpDef>& rows) {
  std::vector<OpDef> added{Binary("add", "add"), Binary("subtract", "subtract"), Binary("mul", "multiply")};
  for (const char* name : {"tanh", "exp", "sqrt", "rsqrt", "erf", "sigmoid", "log", "abs"}) {
    added.push_back(Unary(name, name));
    // Arguments without a root or logarithm give no number to quantise.
    const std::string_view text = name;
    if (text.ends_with("sqrt") || text == "log") added.back().examples.clear();
  }
  added.push_back(Unary("relu", "nn.relu"));
  added.push_back(
      OfOne("hardswish", "x * clip(x + 3, 0, 6) / 6 of the numbers that the data stand for, quantised.", HardSwish));
  added.push_back(WithAttrs(rows, "leaky_relu", "nn.leaky_relu"));
  added.push_back(WithAttrs(rows, "softmax", "nn.softmax"));
  added.push_back(WithAttrs(rows, "avg_pool2d", "nn.avg_pool2d"));
  added.back().examples = {{{Bytes({1, 4, 7, 8}), F32({}), I32(), F32({}), I32()},
                            {{"pool_size", V{3, 3}}, {"strides", V{2, 2}}, {"padding", V{1, 1}}},
                            0.1,
                            9}};
  added.push_back(Concatenate());
  for (OpDef& op : added) rows.push_back(std::move(op));
}

}  // namespace collage
