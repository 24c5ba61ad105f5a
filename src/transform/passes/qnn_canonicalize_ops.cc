// qnn_canonicalize_ops.cc: Relay's quantised dialect becomes what toolchains know: qnn.dequantize, operators of floats,
// qnn.quantize, which is the form that kernels of 8-bit integers are matched in, or arithmetic of integers.
//
// A contraction of the dialect gives sums in int32, which are rescaled further down:
//
//     qnn.conv2d → add(·, bias) → nn.relu → qnn.requantize
//
// Such sums stand for numbers, too, at a scale that is the product of the operands' scales. Beside what computes the
// sums in int32, what computes these numbers in floats is kept for each of them. qnn.requantize and qnn.dequantize of
// sums at that scale take the numbers, and nobody else having use for the sums, they vanish:
//
//     qnn.dequantize → nn.conv2d → add(·, bias) → nn.relu → qnn.quantize
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "collage/ir/infer_type.h"
#include "ir/ops/qnn/quantised.h"
#include "transform/passes.h"
#include "transform/rewriting.h"

namespace collage {
namespace {

using Ints = std::vector<int64_t>;

const TensorTypeNode& TensorOf(const Expr& expr) { return *AsTensorType(InferType(expr)); }

/// The value of a constant, else null.
const Tensor* ConstantOf(const Expr& expr) {
  const ConstantNode* constant = As<ConstantNode>(expr);
  return constant == nullptr ? nullptr : &constant->value();
}

bool IsConstantOf(const Expr& expr, double wanted) {
  const Tensor* value = ConstantOf(expr);
  if (value == nullptr) return false;
  for (int64_t i = 0; i < value->num_elements(); ++i) {
    if (value->At(i) != wanted) return false;
  }
  return true;
}

/// Whether two are constants of one value each, the same.
bool AreEqualConstants(const Expr& a, const Expr& b) {
  const Tensor* x = ConstantOf(a);
  const Tensor* y = ConstantOf(b);
  return x != nullptr && y != nullptr && x->num_elements() == 1 && y->num_elements() == 1 && x->At(0) == y->At(0);
}

/// The least and the greatest value of an integer type.
std::pair<double, double> RangeOf(DataType dtype) {
  if (dtype.code == DataType::Code::kUInt) return {0, std::ldexp(1.0, dtype.bits) - 1};
  return {-std::ldexp(1.0, dtype.bits - 1), std::ldexp(1.0, dtype.bits - 1) - 1};
}

Expr Number(double value, DataType dtype) { return MakeScalar(value, dtype); }

/// Meaning of a sum: `numbers` are floats, `scale` is a constant of one element, or one for each index of `axis`.
struct Sum {
  Expr numbers;
  Tensor scale;
  int64_t axis;
};

/// The rules, one for each operator of the dialect, and what they share. `call` is the one being rewritten.
class Canonicalizer {
 public:
  /// Rewrites `expr`, whose children are rewritten already.
  Expr Rewrite(const Expr& expr) {
    const CallNode* call = As<CallNode>(expr);
    if (call == nullptr || call->op() == nullptr) return expr;
    Follow(expr, *call);
    const auto rule =
        std::find_if(kRules.begin(), kRules.end(), [&](const Rule& other) { return other.op == call->op()->name; });
    const Expr result = rule == kRules.end() ? nullptr : (this->*rule->rewrite)(*call);
    return result ? result : expr;
  }

 private:
  struct Rule {
    std::string_view op;
    Expr (Canonicalizer::*rewrite)(const CallNode& call);  ///< null: the call stays as it is
  };
  static const std::array<Rule, 26> kRules;

  // ---- parts of rules ----

  static Expr Call(const CallNode& origin, std::string_view op, std::vector<Expr> args, Attrs attrs = {}) {
    return TypedCall(op, std::move(args), origin, std::move(attrs));
  }
  static Expr Cast(const CallNode& origin, const Expr& expr, DataType dtype) {
    return TensorOf(expr).dtype() == dtype ? expr : Call(origin, "cast", {expr}, {{"dtype", dtype}});
  }

  /// A zero point as an integer of the type of what it belongs to, where that holds it.
  static Expr ZeroPoint(const Expr& zero, DataType dtype) {
    const Tensor* value = ConstantOf(zero);
    if (value == nullptr || value->dtype() == dtype) return zero;
    const Tensor cast = value->Cast(dtype);
    const bool fits = BitEqual(cast.Cast(value->dtype()), *value);
    return fits ? Expr(MakeConstant(cast)) : zero;
  }

