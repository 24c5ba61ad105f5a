// describe.cc: follows the anchor's result to the body's, turning every step into a bias or a post-op.
#include "backends/dnnl/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "backends/dnnl/activation.h"
#include "backends/dnnl/anchors.h"
#include "backends/dnnl/reading.h"
#include "collage/ir/op.h"

namespace collage::dnnl_toolchain {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Smallest and largest element of an 8-bit dtype.
std::pair<double, double> RangeOf(DataType dtype) {
  return dtype == kInt8 ? std::pair{-128.0, 127.0} : std::pair{0.0, 255.0};
}

std::optional<PostOp> ScalarPostOp(Binary op, double value) {
  switch (op) {
    case Binary::kAdd: return PostOp{Eltwise::kLinear, 1, value};
    case Binary::kSubtract: return PostOp{Eltwise::kLinear, 1, -value};
    case Binary::kMultiply: return PostOp{Eltwise::kLinear, value, 0};
    case Binary::kDivide: return PostOp{Eltwise::kLinear, 1 / value, 0};
    case Binary::kMaximum: return PostOp{Eltwise::kClip, value, kInfinity};
    case Binary::kMinimum: return PostOp{Eltwise::kClip, -kInfinity, value};
    default: return {};
  }
}

class Describer {
 public:
  Describer(const Function& function, const BoundaryLayouts& layouts) : reading_(function, layouts) {}

  Description Run() {
    size_t at = ReadAnchor(reading_, primitive_);
    current_ = reading_.calls()[at];
    current_shape_ = ShapeOf(current_);
    while (current_ != reading_.root()) at = Step(at);
    primitive_.dst.dtype = DTypeOf(reading_.root());
    primitive_.dst.layout = reading_.result_layout();
    CheckLayout();
    CheckTypes();
    FoldQuantisation();
    return {std::move(primitive_), reading_.TakeConstants()};
  }

 private:
  // ---- what follows the anchor ----

  /// Takes the next operator, or a whole written-out activation, that reads `current_`; returns where it ends.
  size_t Step(size_t at) {
    const std::vector<Call>& calls = reading_.calls();
    size_t consumer = calls.size();
    // The last first: written-out functions contain each other.
    for (size_t i = calls.size(); i-- > at + 1;) {
      if (const auto activation = MatchActivation(calls[i], current_.get())) {
        Push(*activation);
        return Advance(i);
      }
      if (const auto prelu = MatchPrelu(calls[i]); prelu && prelu->x == current_) {
        AppendBinary(Binary::kPrelu, prelu->slope, ShapeOf(prelu->slope));
        return Advance(i);
      }
      const auto& args = calls[i]->args();
      if (std::ranges::find(args, current_) != args.end()) consumer = i;
    }
    if (consumer == calls.size()) throw Refusal{"its operators form no chain"};
    Append(*calls[consumer], consumer + 1 == calls.size());
    return Advance(consumer);
  }

  size_t Advance(size_t to) {
    current_ = reading_.calls()[to];
    current_shape_ = ShapeOf(current_);
    if (NumElements(current_shape_) != NumElements(primitive_.dst.shape)) {
      throw Refusal{fmt::format("'{}' changes the size of the result", reading_.calls()[to]->op()->name)};
    }
    return to;
  }

  void Append(const CallNode& call, bool is_last) {
    const OpDef& op = *call.op();
    if (op.is_reshape) {
      if (primitive_.kind != Kind::kMatMul) throw Refusal{"allows a reshape behind products only"};
      return;
    }
    if (op.name == "cast") return AppendCast(call);
    if (op.name == "qnn.quantize") return AppendQuantize(call, is_last);
    if (op.name == "qnn.dequantize") return AppendDequantize(call);
    if (op.name == "nn.bias_add" || op.name == "nn.prelu") {
      const Binary by_axis = op.name == "nn.prelu" ? Binary::kPrelu : Binary::kAdd;
      return AppendBinary(by_axis, call.args()[1], AlongAxis(call, current_shape_.size()));
    }
    if (const Binary binary = BinaryOf(op.name); binary != Binary::kNone) return AppendBinaryCall(call, binary);
    const auto unary = UnaryPostOp(call);
    if (!unary) throw Refusal{"has no post-op for '" + op.name + "'"};
    Push(*unary);
  }

