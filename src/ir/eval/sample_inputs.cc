// sample_inputs.cc: what integers are used for, and values from the splitmix64 generator.
#include "ir/eval/sample_inputs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <set>
#include <unordered_map>

#include "collage/ir/op.h"
#include "collage/ir/visitor.h"
#include "runtime/random_inputs.h"

namespace collage {
namespace {

constexpr uint64_t kInputSeed = 20220301;
constexpr double kWideLimit = 16;
constexpr double kWideLimitOfFloat16 = 6;
// Exponents of the magnitudes of kHuge: activations of large transformers reach a few thousand.
constexpr double kLeastHuge = 4;
constexpr double kMostHuge = 12;
constexpr std::array kTinyValues{0.0, -0.0, 1e-30, -1e-30, 0.5, -0.5, 1.0, -1.0};
constexpr double kTinyShare = 0.75;
constexpr std::array kInfiniteValues{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
constexpr std::array kNaNValues{std::numeric_limits<double>::quiet_NaN(), 1e-40, -1e-40};
constexpr double kSpecialShare = 0.25;
// Integers that are data without anything known about them: three may be multiplied in 16 bits.
constexpr int64_t kHarmlessLimit = 7;
constexpr int kLeastWiderBits = 32;
// Constants beyond it, such as the largest integer, bound nothing.
constexpr double kLargestEvidence = 1 << 20;

/// A parameter whose elements an expression has, each with `offset` added.
struct Origin {
  size_t parameter;
  int64_t offset;
  auto operator<=>(const Origin&) const = default;
};

/// Facts about one expression.
struct Flow {
  std::set<Origin> origins;     ///< whose elements it has
  std::set<size_t> influences;  ///< parameters that it depends on in any way

  void Add(const Flow& other) {
    origins.insert(other.origins.begin(), other.origins.end());
    influences.insert(other.influences.begin(), other.influences.end());
  }
};

std::optional<std::pair<double, double>> ExtremesOf(const Tensor& tensor) {
  if (tensor.num_elements() == 0) return std::nullopt;
  double low = tensor.At(0), high = tensor.At(0);
  for (int64_t i = 1; i < tensor.num_elements(); ++i) {
    low = std::min(low, tensor.At(i));
    high = std::max(high, tensor.At(i));
  }
  if (!(std::abs(low) <= kLargestEvidence && std::abs(high) <= kLargestEvidence)) return std::nullopt;
  return std::pair(low, high);
}

/// The tensor of a constant, also behind operators that only move its elements.
std::optional<Tensor> ConstantOf(Expr expr) {
  while (const CallNode* call = As<CallNode>(expr)) {
    if (call->op() == nullptr || call->args().empty() ||
        !(call->op()->is_reshape || call->op()->name == "cast" || call->op()->name == "broadcast_to")) {
      return std::nullopt;
    }
    expr = call->args()[0];
  }
  const ConstantNode* constant = As<ConstantNode>(expr);
  if (constant == nullptr) return std::nullopt;
  return constant->value();
}

class RangeFinder {
 public:
  explicit RangeFinder(const Function& function) {
    Arguments arguments;
    for (const Var& param : function->params()) {
      const Type type = param->checked_type() ? param->checked_type() : param->type_annotation();
      Flow flow;
      for (const Type& leaf : FlattenTensorTypes(type)) {
        flow.origins.insert({dtypes_.size(), 0});
        flow.influences.insert(dtypes_.size());
        dtypes_.push_back(AsTensorType(leaf)->dtype());
      }
      arguments.push_back(flow);
    }
    limits_.resize(dtypes_.size());
    hints_.resize(dtypes_.size());
    sizes_something_.resize(dtypes_.size());
    Walk(*function, arguments);
  }

  std::vector<IntegerRange> Ranges() const {
    std::vector<IntegerRange> ranges;
    for (size_t i = 0; i < dtypes_.size(); ++i) ranges.push_back(Bounded(RangeOf(i), dtypes_[i]));
    return ranges;
  }

 private:
  using Arguments = std::vector<Flow>;
  using Flows = std::unordered_map<const ExprNode*, Flow>;
  using Interval = std::optional<std::pair<int64_t, int64_t>>;

  IntegerRange RangeOf(size_t parameter) const {
    using Evidence = IntegerRange::Evidence;
    if (limits_[parameter]) return {limits_[parameter]->first, limits_[parameter]->second, Evidence::kStated};
    if (hints_[parameter]) return {hints_[parameter]->first, hints_[parameter]->second, Evidence::kStated};
    if (sizes_something_[parameter] || has_control_flow_) return {};
    return {0, 1, Evidence::kHarmless};
  }

  static IntegerRange Bounded(IntegerRange range, DataType dtype) {
    if (dtype.is_floating() || dtype.is_bool()) return {};
    const bool is_signed = dtype.code == DataType::Code::kInt;
    if (!is_signed) range.low = std::max<int64_t>(range.low, 0);
    if (dtype.bits < 32) {
      const int64_t most = (int64_t{1} << (dtype.bits - (is_signed ? 1 : 0))) - 1;
      range.high = std::min(range.high, most);
      range.low = std::max(range.low, is_signed ? -most - 1 : 0);
    }
    range.high = std::max(range.high, range.low);
    return range;
  }

  Flow Walk(const FunctionNode& function, const Arguments& arguments) {
    Flows flows;
    for (size_t i = 0; i < arguments.size() && i < function.params().size(); ++i) {
      flows[function.params()[i].get()] = arguments[i];
    }
    PostOrderWithValues(function.body(), [&](const Expr& expr, const Expr& value) {
      if (value != nullptr) {
        flows[expr.get()] = flows[value.get()];
      } else if (!flows.contains(expr.get())) {
        flows[expr.get()] = FlowOf(expr, flows);
      }
    });
    return flows[function.body().get()];
  }

  Flow FlowOf(const Expr& expr, Flows& flows) {
    switch (expr->kind()) {
      case ExprKind::kCall: return FlowOfCall(static_cast<const CallNode&>(*expr), flows);
      case ExprKind::kTupleGetItem: {
        const auto& item = static_cast<const TupleGetItemNode&>(*expr);
        if (const TupleNode* tuple = As<TupleNode>(item.tuple())) {
          return flows[tuple->fields()[item.index()].get()];
        }
        return flows[item.tuple().get()];
      }
      case ExprKind::kIf:
      case ExprKind::kMatch: has_control_flow_ = true; break;
      default: break;
    }
    Flow flow;
    for (const Expr& child : Children(expr)) flow.Add(flows[child.get()]);
    return flow;
  }

  Flow FlowOfCall(const CallNode& call, Flows& flows) {
    Arguments arguments;
    Flow all;
    for (const Expr& arg : call.args()) {
      arguments.push_back(flows[arg.get()]);
      all.Add(arguments.back());
    }
    if (const FunctionNode* callee = As<FunctionNode>(call.callee())) return Walk(*callee, arguments);
    if (call.op() == nullptr) {
      has_control_flow_ = true;
      return {{}, all.influences};
    }
    Look(call, arguments);
    return {OriginsOf(call, arguments), all.influences};
  }

  /// The parameters whose elements the result of `call` holds.
  static std::set<Origin> OriginsOf(const CallNode& call, const Arguments& arguments) {
    Flow sources;
    for (const size_t source : call.op()->value_sources) {
      if (source < arguments.size()) sources.Add(arguments[source]);
    }
    const std::string& name = call.op()->name;
    if ((name != "add" && name != "subtract") || call.args().size() != 2) return sources.origins;
    for (const size_t constant : {size_t{1}, size_t{0}}) {
      const std::optional<Tensor> value = ConstantOf(call.args()[constant]);
      if (!value || value->num_elements() != 1 || (name == "subtract" && constant == 0)) continue;
      std::set<Origin> moved;
      const auto amount = static_cast<int64_t>(name == "add" ? value->At(0) : -value->At(0));
      for (const Origin& origin : arguments[1 - constant].origins) {
        moved.insert({origin.parameter, origin.offset + amount});
      }
      return moved;
    }
    return {};
  }

  /// Notes what the call reveals about its arguments.
  void Look(const CallNode& call, const Arguments& arguments) {
    if (call.op()->index_limit) {
      std::vector<Type> types;
      for (const Expr& arg : call.args()) types.push_back(arg->checked_type());
      for (size_t i = 0; i < arguments.size(); ++i) {
        if (const auto limit = call.op()->index_limit({types, call.attrs()}, i)) Limit(arguments[i], *limit);
      }
    }
    if (call.op()->name == "clip") Hint(arguments[0], call.attrs().Double("a_min"), call.attrs().Double("a_max"));
    LookAtConstants(call, arguments);
    LookAtBytes(call, arguments);
  }

  /// Comparisons with constants, and remainders by them.
  void LookAtConstants(const CallNode& call, const Arguments& arguments) {
    const ConstantHint kind = call.op()->constant_hint;
    if (kind == ConstantHint::kNone) return;
    const bool is_order = kind == ConstantHint::kBeyond;
    for (const size_t constant : {size_t{0}, size_t{1}}) {
      const std::optional<Tensor> value = ConstantOf(call.args().at(constant));
      const auto extremes = value ? ExtremesOf(*value) : std::nullopt;
      if (!extremes) continue;
      const auto [low, high] = *extremes;
      // Both sides of what is compared.
      Hint(arguments[1 - constant], is_order ? 2 * low - 1 : low, is_order ? 2 * high + 1 : high);
    }
  }

  /// 8-bit integers that become wider ones, or floats.
  void LookAtBytes(const CallNode& call, const Arguments& arguments) {
    if (arguments.empty()) return;
    const TensorTypeNode* from = AsTensorType(call.args()[0]->checked_type());
    const TensorTypeNode* to = AsTensorType(call.checked_type());
    if (from == nullptr || to == nullptr || !from->dtype().is_integer() || from->dtype().bits != 8) return;
    const std::string& name = call.op()->name;
    const bool widens = to->dtype().is_floating() || to->dtype().bits >= 32;
    if (!widens || (name != "cast" && !name.starts_with("qnn.") && !call.op()->multiply_adds)) return;
    const bool is_signed = from->dtype().code == DataType::Code::kInt;
    const size_t operands = call.op()->multiply_adds ? std::min<size_t>(arguments.size(), 2) : 1;
    for (size_t i = 0; i < operands; ++i) Hint(arguments[i], is_signed ? -128 : 0, is_signed ? 127 : 255);
  }

  /// Indices of `size` places; -1: of a number that is not known.
  void Limit(const Flow& flow, int64_t size) {
    for (const size_t parameter : flow.influences) sizes_something_[parameter] = true;
    if (size < 1) return;
    for (const Origin& origin : flow.origins) {
      Interval& limit = limits_[origin.parameter];
      const int64_t low = std::max<int64_t>(0, -origin.offset);
      const int64_t high = std::max(low, size - 1 - origin.offset);
      limit = limit ? std::pair(std::max(limit->first, low), std::min(limit->second, high)) : std::pair(low, high);
    }
  }

  void Hint(const Flow& flow, double low, double high) {
    if (!(std::abs(low) <= 2 * kLargestEvidence + 1 && std::abs(high) <= 2 * kLargestEvidence + 1)) return;
    for (const Origin& origin : flow.origins) {
      Interval& hint = hints_[origin.parameter];
      const auto from = std::min<int64_t>(static_cast<int64_t>(std::floor(low)) - origin.offset, 0);
      const auto to = std::max<int64_t>(static_cast<int64_t>(std::ceil(high)) - origin.offset, 1);
      hint = hint ? std::pair(std::min(hint->first, from), std::max(hint->second, to)) : std::pair(from, to);
    }
  }

  // By flattened parameter.
  std::vector<DataType> dtypes_;
  std::vector<Interval> limits_;  ///< bounds that it must keep
  std::vector<Interval> hints_;   ///< values that it is compared with
  std::vector<bool> sizes_something_;
  bool has_control_flow_ = false;
};

/// Numbers of the standard normal distribution from uniform ones in [-1, 1), by the method of Box and Muller.
void MakeNormal(const Tensor& tensor) {
  const int64_t count = tensor.num_elements();
  for (int64_t i = 0; i < count; i += 2) {
    const double other = i + 1 < count ? tensor.At(i + 1) : 0.5;
    const double radius = std::sqrt(-2 * std::log(1 - (tensor.At(i) + 1) / 2 * (1 - 1e-6)));
    const double angle = std::numbers::pi * other;
    tensor.Set(i, radius * std::cos(angle));
    if (i + 1 < count) tensor.Set(i + 1, radius * std::sin(angle));
  }
}

void Transform(const Tensor& tensor, double factor, double summand) {
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.Set(i, tensor.At(i) * factor + summand);
}

/// Puts `values` in place of a share of the elements, which are in [-1, 1).
void Choose(const Tensor& tensor, uint64_t seed, std::span<const double> values, double share) {
  const Tensor choice = Tensor::Empty(tensor.shape(), kFloat32);
  FillRandom(choice, seed + 1, 0, 1);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const double place = (choice.At(i) + 1) / 2 / share;
    if (place >= 1) continue;
    tensor.Set(i, values[static_cast<size_t>(place * static_cast<double>(values.size()))]);
  }
}

/// Magnitudes from 2^4 to 2^12 from elements in [-1, 1), whose signs stay.
void MakeHuge(const Tensor& tensor) {
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const double value = tensor.At(i);
    tensor.Set(i, std::copysign(std::exp2(kLeastHuge + (kMostHuge - kLeastHuge) * std::abs(value)), value));
  }
}

/// Fills `tensor`, which is parameter number `index`.
void FillSample(const Tensor& tensor, Draw draw, const IntegerRange& range, size_t index, bool has_float16) {
  const uint64_t seed = kInputSeed + index + 1000003 * static_cast<uint64_t>(draw);
  // Sums of many of a narrow type would overflow, which may do anything.
  const bool is_wider = draw == Draw::kWide && range.evidence == IntegerRange::Evidence::kHarmless &&
                        tensor.dtype().bits >= kLeastWiderBits;
  FillRandom(tensor, seed, range.low, is_wider ? std::max(range.high, kHarmlessLimit) : range.high);
  if (!tensor.dtype().is_floating()) return;
  switch (draw) {
    case Draw::kUnit: break;
    case Draw::kWide: Transform(tensor, has_float16 ? kWideLimitOfFloat16 : kWideLimit, 0); break;
    case Draw::kPositive: Transform(tensor, 0.5, 0.5); break;
    case Draw::kNormal: MakeNormal(tensor); break;
    case Draw::kTiny: Choose(tensor, seed, kTinyValues, kTinyShare); break;
    case Draw::kHuge: MakeHuge(tensor); break;
    case Draw::kInfinite: Choose(tensor, seed, kInfiniteValues, kSpecialShare); break;
    case Draw::kNaN: Choose(tensor, seed, kNaNValues, kSpecialShare); break;
  }
}

/// Whether there is one call of an operator, which computes each element of its result from one of each input.
bool IsOneElementwiseOperator(const Function& function) {
  int num_calls = 0;
  bool is_elementwise = true;
  PostOrder(function, [&](const Expr& expr) {
    const CallNode* call = As<CallNode>(expr);
    if (call == nullptr || call->op() == nullptr) return;
    ++num_calls;
    is_elementwise = is_elementwise && call->op()->pattern <= OpPatternKind::kBroadcast;
  });
  return num_calls == 1 && is_elementwise;
}

}  // namespace

