// describe.cc: reads the anchor, then follows its result to the match's: a bias, a function, a tensor, relu.
#include "backends/cutlass/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "backends/cutlass/anchors.h"
#include "collage/ir/op.h"
#include "collage/ir/visitor.h"

namespace collage::cutlass {
namespace {

using matches::Follower;
using matches::IsBias;
using matches::Operand;
using matches::Pointwise;
using matches::PointwiseMode;
using matches::Refusal;

bool IsConvolution(const CallNode& call) {
  return call.op() != nullptr && (call.op()->name == "nn.conv1d" || call.op()->name == "nn.conv2d");
}

bool IsProduct(const CallNode& call) {
  const std::string& name = call.op()->name;
  return name == "nn.dense" || name == "nn.matmul" || name == "nn.batch_matmul";
}

/// The function of the interface that `pointwise` is.
Function FunctionOf(const Pointwise& pointwise) {
  const bool is_bounded = pointwise.high > pointwise.low;
  switch (pointwise.mode) {
    case PointwiseMode::kRelu:
      if (pointwise.slope != 0) throw Refusal{"computes no leaky relu"};
      if (!is_bounded && pointwise.low == 0) return Function::kRelu;
      return Function::kClip;
    case PointwiseMode::kTanh: return Function::kTanh;
    case PointwiseMode::kSigmoid: return Function::kSigmoid;
    case PointwiseMode::kGelu: return Function::kGelu;
    case PointwiseMode::kGeluTanh: return Function::kGeluTanh;
    case PointwiseMode::kHardSwish: return Function::kHardSwish;
    case PointwiseMode::kSwish:
      if (pointwise.alpha != 1) throw Refusal{"computes swish without a factor only"};
      return Function::kSwish;
    case PointwiseMode::kElu:
    case PointwiseMode::kAdd: break;
  }
  throw Refusal{"computes no such function"};
}

std::vector<Multiplier> MultipliersFor(Element element, Precision precision) {
  if (element != Element::kFloat32) return {Multiplier::kTensor};
  if (precision.allows_tf32) return {Multiplier::kTf32};
  if (precision.is_exact) return {Multiplier::kScalar};
  return {Multiplier::kThreeTf32, Multiplier::kScalar};
}

class Describer {
 public:
  Describer(const collage::Function& function, const BoundaryLayouts& layouts) : reader_(function, layouts) {}

  Description Run(Precision precision) {
    const auto anchor = std::ranges::find_if(reader_.calls(),
                                             [](const Call& call) { return IsConvolution(*call) || IsProduct(*call); });
    if (anchor == reader_.calls().end()) throw Refusal{"has no operation that CUTLASS computes"};
    is_image_ = IsConvolution(**anchor);
    if (is_image_) {
      ReadConvolution(reader_, **anchor, description_);
    } else {
      ReadProduct(reader_, **anchor, description_);
    }
    result_type_ = matches::TensorOf(*anchor).dtype();
    current_ = *anchor;
    while (current_ != reader_.root()) Step();
    FinishInstance(precision);
    return std::move(description_);
  }

 private:
  Instance& instance() { return description_.instance; }

  void Step() {
    const Follower follower = reader_.FollowerOf(current_);
    if (matches::TensorOf(follower.call).dtype() != result_type_) throw Refusal{"converts no results"};
    if (follower.function) {
      TakeFunction(*follower.function);
    } else {
      Take(*follower.call);
    }
    current_ = follower.call;
  }

  void TakeFunction(const Pointwise& pointwise) {
    const Function function = FunctionOf(pointwise);
    if (instance().element == Element::kInt8 && function != Function::kRelu) {
      throw Refusal{"computes no function of integers but relu"};
    }
    if (instance().combination != Combination::kNone) {
      if (instance().end != Function::kNone || function != Function::kRelu) {
        throw Refusal{"computes relu only behind another tensor"};
      }
      instance().end = function;
      return;
    }
    if (instance().function != Function::kNone) throw Refusal{"computes one function only"};
    instance().function = function;
    if (function != Function::kClip) return;
    description_.kernel.low = pointwise.low;
    description_.kernel.high =
        pointwise.high > pointwise.low ? pointwise.high : std::numeric_limits<double>::infinity();
  }