  /// The primitive computes in float32, so that a cast between floats only decides what its result is rounded to.
  void AppendCast(const CallNode& call) {
    const DataType from = DTypeOf(call.args()[0]);
    const DataType to = call.attrs().Type("dtype");
    const bool is_sum = from == kInt32 && primitive_.is_contraction();
    if (!to.is_floating() || (!from.is_floating() && !is_sum)) {
      throw Refusal{fmt::format("does not cast {} to {}", from.ToString(), to.ToString())};
    }
  }

  void AppendBinaryCall(const CallNode& call, Binary binary) {
    const bool left = call.args()[0] == current_;
    if (left && call.args()[1] == current_ && binary == Binary::kMultiply) return Push({Eltwise::kSquare});
    const Expr& other = call.args()[left ? 1 : 0];
    const auto scalar = ScalarValue(other);
    if (!left && binary == Binary::kSubtract && scalar) return Push({Eltwise::kLinear, -1, *scalar});
    const bool commutes = binary != Binary::kSubtract && binary != Binary::kDivide && binary < Binary::kEqual;
    if (!left && !commutes) throw Refusal{"subtracts from and divides the primitive's result only"};
    if (const auto post_op = scalar ? ScalarPostOp(binary, *scalar) : std::nullopt) return Push(*post_op);
    AppendBinary(binary, other, ShapeOf(other));
  }

  void AppendBinary(Binary binary, const Expr& other, const Shape& shape) {
    Operand operand = reading_.OperandOf(other);
    const Shape seen = AsSeenByPrimitive(shape);
    if (operand.layout != Layout::kPlain && operand.shape != seen)
      throw Refusal{"an operand is reshaped out of its layout"};
    operand.shape = seen;
    if (operand.zero_input >= 0) throw Refusal{"takes constant zero points behind the anchor only"};
    const size_t channel = primitive_.is_window() ? 1 : seen.size() - 1;
    const bool per_channel =
        !seen.empty() && seen[channel] == NumElements(seen) && seen[channel] == primitive_.dst.shape[channel];
    if (binary == Binary::kAdd && operand.constant >= 0 && !operand.is_quantised() && operand.dtype.is_floating() &&
        per_channel && primitive_.is_contraction() && primitive_.post_ops.empty() && !primitive_.bias.defined()) {
      primitive_.bias = operand;
      return;
    }
    if (binary == Binary::kPrelu) CheckSlopes(seen, per_channel);
    if (!operand.is_quantised()) {
      if (!operand.dtype.is_floating())
        throw Refusal{"combines its result with floats, got " + operand.dtype.ToString()};
      primitive_.post_ops.push_back({Eltwise::kRelu, 0, 0, binary, operand});
      return;
    }
    // y op scale * (q - zero), with integers q as the operand of the post-op.
    const double scale = operand.scale;
    const auto zero = static_cast<double>(operand.zero);
    operand.scale = 1;
    operand.zero = 0;
    if (binary == Binary::kAdd || binary == Binary::kSubtract) {
      Push({Eltwise::kLinear, 1 / scale, binary == Binary::kAdd ? -zero : zero});
    } else if (binary != Binary::kMultiply || zero != 0) {
      throw Refusal{"adds and subtracts quantised tensors only"};
    }
    primitive_.post_ops.push_back({Eltwise::kRelu, 0, 0, binary, operand});
    Push({Eltwise::kLinear, scale, 0});
  }

  /// Checks the axis of slopes: for batched products, the library numbers it differently.
  void CheckSlopes(const Shape& slopes, bool per_channel) const {
    if (!per_channel && NumElements(slopes) != 1) throw Refusal{"takes slopes per channel only"};
    if (primitive_.kind == Kind::kMatMul && slopes.size() != 2)
      throw Refusal{"takes slopes behind single matrices only"};
  }