std::vector<IntegerRange> IntegerRanges(const Function& function) { return RangeFinder(function).Ranges(); }

bool HasFloat16(const Function& function) {
  bool found = false;
  const auto look = [&](const Type& type) {
    if (!type) return;
    if (AsTensorType(type) == nullptr && AsTupleType(type) == nullptr) return;
    for (const Type& leaf : FlattenTensorTypes(type)) {
      const TensorTypeNode* tensor = AsTensorType(leaf);
      found = found || (tensor != nullptr && tensor->dtype() == kFloat16);
    }
  };
  for (const Var& param : function->params()) look(param->type_annotation());
  PostOrder(function, [&](const Expr& expr) { look(expr->checked_type()); });
  return found;
}

std::vector<Draw> DrawsToCheck(bool takes_long, bool in_float16) {
  std::vector<Draw> draws{Draw::kUnit};
  if (!in_float16) draws.push_back(Draw::kWide);
  if (!takes_long) {
    draws.push_back(Draw::kPositive);
    draws.push_back(Draw::kNormal);
  }
  return draws;
}

std::vector<Draw> DrawsForPartition(const Function& function, const PartitionDraws& options) {
  std::vector<Draw> draws = DrawsToCheck(options.takes_long, options.in_float16);
  if (options.takes_long) return draws;
  draws.push_back(Draw::kTiny);
  if (!options.in_float16) draws.push_back(Draw::kHuge);
  if (options.is_narrow || !IsOneElementwiseOperator(function)) return draws;
  draws.push_back(Draw::kInfinite);
  if (options.is_exact) draws.push_back(Draw::kNaN);
  return draws;
}

