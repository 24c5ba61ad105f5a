// describe.cc: finds the anchor, then follows its result to the body's, turning every step into a bias or a post-op.
#include "backends/dnnl/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>

#include "backends/dnnl/activation.h"
#include "collage/ir/op.h"
#include "collage/ir/visitor.h"

namespace collage::dnnl_toolchain {
namespace {

struct Refusal {
  std::string text;
};

const TensorTypeNode& TensorOf(const Expr& expr) {
  const TensorTypeNode* type = AsTensorType(expr->checked_type());
  if (type == nullptr || !type->is_static()) throw Refusal{"takes tensors of static shape only"};
  if (type->dtype() != kFloat32) throw Refusal{"computes float32 only, got " + type->dtype().ToString()};
  return *type;
}

Shape ShapeOf(const Expr& expr) { return TensorOf(expr).static_shape(); }

std::vector<int64_t> PerDimension(std::vector<int64_t> values, size_t rank) {
  if (values.size() == 1) values.resize(rank, values[0]);
  return values;
}

std::optional<Binary> BinaryOf(const std::string& name) {
  if (name == "add") return Binary::kAdd;
  if (name == "subtract") return Binary::kSubtract;
  if (name == "multiply") return Binary::kMultiply;
  if (name == "divide") return Binary::kDivide;
  if (name == "maximum") return Binary::kMaximum;
  if (name == "minimum") return Binary::kMinimum;
  return {};
}

PostOp ScalarPostOp(Binary op, double value) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (op) {
    case Binary::kAdd: return {Eltwise::kLinear, 1, value};
    case Binary::kSubtract: return {Eltwise::kLinear, 1, -value};
    case Binary::kMultiply: return {Eltwise::kLinear, value, 0};
    case Binary::kDivide: return {Eltwise::kLinear, 1 / value, 0};
    case Binary::kMaximum: return {Eltwise::kClip, value, kInfinity};
    default: return {Eltwise::kClip, -kInfinity, value};
  }
}

class Describer {
 public:
  Describer(const Function& function, const BoundaryLayouts& layouts) : layouts_(layouts) {
    const CallNode* call = As<CallNode>(function->body());
    Function composite = function;
    for (size_t i = 0; i < function->params().size(); ++i) {
      parameters_[function->params()[i].get()] = static_cast<int>(i);
    }
    if (call != nullptr && call->callee()->kind() == ExprKind::kFunction) {
      composite = AsShared<FunctionNode>(call->callee());
      for (size_t i = 0; i < composite->params().size(); ++i) arguments_[composite->params()[i].get()] = call->args().at(i);
    }
    root_ = composite->body();
    PostOrderInScope(root_, [&](const Expr& expr) {
      if (const auto op_call = AsShared<CallNode>(expr)) {
        if (op_call->op() == nullptr) throw Refusal{"holds one composite only"};
        calls_.push_back(op_call);
      }
    });
  }

  Description Run() {
    size_t at = FindAnchor();
    current_ = calls_[at];
    current_shape_ = result_.primitive.dst_shape;
    while (current_ != root_) at = Step(at);
    Primitive& primitive = result_.primitive;
    primitive.dst_layout = layouts_.outputs.at(0);
    if (primitive.dst_layout != Layout::kPlain && (!primitive.is_window() || current_shape_ != primitive.dst_shape)) {
      throw Refusal{"its result has no channels"};
    }
    if (!primitive.is_window() && primitive.kind != Kind::kMatMul && !primitive.post_ops.empty()) {
      throw Refusal{"takes no operators behind normalisations"};
    }
    return std::move(result_);
  }

 private:
  // ---- the anchor ----

  size_t FindAnchor() {
    for (size_t i = 0; i < calls_.size(); ++i) {
      const CallNode& call = *calls_[i];
      const std::string& name = call.op()->name;
      result_.primitive.dst_shape = ShapeOf(calls_[i]);
      if (name.starts_with("nn.conv")) return Convolution(call), i;
      if (name == "nn.dense" || name == "nn.matmul" || name == "nn.batch_matmul") return Product(call), i;
      if (name.find("_pool") != name.npos) return Pool(call), i;
      if (name == "nn.softmax" || name == "nn.log_softmax" || name == "nn.layer_norm") return Normalisation(call), i;
    }
    throw Refusal{"has no operator that is a oneDNN primitive"};
  }

  void Convolution(const CallNode& call) {
    Primitive& p = result_.primitive;
    const bool transposed = call.op()->name.ends_with("_transpose");
    p.kind = transposed ? Kind::kDeconv : Kind::kConv;
    p.groups = call.attrs().Int("groups");
    p.src = OperandOf(call.args()[0]);
    p.weights = OperandOf(call.args()[1]);
    if (p.weights.constant < 0) throw Refusal{"takes constant weights only, which are packed once"};
    SetWindow(call.attrs(), p.src.shape.size() - 2);
    if (!transposed) return;
    const std::vector<int64_t> extra = PerDimension(call.attrs().Ints("output_padding"), p.strides.size());
    for (size_t d = 0; d < extra.size(); ++d) p.after[d] -= extra[d];
  }

