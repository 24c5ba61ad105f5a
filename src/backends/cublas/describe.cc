// describe.cc: reads both factors, then follows the product's result to the match's and adds what is met on the way: a
// scale, a bias, a matrix and a function, in this order.
#include "backends/cublas/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "backends/cublas/factors.h"
#include "backends/cublas/sums.h"
#include "backends/fused_matches/activation.h"
#include "backends/fused_matches/match_reader.h"
#include "collage/ir/op.h"

namespace collage::cublas {
namespace {

using matches::MatchReader;
using matches::Operand;
using matches::Pointwise;
using matches::PointwiseMode;
using matches::Refusal;

bool IsProduct(const Call& call) {
  const std::string& name = call->op()->name;
  return name == "nn.dense" || name == "nn.matmul" || name == "nn.batch_matmul";
}

Type TypeOf(DataType dtype) {
  for (const Type type : {Type::kFloat32, Type::kFloat16, Type::kBFloat16, Type::kInt8, Type::kInt32}) {
    if (DTypeOf(type) == dtype) return type;
  }
  throw Refusal{"multiplies float32, float16, bfloat16 and int8, got " + dtype.ToString()};
}

bool IsFloating(Type type) { return DTypeOf(type).is_floating(); }

int64_t Sized(int64_t size) {
  if (size <= std::numeric_limits<int32_t>::max()) return size;
  throw Refusal{fmt::format("counts rows and columns in 32 bits, got {}", size)};
}

class Describer {
 public:
  Describer(const Function& function, const BoundaryLayouts& layouts) : reader_(function, layouts) {}

  Description Run(Precision precision) {
    if (IsChannelsLast(reader_.result_layout())) throw Refusal{"makes plain matrices only"};
    ReadProduct();
    while (current_ != reader_.root()) Step();
    product_.result = TypeOf(StoredType(reader_.result_layout(), DTypeOf(current_)));
    CheckTypes();
    PlaceFactors();
    PlaceSums();
    ChoosePrecision(precision);
    product_.m = Sized(product_.m);
    return {product_, std::move(constants_)};
  }

 private:
  static DataType DTypeOf(const Expr& expr) { return matches::TensorOf(expr).dtype(); }
  static DataType DTypeOf(Type type) { return cublas::DTypeOf(type); }
  static Shape ShapeOf(const Expr& expr) { return matches::TensorOf(expr).static_shape(); }

  void ReadProduct() {
    const std::vector<Call>& calls = reader_.calls();
    const auto found = std::ranges::find_if(calls, IsProduct);
    if (found == calls.end()) throw Refusal{"has no operator but products of matrices"};
    const Call& call = *found;
    current_ = call;
    const bool is_dense = call->op()->name == "nn.dense";
    a_ = ReadFactor(reader_, call->args()[0]);
    b_ = ReadFactor(reader_, call->args()[1]);
    a_.is_transposed = !is_dense && call->attrs().Bool("transpose_a");
    b_.is_transposed = is_dense || call->attrs().Bool("transpose_b");
    KeepConstantsAlike();
    product_.factors = TypeOf(a_.values.dtype);
    const Shape result = ShapeOf(call), a = a_.values.shape;
    product_.batch = Sized(result.size() == 3 ? result[0] : 1);
    product_.m = Sized(result[result.size() - 2]);
    product_.n = Sized(result.back());
    product_.k = Sized(a[a.size() - (a_.is_transposed ? 2 : 1)]);
    product_.shared_a = a.size() == 3 && a[0] == 1 ? 1 : 0;
    product_.shared_b = b_.values.shape.size() == 3 && b_.values.shape[0] == 1 ? 1 : 0;
    if (a_.values.dtype != b_.values.dtype || a_.scale.defined() != b_.scale.defined()) {
      throw Refusal{"multiplies matrices of one type only"};
    }
    const DataType sums = DTypeOf(call);
    if (IsFloating(product_.factors) && sums != a_.values.dtype && sums != kFloat32) {
      throw Refusal{"adds up " + a_.values.dtype.ToString() + " as that or as float32, got " + sums.ToString()};
    }
    if (a_.scale.defined()) ReadScales();
  }

  /// Constant factors are kept as the inputs are that they are multiplied by.
  void KeepConstantsAlike() {
    Operand &a = a_.values, &b = b_.values;
    is_float32_ = a.dtype == kFloat32;
    for (Operand* one : {&a, &b}) one->dtype = StoredType(one->layout, one->dtype);
    if (b.input < 0 && b.dtype == kFloat32) b = Keep(std::move(b), a.dtype);
    if (a.input < 0 && a.dtype == kFloat32) a = Keep(std::move(a), b.dtype);
  }