  void Take(const CallNode& call) {
    const std::string& name = call.op()->name;
    if (call.op()->is_reshape) {
      if (is_image_) throw Refusal{"allows a reshape behind products only"};
      return;
    }
    if (name != "add" && name != "nn.bias_add" && name != "multiply") {
      throw Refusal{fmt::format("computes no '{}' behind an operation", name)};
    }
    const size_t which = call.args()[0] == Expr(current_) ? 1 : 0;
    if (name == "nn.bias_add" && which == 0) throw Refusal{"adds to the operation's result only"};
    const Operand operand = reader_.OperandOf(call.args()[which]);
    if (operand.dtype != result_type_) throw Refusal{"combines values of one type only"};
    const Shape shape = matches::TensorOf(current_).static_shape();
    const auto rank = static_cast<int64_t>(shape.size());
    if (name != "multiply" && IsBias(call, operand, Columns(), is_image_ ? 1 : rank - 1, rank))
      return TakeBias(operand);
    if (operand.shape != shape) {
      throw Refusal{fmt::format("combines with a number for each channel, or a tensor of the result's shape, got {}",
                                ToString(operand.shape))};
    }
    TakeTensor(operand, name == "multiply" ? Combination::kMultiply : Combination::kAdd);
  }

  int64_t Columns() const { return description_.sizes.n; }

  void TakeBias(const Operand& operand) {
    if (!description_.kernel.bias.is_none()) throw Refusal{"adds one bias only"};
    if (instance().function != Function::kNone || instance().combination != Combination::kNone) {
      throw Refusal{"adds a bias first only"};
    }
    description_.kernel.bias = AddConstant(description_, operand.constant);
  }

  void TakeTensor(const Operand& operand, Combination combination) {
    if (instance().combination != Combination::kNone) throw Refusal{"combines with one tensor only"};
    if (operand.input < 0) throw Refusal{"combines with constants along channels only"};
    if (!is_image_ && operand.layout != Layout::kPlain) throw Refusal{"combines plain matrices only"};
    if (is_image_ && !IsChannelsLast(operand.layout)) description_.kernel.moved_other = 0;
    instance().combination = combination;
    description_.kernel.other = {false, operand.input};
  }

  void FinishInstance(Precision precision) {
    if (!is_image_ && reader_.result_layout() != Layout::kPlain) throw Refusal{"makes plain matrices only"};
    if (is_image_ && !IsChannelsLast(reader_.result_layout())) description_.kernel.moved_result = 0;
    instance().alignment_result = AlignmentOf(ResultBytesOf(instance().element), Columns());
    description_.multipliers = MultipliersFor(instance().element, precision);
    description_.kernel.element_bytes = BytesOf(instance().element);
    description_.kernel.result_bytes = ResultBytesOf(instance().element);
    const ProductSizes& sizes = description_.sizes;
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max(), kMostProduct = int64_t{128} * 128;
    if (instance().element == Element::kInt8 && sizes.k > kMost / kMostProduct) {
      throw Refusal{fmt::format("adds up to {} products of integers, got {}", kMost / kMostProduct, sizes.k)};
    }
    for (const int64_t elements :
         {sizes.batch * sizes.m * sizes.n, sizes.batch * sizes.m * sizes.k, sizes.batch * sizes.n * sizes.k}) {
      if (elements > kMost) throw Refusal{"counts elements in 31 bits"};
    }
  }

  matches::MatchReader reader_;
  Description description_;
  bool is_image_ = false;
  DataType result_type_ = kFloat32;
  Call current_;
};

}  // namespace

Place AddConstant(Description& description, Tensor tensor) {
  description.constants.push_back(std::move(tensor));
  return {true, static_cast<int64_t>(description.constants.size()) - 1};
}

int AlignmentOf(int element_bytes, int64_t elements) {
  constexpr int kMostBytes = 16;
  int alignment = kMostBytes / element_bytes;
  while (elements % alignment != 0) alignment /= 2;
  return alignment;
}

BoundaryLayouts NaturalLayouts(const collage::Function& function) {
  bool is_image = false;
  PostOrder(function->body(), [&](const Expr& expr) {
    const CallNode* call = As<CallNode>(expr);
    is_image = is_image || (call != nullptr && IsConvolution(*call));
  });
  if (!is_image) return PlainLayouts(function->params().size(), 1);
  std::vector<bool> images;
  for (const Var& param : function->params()) {
    const TensorTypeNode* type = AsTensorType(param->checked_type() ? param->checked_type() : param->type_annotation());
    images.push_back(type != nullptr && type->rank() >= 3 && type->rank() <= 4);
  }
  return ChannelsLastLayouts(images, {true});
}

Result<Description> Describe(const collage::Function& function, const BoundaryLayouts& layouts, Precision precision) {
  try {
    return Describer(function, layouts).Run(precision);
  } catch (const Refusal& refusal) {
    return Reason{refusal.text, "cutlass"};
  }
}

}  // namespace collage::cutlass
