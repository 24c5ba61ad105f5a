// quantise.cc: operators between floats and the integers that stand for them.
#include <fmt/format.h>

#include <cmath>

#include "ir/ops/families.h"
#include "ir/ops/relations.h"
#include "runtime/dispatch.h"

namespace collage {
namespace {

using V = std::vector<int64_t>;

/// Scale and zero point are scalars (or have one element), or have one element per index of the axis.
void CheckParameters(const OpCall& call) {
  const TensorTypeNode& data = TensorArg(call, 0);
  if (!TensorArg(call, 1).dtype().is_floating()) {
    throw RelationFailure{"expects a float as scale, got " + ToString(call.args[1])};
  }
  if (!TensorArg(call, 2).dtype().is_integer()) {
    throw RelationFailure{"expects an integer as zero point, got " + ToString(call.args[2])};
  }
  for (size_t i : {size_t{1}, size_t{2}}) {
    const std::vector<Dim>& shape = TensorArg(call, i).shape();
    if (shape.empty() || (shape.size() == 1 && shape[0] == Dim(1))) continue;
    const Dim length = data.shape()[static_cast<size_t>(NormalAxis(call.attrs.Int("axis"), data.rank()))];
    if (shape.size() != 1 || (shape[0] != length && !length.is_any() && !shape[0].is_any())) {
      throw RelationFailure{fmt::format("expects one value or {} along axis {} as argument {}, got {}",
                                        length.ToString(), call.attrs.Int("axis"), i, ToString(call.args[i]))};
    }
  }
}

/// Which element of scale or zero point belongs to element `i` of the data.
class Channels {
 public:
  Channels(const Tensor& data, const Attrs& attrs) {
    if (data.rank() == 0) return;
    const int64_t axis = attrs.Int("axis");
    if (axis < -data.rank() || axis >= data.rank()) return;  // one scale for all: the axis means nothing
    const auto at = static_cast<size_t>(NormalAxis(axis, data.rank()));
    length_ = data.shape()[at];
    for (size_t d = at + 1; d < data.shape().size(); ++d) inner_ *= data.shape()[d];
  }
  int64_t Of(const Tensor& parameter, int64_t i) const {
    return parameter.num_elements() == 1 ? 0 : i / inner_ % length_;
  }

 private:
  int64_t length_ = 1;
  int64_t inner_ = 1;
};

OpDef Quantize() {
  OpDef op;
  op.name = "qnn.quantize";
  op.doc = "round(data / scale) + zero_point, ties to even, limited to the range of out_dtype.";
  op.args = {"data", "output_scale", "output_zero_point"};
  op.attrs = {{"axis", AttrKind::kInt, -1, "the axis of scales per channel"},
              {"out_dtype", AttrKind::kDType, "int8", "an integer dtype"}};
  op.pattern = OpPatternKind::kElemWise;
  op.layout_agnostic = true;
  op.relation = Relation([](const OpCall& call) {
    CheckParameters(call);
    const DataType dtype = call.attrs.Type("out_dtype");
    if (!dtype.is_integer()) throw RelationFailure{"quantises to integers, not to " + dtype.ToString()};
    return TensorType(TensorArg(call, 0).shape(), dtype);
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    const Channels channels(inputs[0], attrs);
    // The quotient of float32 is a float32: at ties it decides which integer is nearest.
    const bool is_double = inputs[0].dtype() == kFloat64;
    for (int64_t i = 0; i < inputs[0].num_elements(); ++i) {
      const double x = inputs[0].At(i);
      const double scale = inputs[1].At(channels.Of(inputs[1], i));
      const double quotient =
          is_double ? x / scale : static_cast<double>(static_cast<float>(x) / static_cast<float>(scale));
      outputs[0].Set(i, std::nearbyint(quotient) + inputs[2].At(channels.Of(inputs[2], i)));
    }
  };
  const Type zero = TensorType(Shape{}, kInt8);
  op.examples = {
      {{F32({2, 3, 17}), F32({}), zero}, {}, 0.01, 1},
      {{F32({2, 6, 5}), F32({6}), TensorType(Shape{6}, kUInt8)}, {{"axis", 1}, {"out_dtype", "uint8"}}, 0.01, 1}};
  return op;
}

OpDef Dequantize() {
  OpDef op;
  op.name = "qnn.dequantize";
  op.doc = "(data - zero_point) * scale.";
  op.args = {"data", "input_scale", "input_zero_point"};
  op.attrs = {{"axis", AttrKind::kInt, -1, "the axis of scales per channel"},
              {"out_dtype", AttrKind::kDType, "", "a float dtype; empty: the scale's"}};
  op.pattern = OpPatternKind::kElemWise;
  op.layout_agnostic = true;
  op.relation = Relation([](const OpCall& call) {
    CheckParameters(call);
    if (!TensorArg(call, 0).dtype().is_integer()) {
      throw RelationFailure{"expects integers, got " + ToString(call.args[0])};
    }
    const std::string& name = call.attrs.String("out_dtype");
    const DataType dtype = name.empty() ? TensorArg(call, 1).dtype() : DataType::FromString(name);
    if (!dtype.is_floating()) throw RelationFailure{"dequantises to floats, not to " + name};
    return TensorType(TensorArg(call, 0).shape(), dtype);
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    const Channels channels(inputs[0], attrs);
    for (int64_t i = 0; i < inputs[0].num_elements(); ++i) {
      const double shifted = inputs[0].At(i) - inputs[2].At(channels.Of(inputs[2], i));
      outputs[0].Set(i, shifted * inputs[1].At(channels.Of(inputs[1], i)));
    }
  };
  op.examples = {{{TensorType(Shape{2, 3, 17}, kUInt8), F32({}), TensorType(Shape{}, kUInt8)}, {}, 0, 9},
                 {{TensorType(Shape{6, 5}, kInt8), F32({6}), TensorType(Shape{6}, kInt8)}, {{"axis", 0}}, -9, 9}};
  return op;
}

}  // namespace

void AddQuantisedOps(std::vector<OpDef>& rows) {
  rows.push_back(Quantize());
  rows.push_back(Dequantize());
}

}  // namespace collage