  /// The constant `operand` as values of `dtype`, if that is a narrower type of floats.
  static Operand Keep(Operand operand, DataType dtype) {
    if (!dtype.is_floating() || dtype.size_bytes() >= operand.dtype.size_bytes()) return operand;
    operand.constant = operand.constant.Cast(dtype);
    operand.dtype = dtype;
    return operand;
  }

  /// Factors of quantised values: one for all of A, and for B one or one for each column.
  void ReadScales() {
    if (a_.scale.num_elements() != 1) throw Refusal{"takes one scale for all of the left matrix"};
    if (b_.scale.num_elements() == 1) {
      product_.scale = a_.scale.At(0) * b_.scale.At(0);
      return;
    }
    const int64_t rank = static_cast<int64_t>(b_.values.shape.size());
    if (rank != 2 || b_.scale_axis != (b_.is_transposed ? 0 : 1)) {
      throw Refusal{"takes one scale for all of the right matrix, or one for each column of the result"};
    }
    column_scales_ = Tensor::Empty({product_.n}, kFloat32);
    for (int64_t i = 0; i < product_.n; ++i) column_scales_.Set(i, a_.scale.At(0) * b_.scale.At(i));
  }

  /// Takes the next operator, or a function that is written out, which reads `current_`.
  void Step() {
    const matches::Follower next = reader_.FollowerOf(current_);
    if (next.function) {
      TakeFunction(*next.function);
    } else {
      Take(*next.call);
    }
    current_ = next.call;
  }

  void TakeFunction(const Pointwise& function) {
    RequireFloatingEnd();
    if (function.mode == PointwiseMode::kGeluTanh) {
      product_.activation = Activation::kGeluTanh;
    } else if (function.mode == PointwiseMode::kGelu) {
      throw Refusal{"approximates GELU by tanh, and has none by erf"};
    } else if (function.mode == PointwiseMode::kRelu && function.low == 0 && function.slope == 0 &&
               function.high <= function.low) {
      product_.activation = Activation::kRelu;
    } else {
      throw Refusal{"ends with relu and GELU only"};
    }
  }

  void Take(const CallNode& call) {
    const std::string& name = call.op()->name;
    if (product_.activation != Activation::kNone) throw Refusal{"has nothing that may follow a function"};
    if (call.op()->is_reshape) return;
    if (name == "multiply" || name == "divide") return TakeScale(call);
    if (name == "qnn.quantize") return TakeQuantize(call);
    if (name != "add" && name != "nn.bias_add") throw Refusal{"computes no '" + name + "' behind a product"};
    RequireFloatingEnd();
    const size_t which = call.args()[0] == current_ ? 1 : 0;
    if (name == "nn.bias_add" && which == 0) throw Refusal{"adds a bias to a product only"};
    Sum sum = ReadSum(reader_.OperandOf(call.args()[which]), call, ShapeOf(current_), product_);
    if (sum.operand.dtype != DTypeOf(current_)) throw Refusal{"adds values of one type only"};
    std::optional<Sum>& place = sum.is_bias() ? bias_ : addend_;
    if (place) throw Refusal{sum.is_bias() ? "adds one bias only" : "adds one matrix only"};
    place = std::move(sum);
  }

  /// Epilogues are for products of floats.
  void RequireFloatingEnd() const {
    if (!IsFloating(product_.factors)) throw Refusal{"computes nothing behind a product of 8-bit integers"};
  }

  void TakeScale(const CallNode& call) {
    const bool is_divisor = call.op()->name == "divide";
    const size_t which = call.args()[0] == current_ ? 1 : 0;
    const auto factor = matches::ScalarValue(call.args()[which]);
    if (!factor || (is_divisor && which == 0)) throw Refusal{"scales by a number only"};
    if (bias_ || addend_) throw Refusal{"scales before it adds only"};
    if (!IsFloating(product_.factors) && !a_.scale.defined()) {
      throw Refusal{"computes nothing behind a product of 8-bit integers"};
    }
    ScaleBy(is_divisor ? 1 / *factor : *factor);
  }

  void ScaleBy(double factor) {
    product_.scale *= factor;
    if (!column_scales_.defined()) return;
    for (int64_t i = 0; i < product_.n; ++i) column_scales_.Set(i, column_scales_.At(i) * factor);
  }

