// random_calls.cc: other sizes, other types, other values.
#include "inspect/random_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "collage/ir/infer_type.h"
#include "collage/support/error.h"

namespace collage {
namespace {

/// The dtype that stands for others: float32 where there is some, else that of the first tensor.
DataType MainType(const OpExample& example) {
  std::vector<DataType> all;
  for (const Type& arg : example.args) {
    for (const Type& leaf : FlattenTensorTypes(arg)) all.push_back(AsTensorType(leaf)->dtype());
  }
  return all.empty() || std::find(all.begin(), all.end(), kFloat32) != all.end() ? kFloat32 : all[0];
}

struct ValueRange {
  double low, high;
};

/// Returns the range of values of `dtype`; those of the example's other tensors (indices) stay unchanged.
ValueRange RangeFor(const OpExample& example, DataType dtype, bool is_replaced) {
  const ValueRange range{example.low, example.high};
  if (dtype.is_floating() || dtype.is_bool() || !is_replaced) return range;
  // Sums and products of many must not overflow, where it is nobody's duty to agree.
  const double most = dtype.bits == 8 ? 1 : 5;
  if (range.low > 0) return {1, most};
  return {dtype.ToString().starts_with("uint") ? 0 : std::max(std::floor(range.low), -most), most};
}

Tensor RandomValues(const Shape& shape, DataType dtype, const ValueRange& range, std::mt19937& random) {
  Tensor tensor = Tensor::Empty(shape, dtype);
  std::uniform_real_distribution<double> uniform(range.low, range.high);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const double value = uniform(random);
    if (dtype.is_bool()) {
      tensor.Set(i, value > (range.low + range.high) / 2 ? 1 : 0);
    } else {
      tensor.Set(i, dtype.is_floating() ? value : std::round(value));
    }
  }
  return tensor;
}

/// Makes one call; throws what type inference throws.
class CallMaker {
 public:
  CallMaker(const OpExample& example, DataType dtype, std::mt19937& random)
      : example_(example), main_(MainType(example)), dtype_(dtype), random_(random) {}

  RandomCall Make(const OpDef& op, size_t first_constant, bool keeps_sizes) {
    sizes_.clear();
    keeps_sizes_ = keeps_sizes;
    RandomCall made;
    std::vector<Var> params;
    std::vector<Expr> args;
    for (const Type& arg : example_.args) {
      std::vector<Expr> parts;
      for (const Type& leaf : FlattenTensorTypes(arg)) {
        const TensorTypeNode& tensor = *AsTensorType(leaf);
        const bool is_replaced = tensor.dtype() == main_;
        const DataType dtype = is_replaced ? dtype_ : tensor.dtype();
        const Tensor values =
            RandomValues(Resized(tensor.static_shape()), dtype, RangeFor(example_, dtype, is_replaced), random_);
        if (args.size() >= first_constant) {
          parts.push_back(MakeConstant(values));
          continue;
        }
        params.push_back(MakeVar(fmt::format("x{}", params.size()), TensorType(values.shape(), dtype)));
        parts.push_back(params.back());
        made.inputs.push_back(values);
      }
      args.push_back(AsTupleType(arg) == nullptr ? parts.at(0) : MakeTuple(parts));
    }
    made.function = MakeFunction(params, MakeCall(op.name, args, example_.attrs));
    InferType(made.function);
    return made;
  }

 private:
  Shape Resized(Shape shape) {
    for (int64_t& size : shape) size = Resized(size);
    return shape;
  }
  /// Never smaller: indices and windows stay within.
  int64_t Resized(int64_t size) {
    if (size <= 1 || keeps_sizes_) return size;
    const auto [it, is_new] = sizes_.emplace(size, size);
    if (is_new) it->second += std::uniform_int_distribution<int64_t>(0, std::min<int64_t>(size, 9))(random_);
    return it->second;
  }

  const OpExample& example_;
  DataType main_;
  DataType dtype_;
  std::mt19937& random_;
  std::map<int64_t, int64_t> sizes_;  ///< in the example → in the call
  bool keeps_sizes_ = false;
};

/// Whether its results are made of sums or products of many elements.
bool Accumulates(const OpDef& op) {
  return op.pattern == OpPatternKind::kCommReduce || op.pattern == OpPatternKind::kOutEWiseFusable;
}

/// Whether results are as large as their integers go, which is what the reference makes of larger ones.
bool HasOverflown(const Reference& reference) {
  for (const Tensor& result : reference.results()) {
    const DataType dtype = result.dtype();
    if (dtype.is_floating() || dtype.is_bool()) continue;
    const bool is_signed = dtype.code == DataType::Code::kInt;
    const double most = std::ldexp(1.0, dtype.bits - (is_signed ? 1 : 0)) - 1;
    for (int64_t i = 0; i < result.num_elements(); ++i) {
      const double value = result.At(i);
      if (value >= most || (is_signed && value <= -most - 1)) return true;
    }
  }
  return false;
}

bool IsStatic(const Function& function) {
  const std::vector<Type> results = FlattenTensorTypes(function->body()->checked_type());
  return std::all_of(results.begin(), results.end(), [](const Type& type) { return AsTensorType(type)->is_static(); });
}

}  // namespace

std::span<const DataType> DataTypesToTry() {
  static const std::vector<DataType> types{
      kFloat32,          kFloat16,           kBFloat16, kFloat64,           kInt8,  kUInt8,
      DataType::Int(16), DataType::UInt(16), kInt32,    DataType::UInt(32), kInt64, kBool};
  return types;
}

std::optional<RandomCall> MakeRandomCall(const OpDef& op, const OpExample& example, DataType dtype,
                                         size_t first_constant, std::mt19937& random) {
  constexpr int kTries = 4;
  CallMaker maker(example, dtype, random);
  for (int i = 0; i <= kTries; ++i) {
    try {
      RandomCall call = maker.Make(op, first_constant, /*keeps_sizes=*/i == kTries);
      if (!IsStatic(call.function)) return std::nullopt;
      call.expected = Reference(call.function, call.inputs);
      if (!Accumulates(op) || !HasOverflown(call.expected)) return call;
    } catch (const Error&) {  // the operator does not take these: which ones it does, types or values, only it knows
    }
  }
  return std::nullopt;
}

}  // namespace collage