std::string_view NameOf(Draw draw) {
  switch (draw) {
    case Draw::kUnit: return "random inputs within 1";
    case Draw::kWide: return "large random inputs";
    case Draw::kPositive: return "random inputs from 0 to 1";
    case Draw::kNormal: return "normally distributed inputs";
    case Draw::kTiny: return "zeros and tiny inputs";
    case Draw::kHuge: return "inputs up to 4096";
    case Draw::kInfinite: return "infinities";
    case Draw::kNaN: return "NaN and denormal numbers";
  }
  return "";
}

std::vector<Tensor> SampleInputs(const Function& function, Draw draw, std::span<const Shape> shapes) {
  const std::vector<IntegerRange> ranges = IntegerRanges(function);
  const bool has_float16 = draw == Draw::kWide && HasFloat16(function);
  std::vector<Tensor> inputs;
  for (const Var& param : function->params()) {
    for (const Type& leaf :
         FlattenTensorTypes(param->checked_type() ? param->checked_type() : param->type_annotation())) {
      const TensorTypeNode* type = AsTensorType(leaf);
      const size_t index = inputs.size();
      inputs.push_back(Tensor::Empty(shapes.empty() ? type->static_shape() : shapes[index], type->dtype()));
      FillSample(inputs.back(), draw, ranges[index], index, has_float16);
    }
  }
  return inputs;
}

}  // namespace collage