  void TakeQuantize(const CallNode& call) {
    const Quantisation to = ReadQuantisation(reader_, call);
    if (!a_.scale.defined() || DTypeOf(Expr(reader_.root())) != kInt8) {
      throw Refusal{"quantises products of 8-bit integers to int8 only"};
    }
    if (to.scale.num_elements() != 1) throw Refusal{"quantises by one scale only"};
    ScaleBy(1 / to.scale.At(0));
  }

  void CheckTypes() const {
    if (IsFloating(product_.factors)) {
      if (product_.result == product_.factors || product_.result == Type::kFloat32) return;
      throw Refusal{"keeps products of float32 values as that"};
    }
    const Type wanted = a_.scale.defined() ? Type::kFloat32 : Type::kInt32;
    if (product_.result != wanted && !(a_.scale.defined() && product_.result == Type::kInt8)) {
      throw Refusal{"adds up 8-bit integers as int32 only, got " + DTypeOf(product_.result).ToString()};
    }
    if (product_.n % kIntegersTogether != 0 || product_.k % kIntegersTogether != 0) {
      throw Refusal{fmt::format("multiplies 8-bit integers where columns and depth are multiples of {}, got {} and {}",
                                kIntegersTogether, product_.n, product_.k)};
    }
  }

  void PlaceFactors() {
    if (!IsFloating(product_.factors)) {
      a_.Require(/*transposed=*/false);
      b_.Require(/*transposed=*/true);
    } else {
      a_.Prefer(/*transposed=*/false);
      b_.Prefer(/*transposed=*/true);
    }
    product_.transpose_a = a_.is_transposed ? 1 : 0;
    product_.transpose_b = b_.is_transposed ? 1 : 0;
    product_.a = Place(a_.values);
    product_.b = Place(b_.values);
    if (!column_scales_.defined()) return;
    product_.has_scales = 1;
    product_.scales = Place({.constant = column_scales_});
  }

  void PlaceSums() {
    if (bias_) {
      if (bias_->along == Along::kRows && product_.activation != Activation::kNone) {
        throw Refusal{"has no function behind a number for each row"};
      }
      product_.bias_along = bias_->along;
      product_.bias_stride = bias_->stride;
      product_.bias = PlaceSum(bias_->operand);
    }
    if (addend_) {
      product_.has_addend = 1;
      product_.addend_row = addend_->row;
      product_.addend_stride = addend_->stride;
      product_.addend = PlaceSum(addend_->operand);
    }
    FoldBatch();
  }

  /// Rows of one matrix more, where all of the batch are multiplied by the same.
  void FoldBatch() {
    Product& p = product_;
    if (p.batch == 1 || p.shared_b == 0 || p.shared_a != 0 || p.transpose_a != 0) return;
    const bool has_one_bias = p.bias_along == Along::kNone || (p.bias_along == Along::kColumns && p.bias_stride == 0);
    const bool has_one_addend = p.has_addend == 0 || (p.addend_row == 0) == (p.addend_stride == 0);
    if (!has_one_bias || !has_one_addend) return;
    p.m *= p.batch;
    p.batch = 1;
    p.shared_b = 0;
    p.addend_stride = 0;
  }

  void ChoosePrecision(Precision precision) {
    if (product_.factors == Type::kFloat32) {
      product_.precision = precision;
    } else if (precision != Precision::kFloat32 && !is_float32_) {
      throw Refusal{"multiplies no float32 values, and is the same in full precision"};
    }
  }

  /// Operands of sums are of the result's type.
  Product::Operand PlaceSum(Operand operand) {
    const DataType result = DTypeOf(product_.result);
    if (operand.input < 0) return Place(Keep(std::move(operand), result));
    if (StoredType(operand.layout, operand.dtype) != result) throw Refusal{"adds what is kept as the result is only"};
    return Place(operand);
  }

  Product::Operand Place(const Operand& operand) {
    if (operand.input >= 0) {
      if (IsChannelsLast(operand.layout)) throw Refusal{"reads plain matrices only"};
      return operand.input;
    }
    constants_.push_back(operand.constant);
    return -static_cast<int64_t>(constants_.size());
  }

  MatchReader reader_;
  Call current_;
  Factor a_, b_;
  bool is_float32_ = false;  ///< whether the product is one of float32 values, whatever they are kept as
  Tensor column_scales_;
  std::optional<Sum> bias_;
  std::optional<Sum> addend_;
  Product product_;
  std::vector<Tensor> constants_;
};

}  // namespace

Result<Description> Describe(const Function& function, const BoundaryLayouts& layouts, Precision precision) {
  try {
    return Describer(function, layouts).Run(precision);
  } catch (const Refusal& refusal) {
    return Reason{refusal.text, "cublas"};
  }
}

}  // namespace collage::cublas