  static Expr Dequantized(const CallNode& origin, const Expr& data, const Expr& scale, const Expr& zero,
                          int64_t axis = -1) {
    return Call(origin, "qnn.dequantize", {data, scale, ZeroPoint(zero, TensorOf(data).dtype())},
                {{"axis", axis}, {"out_dtype", kFloat32}});
  }
  static Expr Quantized(const CallNode& origin, const Expr& numbers, const Expr& scale, const Expr& zero,
                        DataType dtype) {
    return Call(origin, "qnn.quantize", {numbers, scale, ZeroPoint(zero, dtype)}, {{"out_dtype", dtype}});
  }

  /// A scale or zero point as what broadcasts along `axis` of data of `rank` dimensions.
  static Expr Along(const CallNode& origin, const Expr& parameter, int64_t axis, int rank) {
    const auto at = static_cast<int64_t>(FromFront(axis, rank));
    if (TensorOf(parameter).rank() == 0 || TensorOf(parameter).shape()[0] == Dim(1) || at >= rank - 1) return parameter;
    return Call(origin, "expand_dims", {parameter}, {{"axis", 1}, {"num_newaxis", rank - 1 - at}});
  }

  /// `data` as `dtype`, less its zero point.
  static Expr LessZeroPoint(const CallNode& origin, const Expr& data, const Expr& zero, int64_t axis, DataType dtype) {
    const Expr wide = Cast(origin, data, dtype);
    if (IsConstantOf(zero, 0)) return wide;
    return Call(origin, "subtract", {wide, Along(origin, Cast(origin, zero, dtype), axis, TensorOf(data).rank())});
  }

  /// The call's attributes, less those that operator `op` has not.
  static Attrs AttrsFor(const CallNode& call, std::string_view op) {
    Attrs attrs;
    for (const auto& [name, value] : call.attrs()) {
      if (GetOp(op)->def().FindAttr(name) != nullptr) attrs.Set(name, value);
    }
    return attrs;
  }

  // ---- sums ----

  /// Keeps what the sums are that `expr` computes of others.
  void Follow(const Expr& expr, const CallNode& call) {
    const std::string& name = call.op()->name;
    if (call.args().empty()) return;
    if (name == "add" && sums_.contains(call.args()[1].get())) {
      return FollowBias(expr, call, call.args()[1], call.args()[0], /*axis=*/std::nullopt);
    }
    const auto found = sums_.find(call.args()[0].get());
    if (found == sums_.end()) return;
    const Sum sum = found->second;
    if (name == "nn.relu" || (name == "reshape" && sum.scale.num_elements() == 1)) {
      sums_[expr.get()] = {Call(call, name, {sum.numbers}, call.attrs()), sum.scale, sum.axis};
    } else if (name == "add") {
      FollowBias(expr, call, call.args()[0], call.args()[1], std::nullopt);
    } else if (name == "nn.bias_add") {
      FollowBias(expr, call, call.args()[0], call.args()[1], call.attrs().Int("axis"));
    }
    keep_.push_back(expr);
  }

  /// A constant of integers at the scale of the sums is added to them: by broadcasting, or along `axis`.
  void FollowBias(const Expr& expr, const CallNode& call, const Expr& summed, const Expr& bias,
                  std::optional<int64_t> axis) {
    const Sum sum = sums_.at(summed.get());
    const Tensor* value = ConstantOf(bias);
    const int rank = TensorOf(summed).rank();
    if (value == nullptr || value->rank() > rank || TensorOf(expr).shape() != TensorOf(summed).shape()) return;
    Expr shaped = axis ? Along(call, bias, *axis, rank) : bias;
    const auto channels = static_cast<int64_t>(FromFront(sum.axis, rank));
    if (axis && sum.scale.num_elements() > 1 && static_cast<int64_t>(FromFront(*axis, rank)) != channels) return;
    // Axis of the bias, from the front; the bias is aligned with the last dimensions of the sums.
    const int64_t own_axis = channels - (rank - TensorOf(shaped).rank());
    const bool has_channels = sum.scale.num_elements() > 1;
    if (has_channels && (own_axis < 0 || TensorOf(shaped).shape()[own_axis] != Dim(sum.scale.num_elements()))) {
      return;
    }
    const Expr numbers =
        Dequantized(call, shaped, MakeConstant(sum.scale), Number(0, kInt32), has_channels ? own_axis : -1);
    sums_[expr.get()] = {Call(call, "add", {sum.numbers, numbers}), sum.scale, sum.axis};
    keep_.push_back(expr);
  }