  void SetWindow(const Attrs& attrs, size_t rank) {
    Primitive& p = result_.primitive;
    p.strides = PerDimension(attrs.Ints("strides"), rank);
    p.dilation = PerDimension(attrs.Ints("dilation"), rank);
    const std::vector<int64_t> padding = PerDimension(attrs.Ints("padding"), rank);
    p.before.assign(padding.begin(), padding.begin() + static_cast<ptrdiff_t>(rank));
    p.after.assign(padding.end() - static_cast<ptrdiff_t>(rank), padding.end());
  }

  void Pool(const CallNode& call) {
    Primitive& p = result_.primitive;
    const std::string& name = call.op()->name;
    p.kind = name.find("max_pool") != name.npos ? Kind::kMaxPool : Kind::kAvgPool;
    p.src = OperandOf(call.args()[0]);
    const size_t rank = p.src.shape.size() - 2;
    if (name.starts_with("nn.global_")) {
      p.kernel.assign(p.src.shape.begin() + 2, p.src.shape.end());
      p.strides.assign(rank, 1);
      p.dilation.assign(rank, 1);
      p.before.assign(rank, 0);
      p.after.assign(rank, 0);
      return;
    }
    if (!name.starts_with("nn.max_pool") && !name.starts_with("nn.avg_pool")) throw Refusal{"has no '" + name + "'"};
    p.kernel = PerDimension(call.attrs().Ints("pool_size"), rank);
    SetWindow(call.attrs(), rank);
    p.count_include_pad = p.kind == Kind::kAvgPool && call.attrs().Bool("count_include_pad");
    for (size_t d = 0; d < rank; ++d) {
      if (p.dilation[d] != 1) throw Refusal{"pools without dilation only"};
      if (p.before[d] >= p.kernel[d]) throw Refusal{"pools with padding smaller than the window only"};
      // With ceil_mode the last window may reach beyond the padding; without, it may stop short of it.
      const int64_t after = (p.dst_shape[d + 2] - 1) * p.strides[d] + p.kernel[d] - p.src.shape[d + 2] - p.before[d];
      if (p.count_include_pad && after > p.after[d]) throw Refusal{"divides partial windows by another count"};
      if (after >= p.kernel[d]) throw Refusal{"has windows that see no data"};
      p.after[d] = after;
    }
  }

  void Product(const CallNode& call) {
    Primitive& p = result_.primitive;
    p.kind = Kind::kMatMul;
    const bool dense = call.op()->name == "nn.dense";
    p.transpose_a = !dense && call.attrs().Bool("transpose_a");
    p.transpose_b = dense || call.attrs().Bool("transpose_b");
    p.src = OperandOf(call.args()[0]);
    p.weights = OperandOf(call.args()[1]);
    if (p.src.layout != Layout::kPlain || p.weights.layout != Layout::kPlain) throw Refusal{"multiplies plain matrices only"};
  }

  void Normalisation(const CallNode& call) {
    Primitive& p = result_.primitive;
    const std::string& name = call.op()->name;
    p.src = OperandOf(call.args()[0]);
    const auto rank = static_cast<int64_t>(p.src.shape.size());
    p.axis = call.attrs().Int("axis");
    if (p.axis < 0) p.axis += rank;
    if (p.src.layout != Layout::kPlain) throw Refusal{"normalises plain tensors only"};
    p.kind = name == "nn.softmax" ? Kind::kSoftmax : name == "nn.log_softmax" ? Kind::kLogSoftmax : Kind::kLayerNorm;
    if (p.kind != Kind::kLayerNorm) return;
    if (p.axis != rank - 1) throw Refusal{"normalises the last axis only"};
    if (!call.attrs().Bool("scale") || !call.attrs().Bool("center")) throw Refusal{"expects scale and shift"};
    p.epsilon = call.attrs().Double("epsilon");
    p.weights = OperandOf(call.args()[1]);
    p.bias = OperandOf(call.args()[2]);
  }

  // ---- what follows it ----

  /// Takes the next operator, or a whole written-out activation, that reads `current_`; returns where it ends.
  size_t Step(size_t at) {
    size_t consumer = calls_.size();
    for (size_t i = at + 1; i < calls_.size(); ++i) {
      if (const auto activation = MatchActivation(calls_[i], current_.get())) {
        result_.primitive.post_ops.push_back(*activation);
        return Advance(i);
      }
      const auto& args = calls_[i]->args();
      const bool reads = std::ranges::find(args, current_) != args.end();
      if (reads && consumer == calls_.size()) consumer = i;
    }
    if (consumer == calls_.size()) throw Refusal{"its operators form no chain"};
    Append(*calls_[consumer]);
    return Advance(consumer);
  }

  size_t Advance(size_t to) {
    current_ = calls_[to];
    current_shape_ = ShapeOf(current_);
    if (NumElements(current_shape_) != NumElements(result_.primitive.dst_shape)) {
      throw Refusal{fmt::format("'{}' changes the size of the result", calls_[to]->op()->name)};
    }
    return to;
  }