  /// The result's quantisation; before the end, rounding to steps of it.
  void AppendQuantize(const CallNode& call, bool is_last) {
    const QuantisationOf quantisation(call);
    if (quantisation.scales != nullptr) throw Refusal{"quantises its result by one scale only"};
    const DataType dtype = call.attrs().Type("out_dtype");
    if (dtype != kInt8 && dtype != kUInt8) throw Refusal{"quantises to 8 bits only, got " + dtype.ToString()};
    if (is_last) {
      primitive_.dst.scale = quantisation.scale;
      primitive_.dst.zero = quantisation.zero;
      return;
    }
    const auto [low, high] = RangeOf(dtype);
    const auto zero = static_cast<double>(quantisation.zero);
    Push({Eltwise::kLinear, 1 / quantisation.scale, 0});
    Push({Eltwise::kRound});
    Push({Eltwise::kClip, low - zero, high - zero});
    rounded_zero_ = zero;
  }

  void AppendDequantize(const CallNode& call) {
    if (!rounded_zero_) throw Refusal{"dequantises operands and what it has quantised only"};
    const QuantisationOf quantisation(call);
    if (quantisation.scales != nullptr) throw Refusal{"takes one scale for all channels of the data"};
    const double offset = *rounded_zero_ - static_cast<double>(quantisation.zero);
    Push({Eltwise::kLinear, quantisation.scale, offset * quantisation.scale});
    rounded_zero_.reset();
  }

  /// Adds a function; two linear ones in a row are one.
  void Push(PostOp op) {
    std::vector<PostOp>& ops = primitive_.post_ops;
    const auto is_linear = [](const PostOp& x) { return x.binary == Binary::kNone && x.eltwise == Eltwise::kLinear; };
    if (is_linear(op) && op.alpha == 1 && op.beta == 0) return;
    if (!ops.empty() && is_linear(op) && is_linear(ops.back())) {
      ops.back().beta = op.alpha * ops.back().beta + op.beta;
      ops.back().alpha *= op.alpha;
      return;
    }
    ops.push_back(std::move(op));
  }

  /// `shape`, which broadcasts to the current value's, in terms of the primitive's result.
  Shape AsSeenByPrimitive(Shape shape) const {
    const Shape& dst = primitive_.dst.shape;
    if (current_shape_ == dst) {
      if (shape.size() > dst.size()) throw Refusal{"an operand has more dimensions than the result"};
      shape.insert(shape.begin(), dst.size() - shape.size(), 1);
      return shape;
    }
    const int64_t count = NumElements(shape);
    if (count == NumElements(dst)) return dst;
    if (count == 1) return Shape(dst.size(), 1);
    if (!shape.empty() && shape.back() == count && count == dst.back()) {
      Shape last(dst.size(), 1);
      last.back() = count;
      return last;
    }
    throw Refusal{"an operand broadcasts across a reshape"};
  }

  // ---- the whole ----

  void CheckLayout() const {
    const Primitive& p = primitive_;
    const bool any = p.is_window() || p.is_elementwise() || p.kind == Kind::kLrn || p.kind == Kind::kConcat;
    if (p.dst.layout != Layout::kPlain && (!any || current_shape_ != p.dst.shape))
      throw Refusal{"its result has no channels"};
    const bool takes_post_ops = p.is_contraction() || p.is_window() || p.is_elementwise() || p.kind == Kind::kReduction;
    if (!takes_post_ops && !p.post_ops.empty()) throw Refusal{"takes no operators behind normalisations"};
    if (p.binary == Binary::kPrelu && !p.post_ops.empty()) throw Refusal{"takes no operators behind PReLU"};
  }