  /// The numbers that `expr` stands for when it is sums at `scale` (constant, equal up to rounding), less 0; else null.
  Expr NumbersOf(const Expr& expr, const Expr& scale, const Expr& zero, int64_t axis) const {
    constexpr double kRounding = 1e-5;
    const auto found = sums_.find(expr.get());
    const Tensor* given = ConstantOf(scale);
    if (found == sums_.end() || given == nullptr || !IsConstantOf(zero, 0)) return nullptr;
    const Sum& sum = found->second;
    const int64_t count = std::max(given->num_elements(), sum.scale.num_elements());
    const int rank = TensorOf(expr).rank();
    if (given->num_elements() > 1 && FromFront(axis, rank) != FromFront(sum.axis, rank)) return nullptr;
    for (int64_t i = 0; i < count; ++i) {
      const double own = sum.scale.At(sum.scale.num_elements() == 1 ? 0 : i);
      const double wanted = given->At(given->num_elements() == 1 ? 0 : i);
      if (std::abs(own - wanted) > kRounding * std::abs(wanted)) return nullptr;
    }
    return sum.numbers;
  }

  /// Arguments are data, weight, their zero points and their scales.
  Expr Contract(const CallNode& call, std::string_view op, int64_t weight_axis, int64_t result_axis) {
    const std::vector<Expr>& a = call.args();
    const Expr sums = Call(
        call, op, {LessZeroPoint(call, a[0], a[2], -1, kInt32), LessZeroPoint(call, a[1], a[3], weight_axis, kInt32)},
        AttrsFor(call, op));
    const Tensor* data_scale = ConstantOf(a[4]);
    const Tensor* weight_scale = ConstantOf(a[5]);
    if (data_scale == nullptr || weight_scale == nullptr) return sums;
    Attrs attrs = AttrsFor(call, op);
    attrs.Set("out_dtype", kFloat32);
    const Expr numbers =
        Call(call, op, {Dequantized(call, a[0], a[4], a[2]), Dequantized(call, a[1], a[5], a[3], weight_axis)},
             std::move(attrs));
    const Tensor scale = Tensor::Empty(weight_scale->shape(), kFloat32);
    for (int64_t i = 0; i < scale.num_elements(); ++i) scale.Set(i, data_scale->At(0) * weight_scale->At(i));
    sums_[sums.get()] = {numbers, scale, result_axis};
    keep_.push_back(sums);
    return sums;
  }

  Expr Convolution(const CallNode& call) {
    const std::string op = call.op()->name.substr(1);  // less the "q"
    const auto at = [&](const char* layout, char letter) {
      return static_cast<int64_t>(call.attrs().String(layout).find(letter));
    };
    const bool has_own_order = !call.attrs().String("out_layout").empty();
    return Contract(call, op, at("kernel_layout", 'O'), at(has_own_order ? "out_layout" : "data_layout", 'C'));
  }
  Expr Dense(const CallNode& call) { return Contract(call, "nn.dense", 0, 1); }
  Expr BatchMatmul(const CallNode& call) { return Contract(call, "nn.batch_matmul", -1, -1); }

  // ---- requantising ----

  Expr Requantize(const CallNode& call) {
    const std::vector<Expr>& a = call.args();
    const std::string& rounding = call.attrs().String("rounding");
    const std::string& compute = call.attrs().String("compute_dtype");
    if (compute == "int64") return RequantizeInIntegers(call);
    if (compute == "float64" || rounding != "None") return RequantizeInFloats(call);
    const int64_t axis = call.attrs().Int("axis");
    Expr numbers = NumbersOf(a[0], a[1], a[2], axis);
    if (!numbers) numbers = Dequantized(call, a[0], a[1], a[2], axis);
    return Quantized(call, numbers, a[3], a[4], call.attrs().Type("out_dtype"));
  }

