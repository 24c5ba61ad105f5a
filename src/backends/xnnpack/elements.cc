// elements.cc: XNNPACK's limits on integers.
#include "backends/xnnpack/elements.h"

#include <fmt/format.h>

#include <cmath>

#include "backends/xnnpack/operands.h"

namespace collage::xnnpack_toolchain {
namespace {

/// The functions whose results lie in a known range give them at one scale.
void CheckFixedScales(const Operation& o) {
  if (o.kind == Kind::kBinary && (o.binary == Binary::kDivide || o.binary == Binary::kMaximum ||
                                  o.binary == Binary::kMinimum || o.binary == Binary::kSquaredDifference)) {
    throw Refusal{"has no such operator in 8 bits"};
  }
  const bool is_signed = o.element == Element::kInt8;
  const auto expect = [&](double scale, int zero_point) {
    if (o.result_quantisation.scale() != scale || o.result_quantisation.zero_point != zero_point) {
      throw Refusal{fmt::format("gives this function at scale {} and zero point {} only", scale, zero_point)};
    }
  };
  if (o.kind == Kind::kSoftmax) {
    if (is_signed) throw Refusal{"has softmax of unsigned 8-bit integers only"};
    expect(1.0 / 256, 0);
  }
  if (o.kind == Kind::kAvgPool && is_signed) throw Refusal{"averages windows of unsigned 8-bit integers only"};
  if (o.kind != Kind::kUnary) return;
  switch (o.unary) {
    case Unary::kClamp: return;
    case Unary::kSigmoid: return expect(1.0 / 256, is_signed ? -128 : 0);
    case Unary::kTanh: return expect(1.0 / 128, is_signed ? 0 : 128);
    case Unary::kElu:
      if (!is_signed) throw Refusal{"has exponential units of signed 8-bit integers only"};
      return;
    case Unary::kLeakyRelu:
      if (is_signed) throw Refusal{"has leaky units of unsigned 8-bit integers only"};
      return;
    default: throw Refusal{"has no such function in 8 bits"};
  }
}

void CheckEightBits(const Operation& o, bool quantised) {
  const bool moves = o.kind == Kind::kMaxPool || o.kind == Kind::kPad || o.kind == Kind::kConcatenate ||
                     o.kind == Kind::kResizeBilinear || (o.kind == Kind::kUnary && o.unary == Unary::kClamp);
  if (!quantised) {
    if (!std::isinf(o.low) || !std::isinf(o.high)) throw Refusal{"clamps 8-bit integers with scales only"};
    if (o.kind != Kind::kMaxPool && o.kind != Kind::kPad && o.kind != Kind::kConcatenate) {
      throw Refusal{"computes on 8-bit integers with scales only"};
    }
    return;
  }
  for (const Operand& operand : o.data) {
    if (operand.quantisation.scales.size() != 1) throw Refusal{"takes one scale for all data"};
    const bool same = operand.quantisation.scale() == o.result_quantisation.scale() &&
                      operand.quantisation.zero_point == o.result_quantisation.zero_point;
    if (moves && !same) throw Refusal{"moves 8-bit integers to a result of equal scale only"};
  }
  if (o.result_quantisation.scales.size() != 1) throw Refusal{"gives results of one scale only"};
  if (o.kind == Kind::kPad) throw Refusal{"pads 8-bit integers as they are only"};
  CheckFixedScales(o);
  if (!o.weights.defined()) return;
  const Quantisation& weights = o.weights.quantisation;
  if (o.kind == Kind::kPRelu) throw Refusal{"has no slopes in 8 bits"};
  // Weights of the other signedness are shifted to this one.
  const int shift = o.weights.element == Element::kUInt8 ? 128 : 0;
  if (o.element == Element::kInt8 && weights.zero_point != shift) {
    throw Refusal{"multiplies signed data by weights around zero only"};
  }
  if (weights.scales.size() == 1) return;
  if (o.element != Element::kInt8 || o.kind != Kind::kConv) {
    throw Refusal{"takes a scale per channel in convolutions of signed integers only"};
  }
}

}  // namespace

void CheckElements(const Operation& o, Element result) {
  const bool quantised = !o.data[0].quantisation.scales.empty();
  const bool requantised = !o.result_quantisation.scales.empty();
  for (const Operand& operand : o.data) {
    if (operand.element != o.element || quantised == operand.quantisation.scales.empty()) {
      throw Refusal{"computes on operands of one type only"};
    }
  }
  if (quantised != requantised)
    throw Refusal{"computes in 8 bits only what is dequantised before and quantised behind"};
  if (result != o.element) throw Refusal{"gives results of its operands' type only"};
  if (o.weights.defined() && o.weights.quantisation.scales.empty() != !quantised) {
    throw Refusal{"multiplies data and weights of one kind only"};
  }
  if (o.element != Element::kFloat32) CheckEightBits(o, quantised);
}

}  // namespace collage::xnnpack_toolchain
