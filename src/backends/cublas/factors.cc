// factors.cc: what stands before a product belongs to it, where the library multiplies 8-bit integers.
#include "backends/cublas/factors.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "collage/ir/op.h"
#include "ir/ops/relations.h"

namespace collage::cublas {
namespace {

using matches::MatchReader;
using matches::Operand;
using matches::Refusal;

/// Tensor cores are fed with rows that are whole units of it.
constexpr int64_t kUnitBytes = 16;

const CallNode* CallOf(const Expr& expr, std::string_view op) {
  const CallNode* call = As<CallNode>(expr);
  return call != nullptr && call->op() != nullptr && call->op()->name == op ? call : nullptr;
}

Operand Integers(const MatchReader& reader, const Expr& expr) {
  Operand operand = reader.OperandOf(expr);
  if (operand.dtype != kInt8) throw Refusal{"multiplies signed 8-bit integers, got " + operand.dtype.ToString()};
  return operand;
}

Tensor ConstantOf(const MatchReader& reader, const Expr& expr, const char* what) {
  Operand operand = reader.OperandOf(expr);
  if (operand.input >= 0) throw Refusal{std::string("takes constant ") + what + " only"};
  return std::move(operand.constant);
}

/// int32 values as int8; nothing where one does not fit.
std::optional<Tensor> Narrowed(const Tensor& tensor) {
  using Limits = std::numeric_limits<int8_t>;
  const auto fits = [](int32_t value) { return value >= Limits::min() && value <= Limits::max(); };
  if (!std::ranges::all_of(tensor.span<int32_t>(), fits)) return {};
  return tensor.Cast(kInt8);
}

}  // namespace

Quantisation ReadQuantisation(const MatchReader& reader, const CallNode& call) {
  const Tensor scale = ConstantOf(reader, call.args()[1], "scales");
  const Tensor zero_point = ConstantOf(reader, call.args()[2], "zero points");
  for (int64_t i = 0; i < zero_point.num_elements(); ++i) {
    if (zero_point.At(i) != 0) throw Refusal{"multiplies integers around a zero point of 0 only"};
  }
  const auto rank = static_cast<int64_t>(matches::TensorOf(call.args()[0]).static_shape().size());
  const int64_t axis = call.attrs().Int("axis");
  return {scale, axis < 0 ? axis + rank : axis};
}

Factor ReadFactor(const MatchReader& reader, const Expr& expr) {
  if (const CallNode* cast = CallOf(expr, "cast")) {
    if (matches::TensorOf(expr).dtype() != kInt32) throw Refusal{"multiplies integers that are widened to int32 only"};
    return {.values = Integers(reader, cast->args()[0])};
  }
  if (const CallNode* dequantize = CallOf(expr, "qnn.dequantize")) {
    if (matches::TensorOf(expr).dtype() != kFloat32) throw Refusal{"dequantises to float32 only"};
    const Quantisation quantisation = ReadQuantisation(reader, *dequantize);
    return {.values = Integers(reader, dequantize->args()[0]),
            .scale = quantisation.scale,
            .scale_axis = quantisation.axis};
  }
  Factor factor{.values = reader.OperandOf(expr)};
  Operand& values = factor.values;
  if (values.dtype == kInt32 && values.input < 0) {
    const std::optional<Tensor> narrowed = Narrowed(values.constant);
    if (!narrowed) throw Refusal{"multiplies integers that fit 8 bits only"};
    values.constant = *narrowed;
    values.dtype = kInt8;
  }
  return factor;
}

void Factor::Require(bool transposed) {
  if (is_transposed == transposed) return;
  if (values.input >= 0) {
    throw Refusal{"multiplies 8-bit integers where the left matrix is [M, K] and the right one [N, K], as they lie"};
  }
  Transpose();
}

void Factor::Prefer(bool transposed) {
  if (is_transposed == transposed || values.input >= 0) return;
  const auto is_whole = [&](int64_t elements) {
    return elements * static_cast<int64_t>(values.dtype.size_bytes()) % kUnitBytes == 0;
  };
  const size_t rank = values.shape.size();
  if (!is_whole(values.shape[rank - 1]) && is_whole(values.shape[rank - 2])) Transpose();
}

void Factor::Transpose() {
  const size_t rank = values.shape.size();
  Shape turned = values.shape;
  std::swap(turned[rank - 2], turned[rank - 1]);
  std::vector<int64_t> strides = Strides(values.shape);
  std::swap(strides[rank - 2], strides[rank - 1]);
  const Tensor target = Tensor::Empty(turned, values.dtype);
  CopyStrided(values.constant.Reshaped(values.shape), strides, target);
  values.constant = target;
  values.shape = turned;
  is_transposed = !is_transposed;
}

}  // namespace collage::cublas