  Expr RequantizeInFloats(const CallNode& call) {
    const std::vector<Expr>& a = call.args();
    const std::string& rounding = call.attrs().String("rounding");
    const DataType dtype = call.attrs().String("compute_dtype") == "float64" ? kFloat64 : kFloat32;
    const int64_t axis = call.attrs().Int("axis");
    const Expr factor = Call(call, "divide", {Cast(call, a[1], dtype), Cast(call, a[3], dtype)});
    const Expr value =
        Call(call, "multiply",
             {LessZeroPoint(call, a[0], a[2], axis, dtype), Along(call, factor, axis, TensorOf(a[0]).rank())});
    const auto up = [&](const Expr& expr) {
      return Call(call, "floor", {Call(call, "add", {expr, Number(0.5, dtype)})});
    };
    Expr whole;
    if (rounding == "None") {
      whole = Call(call, "round", {value});
    } else if (rounding == "UPWARD") {
      whole = up(value);
    } else {
      whole = Call(call, "multiply", {Call(call, "sign", {value}), up(Call(call, "abs", {value}))});
    }
    if (!IsConstantOf(a[4], 0)) whole = Call(call, "add", {whole, Cast(call, a[4], dtype)});
    return Cast(call, whole, call.attrs().Type("out_dtype"));
  }

  /// A product with a whole number and a shift; scales that are not constant have no such factor.
  Expr RequantizeInIntegers(const CallNode& call) {
    const std::vector<Expr>& a = call.args();
    const Tensor* from = ConstantOf(a[1]);
    const Tensor* to = ConstantOf(a[3]);
    if (from == nullptr || to == nullptr) return RequantizeInFloats(call);
    const int64_t axis = call.attrs().Int("axis");
    const int rank = TensorOf(a[0]).rank();
    const bool is_upward = call.attrs().String("rounding") != "TONEAREST";
    const auto of_channels = [&](const auto& number) {
      const Tensor values = Tensor::Empty(from->shape(), kInt64);
      for (int64_t i = 0; i < values.num_elements(); ++i) {
        values.data<int64_t>()[i] = number(FixedPoint::Of(from->At(i) / to->At(0)));
      }
      return Along(call, MakeConstant(values), axis, rank);
    };
    Expr value = LessZeroPoint(call, a[0], a[2], axis, kInt64);
    bool is_shifted = false;
    for (int64_t i = 0; i < from->num_elements(); ++i) {
      is_shifted = is_shifted || FixedPoint::Of(from->At(i) / to->At(0)).left_shift() > 0;
    }
    if (is_shifted) {
      value = Call(call, "left_shift", {value, of_channels([](FixedPoint f) { return f.left_shift(); })});
    }
    value = Call(call, "multiply", {value, of_channels([](FixedPoint f) { return f.whole; })});
    Expr half = of_channels([](FixedPoint f) { return int64_t{1} << (f.right_shift() - 1); });
    if (!is_upward) {
      const Expr less = of_channels([](FixedPoint f) { return (int64_t{1} << (f.right_shift() - 1)) - 1; });
      half = Call(call, "where", {Call(call, "greater_equal", {value, Number(0, kInt64)}), half, less});
    }
    value = Call(call, "right_shift",
                 {Call(call, "add", {value, half}), of_channels([](FixedPoint f) { return f.right_shift(); })});
    if (!IsConstantOf(a[4], 0)) value = Call(call, "add", {value, Cast(call, a[4], kInt64)});
    const DataType dtype = call.attrs().Type("out_dtype");
    if (dtype == kInt64) return value;
    const auto [low, high] = RangeOf(dtype);
    return Cast(call, Call(call, "clip", {value}, {{"a_min", low}, {"a_max", high}}), dtype);
  }

  /// Quantises directly to a narrow type if values are quantised to a wide one and limited to the narrow one's range or
  /// less.
  Expr Narrow(const CallNode& call) {
    const DataType dtype = call.attrs().Type("dtype");
    const CallNode* clip = AsCallOf(call.args()[0], "clip");
    const CallNode* quantize = clip == nullptr ? nullptr : AsCallOf(clip->args()[0], "qnn.quantize");
    if (quantize == nullptr || !dtype.is_integer() || dtype.bits >= TensorOf(clip->args()[0]).dtype().bits) {
      return nullptr;
    }
    const auto [least, most] = RangeOf(dtype);
    const double low = clip->attrs().Double("a_min"), high = clip->attrs().Double("a_max");
    if (low < least || high > most) return nullptr;
    Attrs attrs = quantize->attrs();
    attrs.Set("out_dtype", dtype);
    const std::vector<Expr>& a = quantize->args();
    const Expr narrow = Call(*quantize, "qnn.quantize", {a[0], a[1], ZeroPoint(a[2], dtype)}, std::move(attrs));
    return low == least && high == most ? narrow : Call(call, "clip", {narrow}, clip->attrs());
  }

