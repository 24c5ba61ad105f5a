// requantise.cc: qnn.requantize, from one scale and zero point to others, and the simulated operators, which compute
// what quantising does without leaving floats.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "ir/ops/families.h"
#include "ir/ops/qnn/quantised.h"
#include "ir/ops/relations.h"
#include "runtime/dispatch.h"

namespace collage {
namespace {

Type I32(Shape shape = {}) { return TensorType(shape, kInt32); }

void CheckChoice(const OpCall& call, const char* attr, const std::vector<std::string>& choices) {
  const std::string& given = call.attrs.String(attr);
  if (std::find(choices.begin(), choices.end(), given) != choices.end()) return;
  std::string text;
  for (const std::string& choice : choices) text += (text.empty() ? "'" : ", '") + choice + "'";
  throw RelationFailure{fmt::format("expects {} to be one of {}, got '{}'", attr, text, given)};
}

Type RequantizeType(const OpCall& call) {
  const TensorTypeNode& data = IntegersArg(call, 0);
  CheckParameters(call, data, call.attrs.Int("axis"), 1, 2);
  CheckParameters(call, 3, 4);
  CheckChoice(call, "rounding", {"None", "UPWARD", "TONEAREST"});
  CheckChoice(call, "compute_dtype", {"None", "int64", "float32", "float64"});
  const DataType dtype = call.attrs.Type("out_dtype");
  if (!dtype.is_integer()) throw RelationFailure{"quantises to integers, not to " + dtype.ToString()};
  return TensorType(data.shape(), dtype);
}

/// Ties up, or away from zero.
template <typename T>
T RoundTies(T value, bool is_upward) {
  if (is_upward) return std::floor(value + T(0.5));
  return std::copysign(std::floor(std::abs(value) + T(0.5)), value);
}

/// In floats of type T: every step is one of T. Without a rounding of its own `ties` is empty: ties to even.
template <typename T>
void RequantizeInFloats(std::span<const Tensor> inputs, int64_t axis, const std::string& ties, Rounder& round,
                        const Tensor& output) {
  const Channels channels(inputs[0].shape(), axis);
  const T zero = static_cast<T>(inputs[4].At(0));
  for (int64_t i = 0; i < inputs[0].num_elements(); ++i) {
    const T factor = static_cast<T>(inputs[1].At(channels.Of(inputs[1], i))) / static_cast<T>(inputs[3].At(0));
    const T shifted = static_cast<T>(inputs[0].At(i)) - static_cast<T>(inputs[2].At(channels.Of(inputs[2], i)));
    const T value = shifted * factor;
    const bool is_plain = round.is_random() || ties.empty();
    const T whole = is_plain ? static_cast<T>(round(static_cast<double>(value))) : RoundTies(value, ties == "UPWARD");
    output.Set(i, static_cast<double>(whole + zero));
  }
}

/// In integers of 64 bits: a multiplication by a whole number, and a shift.
void RequantizeInIntegers(std::span<const Tensor> inputs, int64_t axis, bool is_upward, Rounder& round,
                          const Tensor& output) {
  const Channels channels(inputs[0].shape(), axis);
  for (int64_t i = 0; i < inputs[0].num_elements(); ++i) {
    const FixedPoint factor = FixedPoint::Of(static_cast<double>(inputs[1].At(channels.Of(inputs[1], i))) /
                                             static_cast<double>(inputs[3].At(0)));
    const auto shifted =
        static_cast<int64_t>(inputs[0].At(i)) - static_cast<int64_t>(inputs[2].At(channels.Of(inputs[2], i)));
    const int64_t product = (shifted << factor.left_shift()) * factor.whole;
    const int64_t half = int64_t{1} << (factor.right_shift() - 1);
    const int64_t nearest = (product + (is_upward || product >= 0 ? half : half - 1)) >> factor.right_shift();
    const double whole = round.is_random()
                             ? round(std::ldexp(static_cast<double>(product), -static_cast<int>(factor.right_shift())))
                             : static_cast<double>(nearest);
    output.Set(i, whole + inputs[4].At(0));
  }
}

void RequantizeReference(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs, Rounder round) {
  const int64_t axis = attrs.Int("axis");
  const std::string& rounding = attrs.String("rounding");
  const std::string& compute = attrs.String("compute_dtype");
  const std::string ties = rounding == "None" ? "" : rounding;
  if (compute == "int64") return RequantizeInIntegers(inputs, axis, ties != "TONEAREST", round, outputs[0]);
  if (compute == "float64") return RequantizeInFloats<double>(inputs, axis, ties, round, outputs[0]);
  if (!ties.empty()) return RequantizeInFloats<float>(inputs, axis, ties, round, outputs[0]);
  Quantise(Dequantised(inputs[0], inputs[1], inputs[2], axis), inputs[3], inputs[4], -1, round, outputs[0]);
}

OpDef Requantize() {
  OpDef op;
  op.name = "qnn.requantize";
  op.doc =
      "(data - input_zero_point) * input_scale / output_scale, rounded, + output_zero_point, limited to the range of "
      "out_dtype.";
  op.args = {"data", "input_scale", "input_zero_point", "output_scale", "output_zero_point"};
  op.attrs = {{"axis", AttrKind::kInt, -1, "the axis of the data's scales per channel"},
              {"rounding", AttrKind::kString, "None",
               "where ties go: UPWARD, TONEAREST (away from zero); None: to even, and UPWARD in integers"},
              {"compute_dtype", AttrKind::kString, "None",
               "what is computed in: int64 (a fixed-point factor), float32, float64; None: float32"},
              {"out_dtype", AttrKind::kDType, "int8", "an integer dtype"}};
  op.pattern = OpPatternKind::kElemWise;
  op.relation = Relation(RequantizeType);
  SetRoundedReference(op, RequantizeReference);
  for (const char* rounding : {"None", "UPWARD", "TONEAREST"}) {
    for (const char* compute : {"None", "int64", "float32", "float64"}) {
      op.examples.push_back({{I32({2, 3, 5}), F32({3}), I32({3}), F32({}), I32()},
                             {{"axis", 1}, {"rounding", rounding}, {"compute_dtype", compute}, {"out_dtype", "uint8"}},
                             0.1,
                             9});
    }
  }
  op.examples.push_back({{TensorType(Shape{17}, kUInt8), F32({}), I32(), F32({}), I32()}, {}, 0.1, 9});
  return op;
}

// ---- simulated ----

/// Returns the type of a code of the simulated operators: none (no quantisation), int8, uint8, int32.
DataType TypeOfCode(double code) {
  constexpr std::array kTypes{kFloat32, kInt8, kUInt8, kInt32};
  const auto index = static_cast<size_t>(std::max(code, 0.0));
  return index < kTypes.size() ? kTypes[index] : kFloat32;
}

OpDef Simulated(bool quantises) {
  OpDef op;
  const std::string prefix = quantises ? "output" : "input";
  op.name = quantises ? "qnn.simulated_quantize" : "qnn.simulated_dequantize";
  op.doc = quantises
               ? "As qnn.quantize, the integers as floats. The dtype is an argument: 0 none, 1 int8, 2 uint8, 3 int32."
               : "As qnn.dequantize, of integers that are floats. The dtype is an argument: 0 none, 1 to 3 some.";
  op.args = {"data", quantises ? "out_dtype" : "in_dtype", prefix + "_scale", prefix + "_zero_point"};
  op.attrs = {{"axis", AttrKind::kInt, -1, "the axis of scales per channel"}};
  op.pattern = OpPatternKind::kElemWise;
  op.relation = Relation([](const OpCall& call) {
    const TensorTypeNode& data = TensorArg(call, 0);
    if (!data.dtype().is_floating()) throw RelationFailure{"expects floats, got " + ToString(call.args[0])};
    const TensorTypeNode& code = IntegersArg(call, 1);
    if (code.rank() > 0 && code.shape() != std::vector<Dim>{Dim(1)} && code.shape() != std::vector<Dim>{Dim::Any()}) {
      throw RelationFailure{"expects one code of a dtype, got " + ToString(call.args[1])};
    }
    CheckParameters(call, data, call.attrs.Int("axis"), 2, 3);
    return call.args[0];
  });
  const auto reference = [quantises](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs,
                                     Rounder round) {
    const DataType dtype = TypeOfCode(inputs[1].At(0));
    if (!dtype.is_integer()) {
      outputs[0] = inputs[0].Clone();
    } else if (quantises) {
      const Tensor integers = Tensor::Empty(inputs[0].shape(), dtype);
      Quantise(inputs[0], inputs[2], inputs[3], attrs.Int("axis"), round, integers);
      outputs[0] = integers.Cast(inputs[0].dtype());
    } else {
      Dequantise(inputs[0], inputs[2], inputs[3], attrs.Int("axis"), outputs[0]);
    }
  };
  if (quantises) {
    SetRoundedReference(op, reference);
  } else {
    op.reference = [reference](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
      reference(inputs, attrs, outputs, Rounder());
    };
  }
  op.examples = {{{F32({2, 3, 5}), I32(), F32({3}), I32({3})}, {{"axis", 1}}, 0.1, 3},
                 {{F32({17}), I32(), F32({}), I32()}, {}, 0.1, 3}};
  return op;
}

}  // namespace

FixedPoint FixedPoint::Of(double factor) {
  if (factor == 0) return {0, 0};
  int exponent = 0;
  auto whole = static_cast<int64_t>(std::round(std::frexp(factor, &exponent) * 0x1p31));
  if (whole == int64_t{1} << 31) {
    whole /= 2;
    ++exponent;
  }
  return {whole, exponent};
}

void AddRequantiseOps(std::vector<OpDef>& rows) {
  rows.push_back(Requantize());
  rows.push_back(Simulated(/*quantises=*/true));
  rows.push_back(Simulated(/*quantises=*/false));
}

}  // namespace collage