  void CheckTypes() const {
    const Primitive& p = primitive_;
    const bool is_linear = p.is_window() || p.is_elementwise() || p.kind == Kind::kConcat || p.kind == Kind::kReorder;
    if (p.src.is_quantised() && !is_linear && !p.is_contraction()) throw Refusal{"computes this of floats only"};
    if (p.src.zero_input >= 0 && !p.is_contraction()) throw Refusal{"takes constant zero points only"};
    if (p.bias.is_quantised() && p.is_contraction()) throw Refusal{"adds a bias of floats"};
    const bool is_8_bit = !p.src.dtype.is_floating();
    const bool converts = p.kind == Kind::kReorder || p.kind == Kind::kConcat;
    if (!p.is_contraction()) {
      if (is_8_bit && !p.src.is_quantised() && !converts && p.kind != Kind::kMaxPool) {
        throw Refusal{"computes floats and dequantised integers, got " + p.src.dtype.ToString()};
      }
      return;
    }
    if (is_8_bit && p.src.dtype != kInt8 && p.src.dtype != kUInt8)
      throw Refusal{"multiplies floats and 8-bit integers, got " + p.src.dtype.ToString()};
    if (!is_8_bit && !p.dst.dtype.is_floating() && !p.dst.is_quantised()) throw Refusal{"gives floats for floats"};
    const bool is_wide = p.dst.dtype.is_floating() || p.dst.dtype == kInt32 || p.dst.is_quantised();
    if (is_8_bit && !is_wide)
      throw Refusal{"gives int32, floats or quantised results of bytes, not " + p.dst.dtype.ToString()};
    if (is_8_bit) CheckBytes(p.weights);
    if (!is_8_bit && p.weights.is_quantised() && p.weights.constant < 0)
      throw Refusal{"dequantises constant weights only"};
  }

  /// 8-bit products want signed weights around 0: constant ones are brought there when they fit.
  void CheckBytes(const Operand& weights) const {
    if (weights.dtype.is_floating())
      throw Refusal{"multiplies 8-bit data by 8-bit weights only, got " + weights.dtype.ToString()};
    const bool is_symmetric =
        (weights.dtype == kInt8 && weights.zero == 0) || (weights.dtype == kUInt8 && weights.zero == 128);
    if (weights.constant < 0) {
      if (weights.dtype == kInt8 && weights.zero == 0 && weights.zero_input < 0) return;
      throw Refusal{"takes signed weights around 0 unless they are constant"};
    }
    if (is_symmetric) return;
    const Tensor& values = reading_.constant(weights.constant);
    for (int64_t i = 0; i < values.num_elements(); ++i) {
      const double value = values.At(i) - static_cast<double>(weights.zero);
      if (value < -128 || value > 127) throw Refusal{"takes weights of 8 bits around their zero point only"};
    }
  }

  /// Contractions and reorders have scales of their own; of others, what goes in and comes out becomes a linear
  /// post-op.
  void FoldQuantisation() {
    Primitive& p = primitive_;
    if (p.is_contraction() || p.kind == Kind::kReorder) return;
    std::vector<PostOp> before;
    const bool same =
        p.src.scale == p.dst.scale && p.src.zero == p.dst.zero && p.src.dtype == p.dst.dtype && p.post_ops.empty();
    if (p.kind == Kind::kConcat && !same) throw Refusal{"concatenates values of one scale only"};
    if (p.kind == Kind::kBinary) return FoldBinary();
    if (!same) {
      std::vector<PostOp> behind = std::move(p.post_ops);
      p.post_ops.clear();
      if (p.src.is_quantised()) Push({Eltwise::kLinear, p.src.scale, -p.src.scale * static_cast<double>(p.src.zero)});
      for (PostOp& op : behind) {
        if (op.binary == Binary::kNone)
          Push(op);
        else
          p.post_ops.push_back(std::move(op));
      }
      if (p.dst.is_quantised()) Push({Eltwise::kLinear, 1 / p.dst.scale, static_cast<double>(p.dst.zero)});
    }
    for (Operand* operand : {&p.src, &p.dst}) operand->scale = 1, operand->zero = 0;
    for (Operand& operand : p.more) operand.scale = 1, operand.zero = 0;
  }