  /// Dequantises sums.
  Expr Dequantize(const CallNode& call) {
    const std::vector<Expr>& a = call.args();
    const Expr numbers = NumbersOf(a[0], a[1], a[2], call.attrs().Int("axis"));
    if (!numbers) return nullptr;
    const std::string& dtype = call.attrs().String("out_dtype");
    return Cast(call, numbers, dtype.empty() ? TensorOf(a[1]).dtype() : DataType::FromString(dtype));
  }

  // ---- operators on numbers ----

  Expr Binary(const CallNode& call) {
    const std::vector<Expr>& a = call.args();
    const std::string name = call.op()->name.substr(4);
    const Expr result = Call(call, name == "mul" ? "multiply" : name,
                             {Dequantized(call, a[0], a[2], a[3], call.attrs().Int("lhs_axis")),
                              Dequantized(call, a[1], a[4], a[5], call.attrs().Int("rhs_axis"))});
    return Quantized(call, result, a[6], a[7], TensorOf(a[0]).dtype());
  }

  Expr OfOne(const CallNode& call, std::string_view op) {
    const std::vector<Expr>& a = call.args();
    const Expr result = Call(call, op, {Dequantized(call, a[0], a[1], a[2])}, AttrsFor(call, op));
    return Quantized(call, result, a[3], a[4], TensorOf(a[0]).dtype());
  }
  Expr Unary(const CallNode& call) { return OfOne(call, call.op()->name.substr(4)); }
  Expr Neural(const CallNode& call) { return OfOne(call, "nn." + call.op()->name.substr(4)); }

  Expr HardSwish(const CallNode& call) {
    const std::vector<Expr>& a = call.args();
    const Expr x = Dequantized(call, a[0], a[1], a[2]);
    const Expr limited =
        Call(call, "clip", {Call(call, "add", {x, Number(3, kFloat32)})}, {{"a_min", 0.0}, {"a_max", 6.0}});
    const Expr result = Call(call, "divide", {Call(call, "multiply", {x, limited}), Number(6, kFloat32)});
    return Quantized(call, result, a[3], a[4], TensorOf(a[0]).dtype());
  }

  /// The fields of a tuple, whatever gives it.
  static std::vector<Expr> FieldsOf(const Expr& tuple) {
    if (const TupleNode* node = As<TupleNode>(tuple)) return node->fields();
    std::vector<Expr> fields;
    for (size_t i = 0; i < AsTupleType(InferType(tuple))->fields().size(); ++i) {
      fields.push_back(MakeTupleGetItem(tuple, static_cast<int>(i)));
      InferType(fields.back());
    }
    return fields;
  }

  Expr Concatenate(const CallNode& call) {
    const std::vector<Expr>& a = call.args();
    std::vector<Expr> fields = FieldsOf(a[0]);
    const std::vector<Expr> scales = FieldsOf(a[1]), zeros = FieldsOf(a[2]);
    const DataType dtype = TensorOf(fields.at(0)).dtype();
    bool is_plain = true;
    for (size_t i = 0; i < fields.size(); ++i) {
      is_plain = is_plain && AreEqualConstants(scales[i], a[3]) && AreEqualConstants(zeros[i], a[4]);
    }
    if (is_plain) return Call(call, "concatenate", {MakeTuple(fields)}, call.attrs());
    for (size_t i = 0; i < fields.size(); ++i) fields[i] = Dequantized(call, fields[i], scales[i], zeros[i]);
    const Expr result = Call(call, "concatenate", {MakeTuple(fields)}, call.attrs());
    return Quantized(call, result, a[3], a[4], dtype);
  }

  // ---- simulated operators ----