  void Append(const CallNode& call) {
    Primitive& p = result_.primitive;
    const OpDef& op = *call.op();
    if (op.is_reshape) {
      if (p.kind != Kind::kMatMul) throw Refusal{"allows a reshape behind products only"};
      return;
    }
    if (op.name == "nn.bias_add") {
      const int64_t axis = call.attrs().Int("axis");
      const auto rank = static_cast<int64_t>(current_shape_.size());
      Shape shape(current_shape_.size(), 1);
      shape.at(static_cast<size_t>(axis < 0 ? axis + rank : axis)) = NumElements(ShapeOf(call.args()[1]));
      AppendBinary(Binary::kAdd, call.args()[1], shape);
      return;
    }
    if (const auto binary = BinaryOf(op.name)) {
      const bool left = call.args()[0] == current_;
      const Expr& other = call.args()[left ? 1 : 0];
      const auto scalar = ScalarValue(other);
      if (!left && *binary == Binary::kSubtract && scalar) {
        p.post_ops.push_back({Eltwise::kLinear, -1, *scalar});
        return;
      }
      if (!left && (*binary == Binary::kSubtract || *binary == Binary::kDivide)) {
        throw Refusal{"subtracts from and divides the primitive's result only"};
      }
      if (scalar) {
        p.post_ops.push_back(ScalarPostOp(*binary, *scalar));
      } else {
        AppendBinary(*binary, other, ShapeOf(other));
      }
      return;
    }
    const auto unary = UnaryPostOp(call);
    if (!unary) throw Refusal{"has no post-op for '" + op.name + "'"};
    p.post_ops.push_back(*unary);
  }

  void AppendBinary(Binary binary, const Expr& other, const Shape& shape) {
    Primitive& p = result_.primitive;
    Operand operand = OperandOf(other);
    const Shape seen = AsSeenByPrimitive(shape);
    if (operand.layout != Layout::kPlain && operand.shape != seen) throw Refusal{"an operand is reshaped out of its layout"};
    operand.shape = seen;
    const size_t channel = p.is_window() ? 1 : seen.size() - 1;
    const bool per_channel = seen[channel] == NumElements(seen) && seen[channel] == p.dst_shape[channel];
    const bool takes_bias = p.kind == Kind::kConv || p.kind == Kind::kDeconv || p.kind == Kind::kMatMul;
    if (binary == Binary::kAdd && operand.constant >= 0 && per_channel && takes_bias && p.post_ops.empty() &&
        !p.bias.defined()) {
      p.bias = operand;
      return;
    }
    p.post_ops.push_back({Eltwise::kRelu, 0, 0, binary, operand});
  }

  /// `shape`, which broadcasts to the current value's, in terms of the primitive's result.
  Shape AsSeenByPrimitive(Shape shape) const {
    const Shape& dst = result_.primitive.dst_shape;
    if (current_shape_ == dst) {
      if (shape.size() > dst.size()) throw Refusal{"an operand has more dimensions than the result"};
      shape.insert(shape.begin(), dst.size() - shape.size(), 1);
      return shape;
    }
    const int64_t count = NumElements(shape);
    if (count == NumElements(dst)) return dst;
    if (!shape.empty() && shape.back() == count && count == dst.back()) {
      Shape last(dst.size(), 1);
      last.back() = count;
      return last;
    }
    throw Refusal{"an operand broadcasts across a reshape"};
  }

  Operand OperandOf(const Expr& expr) {
    Expr source = expr;
    if (const auto it = arguments_.find(expr.get()); it != arguments_.end()) source = it->second;
    Operand operand;
    operand.shape = ShapeOf(expr);
    if (const ConstantNode* constant = As<ConstantNode>(source)) {
      operand.constant = static_cast<int>(result_.constants.size());
      result_.constants.push_back(constant->value());
      return operand;
    }
    const auto it = parameters_.find(source.get());
    if (it == parameters_.end()) throw Refusal{"an operand is computed inside the match"};
    operand.input = it->second;
    operand.layout = layouts_.inputs.at(static_cast<size_t>(it->second));
    return operand;
  }

  const BoundaryLayouts& layouts_;
  std::unordered_map<const ExprNode*, int> parameters_;
  std::unordered_map<const ExprNode*, Expr> arguments_;  // composite's parameter → what it is called with
  Expr root_;
  std::vector<Call> calls_;
  Expr current_;         // value that the primitive with the post-ops so far computes
  Shape current_shape_;  // its shape: the primitive's, or a reshape of it
  Description result_;
};

}  // namespace

Result<Description> Describe(const Function& function, const BoundaryLayouts& layouts) {
  try {
    return Describer(function, layouts).Run();
  } catch (const Refusal& refusal) {
    return Reason{refusal.text, "dnnl"};
  }
}

Result<void> CheckComposite(const Function& composite) {
  const Result<Description> description = Describe(composite, PlainLayouts(composite->params().size(), 1));
  if (!description) return description.reason();
  return {};
}

}  // namespace collage::dnnl_toolchain