  /// The scales stay with the sources; their zero points are a number to add.
  void FoldBinary() {
    Primitive& p = primitive_;
    const double first = p.src.scale * static_cast<double>(p.src.zero);
    const double second = p.weights.scale * static_cast<double>(p.weights.zero);
    const bool adds = p.binary == Binary::kAdd || p.binary == Binary::kSubtract;
    if ((first != 0 || second != 0) && !adds) throw Refusal{"adds and subtracts integers with zero points only"};
    std::vector<PostOp> behind = std::move(p.post_ops);
    p.post_ops.clear();
    if (adds) Push({Eltwise::kLinear, 1, -first + (p.binary == Binary::kAdd ? -second : second)});
    for (PostOp& op : behind) {
      if (op.binary == Binary::kNone)
        Push(op);
      else
        p.post_ops.push_back(std::move(op));
    }
    if (p.dst.is_quantised()) Push({Eltwise::kLinear, 1 / p.dst.scale, static_cast<double>(p.dst.zero)});
    p.dst.scale = 1;
    p.src.zero = p.weights.zero = p.dst.zero = 0;
  }

  Reading reading_;
  Primitive primitive_;
  Expr current_;                        // value that the primitive with the post-ops so far computes
  Shape current_shape_;                 // its shape: the primitive's, or a reshape of it
  std::optional<double> rounded_zero_;  // the value counts steps from this zero point
};

}  // namespace

Result<Description> Describe(const Function& function, const BoundaryLayouts& layouts) {
  try {
    return Describer(function, layouts).Run();
  } catch (const Refusal& refusal) {
    return Reason{refusal.text, "dnnl"};
  }
}

namespace {

/// Returns the same memory orders, with nothing stored as bfloat16.
BoundaryLayouts OrdersOf(BoundaryLayouts layouts) {
  for (std::vector<Layout>* kept : {&layouts.inputs, &layouts.outputs}) {
    for (Layout& layout : *kept) layout = IsChannelsLast(layout) ? Layout::kChannelsLast : Layout::kPlain;
  }
  return layouts;
}

/// Operands of the types that `layouts` keeps them in: oneDNN widens and rounds by itself.
void KeepAs(const BoundaryLayouts& layouts, Primitive& primitive) {
  const auto keep = [&](Operand& operand) {
    if (operand.input < 0) return;
    operand.dtype = StoredType(layouts.inputs.at(static_cast<size_t>(operand.input)), operand.dtype);
  };
  for (Operand* operand : {&primitive.src, &primitive.weights, &primitive.bias}) keep(*operand);
  for (Operand& operand : primitive.more) keep(operand);
  for (PostOp& op : primitive.post_ops) keep(op.operand);
  primitive.dst.dtype = StoredType(layouts.outputs.at(0), primitive.dst.dtype);
}

}  // namespace

Result<Description> DescribeIn(DataType precision, const Function& function, const BoundaryLayouts& layouts) {
  if (precision == kFloat32) return Describe(function, layouts);
  Result<Description> description = Describe(function, OrdersOf(layouts));
  if (!description) return description;
  Primitive& primitive = description->primitive;
  if (!primitive.is_contraction() || primitive.src.dtype != kFloat32) {
    return Reason{"computes products of float32 values in " + precision.ToString() + ", nothing else", "dnnl"};
  }
  primitive.multiplied_as = precision;
  KeepAs(layouts, primitive);
  return description;
}

Result<void> CheckComposite(const Function& composite) {
  const Result<Description> description = Describe(composite, PlainLayouts(composite->params().size(), 1));
  if (!description) return description.reason();
  return {};
}

Result<void> CheckCombining(const Function& composite) {
  const Result<Description> description = Describe(composite, PlainLayouts(composite->params().size(), 1));
  if (!description) return description.reason();
  const bool combines =
      std::ranges::any_of(description->primitive.post_ops, [](const PostOp& op) { return op.binary != Binary::kNone; });
  if (!combines) return Reason{"combines its result with no tensor: another row's match", "dnnl"};
  return {};
}

}  // namespace collage::dnnl_toolchain
