// function_generator.cc: values and steps.
#include "property/native/function_generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "collage/ir/infer_type.h"
#include "collage/support/error.h"

namespace collage {
namespace {

/// The largest magnitude that elements may have: sums of them, in any order, are still well within their type.
double Largest(DataType dtype) {
  if (dtype.is_bool()) return 1;
  if (dtype == kFloat16) return 500;
  if (dtype.is_floating()) return 1e4;
  return dtype.bits == 8 ? (dtype == kInt8 ? 127 : 255) : dtype.bits == 16 ? 32767 : 1e9;
}

}  // namespace

FunctionGenerator::FunctionGenerator(uint64_t seed) : random_(seed) {
  const std::vector<DataType> dtypes{kFloat32, kFloat32, kFloat32,  kFloat32,         kFloat32, kFloat32,
                                     kFloat16, kFloat16, kBFloat16, kBFloat16,        kFloat64, kInt8,
                                     kUInt8,   kInt32,   kInt64,    DataType::Int(16)};
  main_ = random_.Pick(dtypes);
  is_large_ = OneIn(6);
  most_elements_ = is_large_ ? 80'000 : 4'000;
}

int64_t FunctionGenerator::Size() {
  static const std::vector<int64_t> sizes{1, 1, 2, 3, 3, 4, 5, 7, 8, 9, 13, 16, 17, 19, 32, 33};
  static const std::vector<int64_t> large{1, 8, 17, 24, 33, 64, 70, 100};
  return OneIn(60) ? 0 : random_.Pick(is_large_ ? large : sizes);
}

Shape FunctionGenerator::RandomShape(int rank) {
  Shape shape;
  for (int d = 0; d < rank; ++d) shape.push_back(Size());
  while (NumElements(shape) > most_elements_) *std::max_element(shape.begin(), shape.end()) /= 2;
  return shape;
}

int FunctionGenerator::Axis(const Value& value) { return Below(value.rank()); }

Tensor FunctionGenerator::Elements(const Shape& shape, DataType dtype, double low, double high) {
  Tensor tensor = Tensor::Empty(shape, dtype);
  const bool is_coarse = OneIn(3);  // many equal elements, and zeros
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const double share = Below(is_coarse ? 5 : 1 << 20) / static_cast<double>(is_coarse ? 4 : (1 << 20) - 1);
    const double value = low + share * (high - low);
    tensor.Set(i, dtype.is_bool() ? std::round(share) : dtype.is_floating() ? value : std::round(value));
  }
  return tensor;
}

FunctionGenerator::Value FunctionGenerator::FreshConstant(const Shape& shape, DataType dtype, double low, double high) {
  const Expr expr = MakeConstant(Elements(shape, dtype, low, high));
  InferType(expr);
  return {expr, shape, dtype, low, high, true};
}

FunctionGenerator::Value FunctionGenerator::Fresh(const Shape& shape, DataType dtype, double low, double high) {
  if (dtype.is_bool()) low = 0, high = 1;
  if (!dtype.is_floating() && dtype.code == DataType::Code::kUInt) low = std::max(low, 0.0), high = std::max(high, 0.0);
  if (OneIn(3)) return FreshConstant(shape, dtype, low, high);
  const Var var = MakeVar(fmt::format("x{}", params_.size()), TensorType(shape, dtype));
  InferType(var);
  params_.push_back(var);
  inputs_.push_back(Elements(shape, dtype, low, high));
  return {var, shape, dtype, low, high, true};
}

FunctionGenerator::Value FunctionGenerator::Fresh(const Shape& shape) {
  const double high = main_.is_floating() ? random_.Pick<double>({1, 1, 2, 5}) : random_.Pick<double>({1, 4, 9, 100});
  return Fresh(shape, main_, OneIn(4) ? 0.1 : -high, high);
}

FunctionGenerator::Value FunctionGenerator::Any(int rank) {
  std::vector<Value> fitting;
  for (const Value& value : values_) {
    if (rank < 0 || value.rank() == rank) fitting.push_back(value);
  }
  if (fitting.empty() && !OneIn(3)) {
    if (const Made made = OfRank(values_.back(), rank)) return *made;
  }
  if (fitting.empty()) return Fresh(RandomShape(rank < 0 ? Below(5) : rank));
  // The latest ones are likelier: chains, rather than stars.
  const int behind = OneIn(3) ? Below(static_cast<int>(fitting.size())) : 0;
  return fitting[fitting.size() - 1 - static_cast<size_t>(behind)];
}

FunctionGenerator::Made FunctionGenerator::OfRank(const Value& value, int rank) {
  Ints shape = value.shape;
  while (static_cast<int>(shape.size()) > rank && shape.size() >= 2) {
    const auto at = static_cast<size_t>(Below(static_cast<int>(shape.size()) - 1));
    shape[at] *= shape[at + 1];
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
  while (static_cast<int>(shape.size()) < rank) {
    // A factor of some dimension, which may be 1, becomes one by itself.
    const auto at = static_cast<size_t>(Below(static_cast<int>(shape.size()) + 1));
    const int64_t whole = at < shape.size() ? shape[at] : 1;
    const int64_t factor = whole % 3 == 0 && whole > 0 ? 3 : whole % 2 == 0 && whole > 0 ? 2 : 1;
    if (at < shape.size()) shape[at] /= factor;
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(at), factor);
  }
  if (NumElements(value.shape) == 0) return std::nullopt;
  return Call("reshape", {value.expr}, {{"newshape", shape}}, value.low, value.high, value.is_exact);
}

