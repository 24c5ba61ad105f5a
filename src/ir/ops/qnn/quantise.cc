// quantise.cc: operators between floats and the integers that stand for them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "ir/eval/evaluate.h"
#include "ir/ops/families.h"
#include "ir/ops/qnn/quantised.h"
#include "ir/ops/relations.h"
#include "ir/ops/traits.h"
#include "runtime/dispatch.h"

namespace collage {
namespace {

constexpr int64_t kBlock = 512;  // elements that are rounded at a time

/// A parameter that is one for all channels, or has one value for each.
class ChannelValues {
 public:
  explicit ChannelValues(const Tensor& tensor) {
    for (int64_t i = 0; i < tensor.num_elements(); ++i) values_.push_back(tensor.At(i));
  }
  bool is_one() const { return values_.size() == 1; }
  double Of(int64_t channel) const { return is_one() ? values_[0] : values_[static_cast<size_t>(channel)]; }

 private:
  std::vector<double> values_;
};

/// Calls `body(begin, end, channel)` for all elements of `data`, those that follow each other in a channel at once, on
/// the pool. With `are_alike` channels do not matter.
template <typename Body>
void InRunsOfChannels(const Tensor& data, bool are_alike, int64_t axis, const Body& body) {
  const Channels channels(data.shape(), axis);
  InParallel(data.num_elements(), [&](int64_t begin, int64_t end) {
    if (are_alike) return body(begin, end, 0);
    while (begin < end) {
      const int64_t next = std::min(end, channels.EndOfRun(begin));
      body(begin, next, channels.Of(begin));
      begin = next;
    }
  });
}

}  // namespace

void CheckParameters(const OpCall& call, const TensorTypeNode& data, int64_t axis, size_t scale, size_t zero_point) {
  if (!TensorArg(call, scale).dtype().is_floating()) {
    throw RelationFailure{"expects a float as scale, got " + ToString(call.args[scale])};
  }
  if (!TensorArg(call, zero_point).dtype().is_integer()) {
    throw RelationFailure{"expects an integer as zero point, got " + ToString(call.args[zero_point])};
  }
  for (size_t i : {scale, zero_point}) {
    const std::vector<Dim>& shape = TensorArg(call, i).shape();
    if (shape.empty() || (shape.size() == 1 && shape[0] == Dim(1))) continue;
    const Dim length = data.shape()[NormalAxis(axis, data.rank())];
    if (shape.size() != 1 || (shape[0] != length && !length.is_any() && !shape[0].is_any())) {
      throw RelationFailure{fmt::format("expects one value or {} along axis {} as argument {}, got {}",
                                        length.ToString(), axis, i, ToString(call.args[i]))};
    }
  }
}

void CheckParameters(const OpCall& call, size_t scale, size_t zero_point) {
  for (size_t i : {scale, zero_point}) {
    const std::vector<Dim>& shape = TensorArg(call, i).shape();
    const bool is_one = shape.empty() || (shape.size() == 1 && (shape[0] == Dim(1) || shape[0].is_any()));
    if (!is_one)
      throw RelationFailure{fmt::format("expects one value as argument {}, got {}", i, ToString(call.args[i]))};
  }
  CheckParameters(call, TensorArg(call, scale), 0, scale, zero_point);
}

const TensorTypeNode& IntegersArg(const OpCall& call, size_t index) {
  const TensorTypeNode& type = TensorArg(call, index);
  if (!type.dtype().is_integer()) {
    throw RelationFailure{fmt::format("expects integers as argument {}, got {}", index, ToString(call.args[index]))};
  }
  return type;
}

Tensor Apply(std::string_view name, const std::vector<Tensor>& inputs, Attrs attrs) {
  const OpDef& op = GetOp(name)->def();
  std::vector<Type> types;
  for (const Tensor& input : inputs) types.push_back(TensorType(input.shape(), input.dtype()));
  if (op.name == "concatenate") types = {TupleType(types)};
  return EvaluateOp(op, CompleteAttrs(op, std::move(attrs)), types, inputs).at(0);
}

Channels::Channels(const Shape& shape, int64_t axis) {
  const auto rank = static_cast<int64_t>(shape.size());
  if (axis < -rank || axis >= rank) return;  // one scale for all: the axis means nothing
  const auto at = static_cast<size_t>(axis < 0 ? axis + rank : axis);
  length_ = shape[at];
  for (size_t d = at + 1; d < shape.size(); ++d) inner_ *= shape[d];
}

void Dequantise(const Tensor& data, const Tensor& scale, const Tensor& zero_point, int64_t axis, const Tensor& output) {
  const ChannelValues scales(scale), zeros(zero_point);
  DispatchType(data.dtype(), [&]<typename From>() {
    DispatchType(output.dtype(), [&]<typename To>() {
      const From* from = data.data<From>();
      To* to = output.data<To>();
      InRunsOfChannels(data, scales.is_one() && zeros.is_one(), axis, [&](int64_t begin, int64_t end, int64_t channel) {
        const double step = scales.Of(channel), zero = zeros.Of(channel);
        for (int64_t i = begin; i < end; ++i) to[i] = FromDouble<To>((ToDouble(from[i]) - zero) * step);
      });
    });
  });
}

Tensor Dequantised(const Tensor& data, const Tensor& scale, const Tensor& zero_point, int64_t axis) {
  const Tensor result = Tensor::Empty(data.shape(), kFloat32);
  Dequantise(data, scale, zero_point, axis, result);
  return result;
}

void Quantise(const Tensor& data, const Tensor& scale, const Tensor& zero_point, int64_t axis, Rounder& round,
              const Tensor& output) {
  const ChannelValues scales(scale), zeros(zero_point);
  const bool is_double = data.dtype() == kFloat64;
  DispatchType(data.dtype(), [&]<typename From>() {
    DispatchType(output.dtype(), [&]<typename To>() {
      const From* from = data.data<From>();
      To* to = output.data<To>();
      InRunsOfChannels(data, scales.is_one() && zeros.is_one(), axis, [&](int64_t begin, int64_t end, int64_t channel) {
        Rounder rounds = round.After(begin);
        const double step = scales.Of(channel), zero = zeros.Of(channel);
        std::array<double, kBlock> block;
        for (; begin < end; begin += kBlock) {
          const int64_t count = std::min(end - begin, kBlock);
          for (int64_t i = 0; i < count; ++i) {
            const double x = ToDouble(from[begin + i]);
            block[static_cast<size_t>(i)] =
                is_double ? x / step : static_cast<double>(static_cast<float>(x) / static_cast<float>(step));
          }
          rounds.Round(block.data(), count);
          for (int64_t i = 0; i < count; ++i) to[begin + i] = FromDouble<To>(block[static_cast<size_t>(i)] + zero);
        }
      });
    });
  });
  round = round.After(data.num_elements());
}

namespace {

OpDef Quantize() {
  OpDef op;
  op.name = "qnn.quantize";
  op.doc = "round(data / scale) + zero_point, ties to even, limited to the range of out_dtype.";
  op.args = {"data", "output_scale", "output_zero_point"};
  op.attrs = {{"axis", AttrKind::kInt, -1, "the axis of scales per channel"},
              {"out_dtype", AttrKind::kDType, "int8", "an integer dtype"}};
  op.pattern = OpPatternKind::kElemWise;
  op.layout_agnostic = true;
  op.equal_dims = SameShapeDims;
  op.relation = Relation([](const OpCall& call) {
    CheckParameters(call, TensorArg(call, 0), call.attrs.Int("axis"), 1, 2);
    const DataType dtype = call.attrs.Type("out_dtype");
    if (!dtype.is_integer()) throw RelationFailure{"quantises to integers, not to " + dtype.ToString()};
    return TensorType(TensorArg(call, 0).shape(), dtype);
  });
  SetRoundedReference(op,
                      [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs, Rounder round) {
                        Quantise(inputs[0], inputs[1], inputs[2], attrs.Int("axis"), round, outputs[0]);
                      });
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
  op.equal_dims = SameShapeDims;
  op.relation = Relation([](const OpCall& call) {
    CheckParameters(call, TensorArg(call, 0), call.attrs.Int("axis"), 1, 2);
    if (!TensorArg(call, 0).dtype().is_integer()) {
      throw RelationFailure{"expects integers, got " + ToString(call.args[0])};
    }
    const std::string& name = call.attrs.String("out_dtype");
    const DataType dtype = name.empty() ? TensorArg(call, 1).dtype() : DataType::FromString(name);
    if (!dtype.is_floating()) throw RelationFailure{"dequantises to floats, not to " + name};
    return TensorType(TensorArg(call, 0).shape(), dtype);
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    Dequantise(inputs[0], inputs[1], inputs[2], attrs.Int("axis"), outputs[0]);
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