  /// `make` computes for a dtype that is given by the ends of its range.
  Expr Simulated(const CallNode& call,
                 const std::function<Expr(const Expr& low, const Expr& high, DataType dtype)>& make) {
    constexpr std::array kCodes{kInt8, kUInt8, kInt32};  // 1, 2, 3
    const Expr& data = call.args()[0];
    const Expr& code = call.args()[1];
    const DataType dtype = TensorOf(data).dtype();
    const auto low = [&](DataType of) { return Number(RangeOf(of).first, dtype); };
    const auto high = [&](DataType of) { return Number(RangeOf(of).second, dtype); };
    if (const Tensor* known = ConstantOf(code)) {
      const double number = known->At(0);
      if (number < 1 || number > kCodes.size()) return data;
      const DataType of = kCodes[static_cast<size_t>(number) - 1];
      return make(low(of), high(of), dtype);
    }
    Expr lowest = Number(0, dtype), highest = Number(0, dtype), is_known = Number(0, kBool);
    for (size_t i = 0; i < kCodes.size(); ++i) {
      const Expr is_it = Call(call, "equal", {code, Number(static_cast<double>(i + 1), TensorOf(code).dtype())});
      lowest = Call(call, "where", {is_it, low(kCodes[i]), lowest});
      highest = Call(call, "where", {is_it, high(kCodes[i]), highest});
      is_known = Call(call, "logical_or", {is_known, is_it});
    }
    return Call(call, "where", {is_known, make(lowest, highest, dtype), data});
  }

  Expr SimulatedQuantize(const CallNode& call) {
    return Simulated(call, [&](const Expr& low, const Expr& high, DataType dtype) {
      const std::vector<Expr>& a = call.args();
      const int rank = TensorOf(a[0]).rank();
      const int64_t axis = call.attrs().Int("axis");
      const Expr quotient = Call(call, "divide", {a[0], Along(call, Cast(call, a[2], dtype), axis, rank)});
      const Expr shifted =
          Call(call, "add", {Call(call, "round", {quotient}), Along(call, Cast(call, a[3], dtype), axis, rank)});
      return Call(call, "minimum", {Call(call, "maximum", {shifted, low}), high});
    });
  }

  Expr SimulatedDequantize(const CallNode& call) {
    return Simulated(call, [&](const Expr&, const Expr&, DataType dtype) {
      const std::vector<Expr>& a = call.args();
      const int rank = TensorOf(a[0]).rank();
      const int64_t axis = call.attrs().Int("axis");
      const Expr shifted = Call(call, "subtract", {a[0], Along(call, Cast(call, a[3], dtype), axis, rank)});
      return Call(call, "multiply", {shifted, Along(call, Cast(call, a[2], dtype), axis, rank)});
    });
  }

  std::unordered_map<const ExprNode*, Sum> sums_;  ///< by rewritten node, in int32
  std::vector<Expr> keep_;                         ///< the keys of `sums_`: no other node gets their address
};

const std::array<Canonicalizer::Rule, 26> Canonicalizer::kRules{{
    {"cast", &Canonicalizer::Narrow},
    {"qnn.abs", &Canonicalizer::Unary},
    {"qnn.add", &Canonicalizer::Binary},
    {"qnn.avg_pool2d", &Canonicalizer::Neural},
    {"qnn.batch_matmul", &Canonicalizer::BatchMatmul},
    {"qnn.concatenate", &Canonicalizer::Concatenate},
    {"qnn.conv2d", &Canonicalizer::Convolution},
    {"qnn.conv2d_transpose", &Canonicalizer::Convolution},
    {"qnn.dense", &Canonicalizer::Dense},
    {"qnn.dequantize", &Canonicalizer::Dequantize},
    {"qnn.erf", &Canonicalizer::Unary},
    {"qnn.exp", &Canonicalizer::Unary},
    {"qnn.hardswish", &Canonicalizer::HardSwish},
    {"qnn.leaky_relu", &Canonicalizer::Neural},
    {"qnn.log", &Canonicalizer::Unary},
    {"qnn.mul", &Canonicalizer::Binary},
    {"qnn.relu", &Canonicalizer::Neural},
    {"qnn.requantize", &Canonicalizer::Requantize},
    {"qnn.rsqrt", &Canonicalizer::Unary},
    {"qnn.sigmoid", &Canonicalizer::Unary},
    {"qnn.simulated_dequantize", &Canonicalizer::SimulatedDequantize},
    {"qnn.simulated_quantize", &Canonicalizer::SimulatedQuantize},
    {"qnn.softmax", &Canonicalizer::Neural},
    {"qnn.sqrt", &Canonicalizer::Unary},
    {"qnn.subtract", &Canonicalizer::Binary},
    {"qnn.tanh", &Canonicalizer::Unary},
}};

}  // namespace

Function QnnCanonicalizeOps(const Function& function) {
  Canonicalizer canonicalizer;
  return AsShared<FunctionNode>(RewriteNodes(
      function, IsOrdinary,
      [&](const Expr&, const Expr& rewritten, const Rewritten&) { return canonicalizer.Rewrite(rewritten); }));
}

}  // namespace collage