FunctionGenerator::Value FunctionGenerator::AnyFloats(int rank) {
  for (int tries = 0; tries < 3; ++tries) {
    Value value = Any(rank);
    if (value.dtype.is_floating()) return value;
  }
  return Fresh(RandomShape(rank < 0 ? Below(5) : rank), OneIn(3) ? kFloat16 : kFloat32, -1, 1);
}

FunctionGenerator::Value FunctionGenerator::Partner(const Value& other, double low, double high) {
  if (OneIn(3)) {
    for (size_t i = values_.size(); i-- > 0;) {
      const Value& value = values_[i];
      if (value.dtype == other.dtype && value.shape == other.shape && value.low >= low && value.high <= high) {
        return value;
      }
    }
  }
  Shape shape = other.shape;
  switch (Below(4)) {
    case 0: break;
    case 1: shape.clear(); break;
    case 2:
      for (int64_t& size : shape) size = OneIn(2) ? 1 : size;
      break;
    default:
      shape.erase(shape.begin(), shape.begin() + Below(static_cast<int>(shape.size()) + 1));
      // The other one may be the smaller.
      for (int64_t& size : shape) size = size == 1 && OneIn(3) ? Between(1, 5) : size;
  }
  return Fresh(shape, other.dtype, low, high);
}

bool FunctionGenerator::Keep(Value value) {
  if (NumElements(value.shape) > 3 * most_elements_ || value.rank() > 6) return false;
  if (value.dtype.is_bool()) value.low = 0, value.high = 1;
  if (value.dtype == kUInt8) value.low = std::max(value.low, 0.0);
  if (!(value.magnitude() <= Largest(value.dtype))) return false;
  values_.push_back(std::move(value));
  return true;
}

FunctionGenerator::Made FunctionGenerator::Call(const std::string& op, std::vector<Expr> args, Attrs attrs, double low,
                                                double high, bool is_exact) {
  const Expr call = MakeCall(op, std::move(args), std::move(attrs));
  const TensorTypeNode* type = AsTensorType(InferType(call));
  COLLAGE_CHECK(type != nullptr && type->is_static()) << op << " gives no tensor";
  return Value{call, type->static_shape(), type->dtype(), low, high, is_exact};
}

FunctionGenerator::Made FunctionGenerator::Fields(const std::string& op, std::vector<Expr> args, Attrs attrs,
                                                  const std::vector<Value>& like) {
  const Expr call = MakeCall(op, std::move(args), std::move(attrs));
  InferType(call);
  Made first;
  for (size_t i = like.size(); i-- > 0;) {
    const Expr field = MakeTupleGetItem(call, static_cast<int>(i));
    const TensorTypeNode* type = AsTensorType(InferType(field));
    Value value{field, type->static_shape(), type->dtype(), like[i].low, like[i].high, like[i].is_exact};
    if (i == 0) {
      first = value;
    } else if (OneIn(2)) {
      Keep(value);
    }
  }
  return first;
}

RandomFunction FunctionGenerator::Make() {
  using G = FunctionGenerator;
  static const std::vector<Way> ways{
      &G::Unary,        &G::Unary,      &G::Unary,       &G::Binary,        &G::Binary,
      &G::Binary,       &G::Comparison, &G::Logical,     &G::Where,         &G::Cast,
      &G::ClipOrSlope,  &G::Quantise,   &G::Dequantise,  &G::Reduction,     &G::Reduction,
      &G::ArgReduction, &G::Cumulative, &G::Softmax,     &G::Normalisation, &G::AlongChannels,
      &G::Pool,         &G::GlobalPool, &G::Convolution, &G::Convolution,   &G::TransposedConvolution,
      &G::Dense,        &G::Matmul,     &G::Matmul,      &G::SumOfProducts, &G::Recurrent,
      &G::Resize,       &G::GridSample, &G::Sort,        &G::Transpose,     &G::Transpose,
      &G::Reshape,      &G::Reshape,    &G::Axes,        &G::Repetition,    &G::Slice,
      &G::Slice,        &G::Pad,        &G::Split,       &G::Join,          &G::Join,
      &G::Blocks,       &G::Take,       &G::Gather,      &G::Scatter,       &G::OneHot};
  static const std::vector<int> ranks{0, 1, 2, 2, 3, 3, 4, 4, 4, 5};
  static const std::vector<Way> easily_fused{&G::Unary, &G::Unary,     &G::Binary,   &G::Binary, &G::Where,
                                             &G::Cast,  &G::Transpose, &G::Reshape,  &G::Slice,  &G::ClipOrSlope,
                                             &G::Split, &G::Axes,      &G::Quantise, &G::Pad,    &G::AlongChannels};
  values_.push_back(Fresh(RandomShape(random_.Pick(ranks))));
  const int steps = 2 + Below(7);
  const bool fuses_easily = !OneIn(3);
  for (int step = 0; step < steps; ++step) {
    const std::vector<Way>& now = fuses_easily && step > 0 && !OneIn(3) ? easily_fused : ways;
    for (int tries = 0; tries < 20; ++tries) {
      const Made made = (this->*random_.Pick(now))();
      if (made && Keep(*made)) break;
    }
  }
  // The last value, and now and then others of which it is made or which nobody uses.
  std::vector<Expr> results{values_.back().expr};
  while (OneIn(3) && results.size() < 3) {
    const Expr& other = random_.Pick(values_).expr;
    if (other->kind() == ExprKind::kCall && std::find(results.begin(), results.end(), other) == results.end()) {
      results.push_back(other);
    }
  }
  const Expr body = results.size() == 1 ? results[0] : MakeTuple(results);
  const Function function = MakeFunction(params_, body);
  InferType(function);
  return {function, inputs_};
}

}  // namespace collage
