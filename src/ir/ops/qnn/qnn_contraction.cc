// qnn_contraction.cc: contractions of Relay's quantised dialect: sums of products of integers, less their zero points,
// exactly, as int32. Padding is the number 0, the zero point among integers. Scales are arguments for passes
// that rescale the sums, and change nothing about them.
#include <fmt/format.h>

#include <algorithm>

#include "collage/support/error.h"
#include "ir/ops/families.h"
#include "ir/ops/qnn/quantised.h"
#include "ir/ops/relations.h"

namespace collage {
namespace {

using V = std::vector<int64_t>;

/// The weight's dimension that may have a zero point and a scale for each index: that of the result's channels.
int64_t ChannelsOfWeight(const Attrs& attrs) {
  if (!attrs.Has("kernel_layout")) return 0;
  const size_t at = attrs.String("kernel_layout").find('O');
  return at == std::string::npos ? 0 : static_cast<int64_t>(at);
}

Tensor LessZeroPoint(const Tensor& data, const Tensor& zero_point, int64_t axis) {
  return Dequantised(data, Tensor::Of<float>({}, kFloat32, std::vector<float>{1}), zero_point, axis);
}

/// Operands whose values are numbers: the contraction that is called so wants one type for both.
std::vector<Type> AsFloats(const TensorTypeNode& data, const TensorTypeNode& weight) {
  return {TensorType(data.shape(), kFloat32), TensorType(weight.shape(), kFloat32)};
}

/// The contraction called `base` of quantised values. `has_channels`: the second argument may have scales by channel.
OpDef Contraction(const std::vector<OpDef>& rows, const std::string& base, bool has_channels) {
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const OpDef& other) { return other.name == base; });
  COLLAGE_CHECK(row != rows.end()) << "there is no operator '" << base << "'";
  OpDef op;
  op.name = "qnn." + base.substr(3);
  op.doc = base + " of integers less their zero points, exactly; the scales change nothing.";
  const bool is_product = row->args[0] == "x";
  const std::string left = is_product ? "x" : "input", right = is_product ? "y" : "kernel";
  op.args = {row->args[0],          row->args[1],    left + "_zero_point",
             right + "_zero_point", left + "_scale", right + "_scale"};
  op.attrs = row->attrs;
  for (AttrField& field : op.attrs) {
    if (field.name == "out_dtype") field.default_value = "int32";
    if (field.name == "transpose_b") field.default_value = true;
  }
  op.pattern = OpPatternKind::kOutEWiseFusable;
  op.relation = Relation([base, has_channels](const OpCall& call) {
    const TensorTypeNode& data = IntegersArg(call, 0);
    const TensorTypeNode& weight = IntegersArg(call, 1);
    const std::string& dtype = call.attrs.String("out_dtype");
    if (dtype.empty() || !DataType::FromString(dtype).is_integer()) {
      throw RelationFailure{"adds up integers, not '" + dtype + "'"};
    }
    const std::vector<Type> floats = AsFloats(data, weight);
    const Result<Type> type = GetOp(base)->def().relation({floats, call.attrs});
    if (!type.ok()) throw RelationFailure{type.reason().text};
    CheckParameters(call, 4, 2);
    if (has_channels) {
      CheckParameters(call, weight, ChannelsOfWeight(call.attrs), 5, 3);
    } else {
      CheckParameters(call, 5, 3);
    }
    return *type;
  });
  op.reference = [base](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    outputs[0] = Apply(
        base, {LessZeroPoint(inputs[0], inputs[2], -1), LessZeroPoint(inputs[1], inputs[3], ChannelsOfWeight(attrs))},
        attrs);
  };
  op.multiply_adds = [base](const OpCall& call) {
    const std::vector<Type> floats = AsFloats(*AsTensorType(call.args[0]), *AsTensorType(call.args[1]));
    return GetOp(base)->def().multiply_adds({floats, call.attrs});
  };
  return op;
}

Type Bytes(Shape shape, DataType dtype = kInt8) { return TensorType(shape, dtype); }
Type I32(Shape shape = {}) { return TensorType(shape, kInt32); }

/// Appends the types of zero points and scales to data and weight.
std::vector<Type> WithParameters(Type data, Type weight, const Shape& channels = {}) {
  return {std::move(data), std::move(weight), I32(), I32(channels), F32({}), F32(channels)};
}

}  // namespace

void AddQuantisedContractions(std::vector<OpDef>& rows) {
  std::vector<OpDef> added;
  for (const char* base : {"nn.conv2d", "nn.conv2d_transpose", "nn.dense"}) {
    added.push_back(Contraction(rows, base, /*has_channels=*/true));
  }
  added.push_back(Contraction(rows, "nn.batch_matmul", /*has_channels=*/false));
  const Attrs padded{{"padding", V{1, 1}}};
  added[0].examples = {{WithParameters(Bytes({1, 4, 7, 6}, kUInt8), Bytes({6, 4, 3, 3})), padded, 0.1, 5},
                       {WithParameters(Bytes({1, 4, 7, 6}), Bytes({6, 4, 3, 3}), {6}), {}, 0.1, 5},
                       {WithParameters(Bytes({1, 7, 6, 4}), Bytes({3, 3, 4, 6}), {6}),
                        {{"data_layout", "NHWC"}, {"kernel_layout", "HWIO"}},
                        0.1,
                        5}};
  added[1].examples = {
      {WithParameters(Bytes({1, 4, 5, 6}, kUInt8), Bytes({4, 6, 2, 2})), {{"strides", V{2, 2}}}, 0.1, 5}};
  added[2].examples = {{WithParameters(Bytes({3, 17}, kUInt8), Bytes({5, 17})), {}, 0.1, 5},
                       {WithParameters(Bytes({3, 17}), Bytes({5, 17}), {5}), {}, 0.1, 5}};
  added[3].examples = {{WithParameters(Bytes({2, 3, 9}), Bytes({2, 5, 9}, kUInt8)), {}, 0.1, 5}};
  for (OpDef& op : added) rows.push_back(std::move(op));
}

}  // namespace collage
