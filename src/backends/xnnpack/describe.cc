// describe.cc: peels quantisation and clamp off the result, then reads what is left: one operator on operands.
#include "backends/xnnpack/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "backends/xnnpack/elements.h"
#include "backends/xnnpack/operands.h"
#include "backends/xnnpack/written_out.h"
#include "collage/ir/op.h"
#include "collage/ir/visitor.h"
#include "ir/ops/relations.h"

namespace collage::xnnpack_toolchain {
namespace {

/// XNNPACK's limit on broadcasts and pads.
constexpr size_t kMaxRank = 6;

bool IsContraction(const Expr& expr) {
  const CallNode* call = As<CallNode>(expr);
  return call != nullptr && call->op() != nullptr &&
         (call->op()->name.starts_with("nn.conv") || call->op()->name == "nn.dense");
}

/// A contraction, or the reshape to a sequence's shape behind one.
bool IsContractionResult(const Expr& expr) {
  const CallNode* reshape = CallOf(expr, "reshape");
  return IsContraction(expr) || (reshape != nullptr && IsContraction(reshape->args()[0]));
}

/// Operators that are one of XNNPACK's functions.
std::optional<Unary> UnaryOf(const std::string& name) {
  static const std::map<std::string, Unary> kUnaries{
      {"abs", Unary::kAbs},         {"negative", Unary::kNegate},
      {"floor", Unary::kFloor},     {"ceil", Unary::kCeiling},
      {"round", Unary::kRound},     {"trunc", Unary::kTruncate},
      {"sqrt", Unary::kSquareRoot}, {"nn.leaky_relu", Unary::kLeakyRelu},
      {"sigmoid", Unary::kSigmoid}, {"tanh", Unary::kTanh},
      {"nn.relu", Unary::kClamp},   {"clip", Unary::kClamp},
  };
  const auto it = kUnaries.find(name);
  if (it == kUnaries.end()) return {};
  return it->second;
}

std::optional<Binary> BinaryOf(const std::string& name) {
  static const std::map<std::string, Binary> kBinaries{
      {"add", Binary::kAdd},       {"subtract", Binary::kSubtract}, {"multiply", Binary::kMultiply},
      {"divide", Binary::kDivide}, {"maximum", Binary::kMaximum},   {"minimum", Binary::kMinimum},
  };
  const auto it = kBinaries.find(name);
  if (it == kBinaries.end()) return {};
  return it->second;
}

class Describer {
 public:
  Describer(const Function& function, const BoundaryLayouts& layouts)
      : operands_(function, layouts), op_(result_.operation) {}

  Description Run() {
    Read(operands_.root());
    result_.constants = operands_.TakeConstants();
    return std::move(result_);
  }

 private:
  bool IsLeaf(const Expr& expr) const { return operands_.IsLeaf(expr); }

  void Read(const Expr& root) {
    const CallNode* quantize = CallOf(root, "qnn.quantize");
    const CallNode* dequantize = CallOf(root, "qnn.dequantize");
    if (dequantize != nullptr) return Conversion(*dequantize, Kind::kDequantize);
    if (quantize == nullptr) {
      ReadOperator(PeelClamp(root));
    } else if (const Expr& computed = quantize->args()[0];
               !IsLeaf(computed) || CallOf(computed, "qnn.dequantize") != nullptr) {
      op_.result_quantisation = operands_.QuantisationOf(*quantize);
      ReadOperator(PeelClamp(computed));
    } else {
      return Conversion(*quantize, Kind::kQuantize);
    }
    if (is_clamped_ && !FusesClamp()) throw Refusal{"fuses no clamp into this operator"};
    op_.element = op_.data[0].element;
    CheckElements(op_, ElementOf(operands_.root()));
  }

  void Conversion(const CallNode& call, Kind kind) {
    op_.kind = kind;
    const bool quantizes = kind == Kind::kQuantize;
    const Operand operand = operands_.ElementWise(call.args()[0], operands_.root());
    op_.data = {operand};
    (quantizes ? op_.result_quantisation : op_.data[0].quantisation) = operands_.QuantisationOf(call);
    op_.element = ElementOf(quantizes ? operands_.root() : call.args()[0]);
    if (op_.element == Element::kFloat32) throw Refusal{"converts between float32 and 8-bit integers only"};
    if (ElementOf(quantizes ? call.args()[0] : operands_.root()) != Element::kFloat32) {
      throw Refusal{"converts between float32 and 8-bit integers only"};
    }
    op_.result = operand.shape;
  }

  /// A clamp behind the operator is fused; one on a parameter is the operator.
  Expr PeelClamp(const Expr& expr) {
    const CallNode* call = As<CallNode>(expr);
    if (call == nullptr || call->op() == nullptr) return expr;
    const bool relu = call->op()->name == "nn.relu";
    if (!relu && call->op()->name != "clip") return expr;
    op_.low = relu ? 0 : call->attrs().Double("a_min");
    if (!relu) op_.high = call->attrs().Double("a_max");
    if (!(op_.low < op_.high)) throw Refusal{fmt::format("clamps to [{}, {}], which is no range", op_.low, op_.high)};
    if (IsLeaf(call->args()[0])) return expr;
    is_clamped_ = true;
    return call->args()[0];
  }

  bool FusesClamp() const {
    switch (op_.kind) {
      case Kind::kConv:
      case Kind::kDeconv:
      case Kind::kDense:
      case Kind::kMaxPool:
      case Kind::kAvgPool:
      case Kind::kGlobalAvgPool: return true;
      case Kind::kBinary:
        return op_.binary == Binary::kAdd || op_.binary == Binary::kSubtract || op_.binary == Binary::kMultiply ||
               op_.binary == Binary::kDivide;
      default: return false;
    }
  }

  void ReadOperator(const Expr& expr) {
    const Call call = AsShared<CallNode>(expr);
    if (call == nullptr || call->op() == nullptr) throw Refusal{"has no operator"};
    const std::string& name = call->op()->name;
    if (IsContractionResult(expr)) return Contraction(call);
    if (name == "add" || name == "nn.bias_add") {
      for (size_t i : {size_t{0}, size_t{1}}) {
        if (IsContractionResult(call->args()[i])) return Biased(call, i);
      }
    }
    if (name.find("_pool") != name.npos) return Pool(call);
    if (name == "nn.softmax") return Softmax(*call);
    if (name == "image.resize2d") return Resize(call);
    if (name == "nn.pad") return Pad(*call);
    if (name == "concatenate") return Concatenate(*call);
    if (name == "nn.prelu") return PRelu(*call);
    if (const Expr x = HardSwishOf(expr)) return Function(Unary::kHardSwish, x);
    if (const Elu elu = EluOf(expr); elu.x != nullptr) {
      op_.alpha = elu.alpha;
      return Function(Unary::kElu, elu.x);
    }
    if (const Expr x = SquareOf(expr)) return Square(x);
    if (const auto unary = UnaryOf(name)) {
      if (*unary == Unary::kLeakyRelu) op_.alpha = call->attrs().Double("alpha");
      return Function(*unary, call->args()[0]);
    }
    if (const auto binary = BinaryOf(name)) return Operator(*binary, call->args()[0], call->args()[1]);
    throw Refusal{fmt::format("has no '{}'", name)};
  }

  // ---- contractions ----

  void Biased(const Call& call, size_t contraction) {
    Contraction(AsShared<CallNode>(call->args()[contraction]));
    const Expr& bias = call->args()[1 - contraction];
    const Shape shape = operands_.ShapeOf(bias);
    const Shape full = operands_.ShapeOf(call->args()[contraction]);
    const size_t channel = op_.kind == Kind::kDense ? full.size() - 1 : 1;
    const int64_t channels = full.at(channel);
    // As an addition's operand it broadcasts from the right; a bias_add's is a vector along its axis.
    bool fits = NumElements(shape) == channels;
    if (call->op()->name == "nn.bias_add") {
      const int64_t axis = call->attrs().Int("axis");
      fits = fits && static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(full.size()) : axis) == channel;
    } else {
      const size_t behind = full.size() - channel;  // dimensions from the channels on
      fits = fits && shape.size() <= full.size() &&
             (channels == 1 || (shape.size() >= behind && shape[shape.size() - behind] == channels));
    }
    if (!fits) throw Refusal{"adds one value per channel only, got " + ToString(shape)};
    op_.bias = operands_.Bias(bias);
  }

  void Contraction(const Call& result) {
    const bool reshaped = result->op()->name == "reshape";
    const Call call = reshaped ? AsShared<CallNode>(result->args()[0]) : result;
    const std::string& name = call->op()->name;
    if (name == "nn.dense") return Dense(call);
    if (reshaped) throw Refusal{"allows a reshape behind dense layers only"};
    const bool transposed = name.ends_with("_transpose");
    if (name.starts_with("nn.conv3d")) throw Refusal{"has windows of one and two dimensions only"};
    op_.kind = transposed ? Kind::kDeconv : Kind::kConv;
    op_.groups = call->attrs().Int("groups");
    op_.weights = operands_.Weights(call->args()[1], "weights");
    Window(call);
    const int rank = static_cast<int>(op_.weights.shape.size()) - 2;
    op_.kernel.assign(op_.weights.shape.begin() + 2, op_.weights.shape.end());
    SetWindow(call->attrs(), rank);
    if (transposed) op_.adjustment = PerDimension(call->attrs().Ints("output_padding"), rank);
    if (rank == 1) {
      for (auto* values : {&op_.kernel, &op_.strides, &op_.dilation}) values->insert(values->begin(), 1);
      for (auto* values : {&op_.before, &op_.after}) values->insert(values->begin(), 0);
      if (transposed) op_.adjustment.insert(op_.adjustment.begin(), 0);
      op_.weights.shape.insert(op_.weights.shape.begin() + 2, 1);
    }
    for (int64_t amount : op_.before) CheckPadding(amount);
    for (int64_t amount : op_.after) CheckPadding(amount);
  }

  static void CheckPadding(int64_t amount) {
    if (amount < 0) throw Refusal{"pads by no negative amounts"};
  }

  void Dense(const Call& call) {
    op_.kind = Kind::kDense;
    op_.data = {operands_.Plain(call->args()[0])};
    op_.weights = operands_.Weights(call->args()[1], "weights");
    op_.result = operands_.ShapeOf(call);
    if (operands_.result_layout() != Layout::kPlain) throw Refusal{"multiplies plain matrices only"};
  }

  // ---- windows ----

  /// Source and result of `call` as [N, H, W, C].
  void Window(const Call& call) {
    op_.data = {operands_.Image(call->args()[0])};
    op_.result = operands_.ResultImage(call);
  }

  void SetWindow(const Attrs& attrs, int rank) {
    op_.strides = PerDimension(attrs.Ints("strides"), rank);
    op_.dilation = PerDimension(attrs.Ints("dilation"), rank);
    const Padding padding = SpatialPadding(attrs, rank);
    op_.before = padding.before;
    op_.after = padding.after;
  }

  void Pool(const Call& call) {
    const std::string& name = call->op()->name;
    if (name.find("_pool3d") != name.npos) throw Refusal{"has windows of one and two dimensions only"};
    const bool is_max = name.find("max_pool") != name.npos;
    Window(call);
    const Shape& source = op_.data[0].shape;
    if (name.starts_with("nn.global_")) {
      op_.kind = is_max ? Kind::kMaxPool : Kind::kGlobalAvgPool;
      op_.kernel = {source[1], source[2]};
      op_.strides = op_.dilation = {1, 1};
      op_.before = op_.after = {0, 0};
    } else if (name.starts_with("nn.max_pool") || name.starts_with("nn.avg_pool")) {
      op_.kind = is_max ? Kind::kMaxPool : Kind::kAvgPool;
      const int rank = static_cast<int>(operands_.ShapeOf(call->args()[0]).size()) - 2;
      op_.kernel = PerDimension(call->attrs().Ints("pool_size"), rank);
      SetWindow(call->attrs(), rank);
      if (rank == 1) {
        for (auto* values : {&op_.kernel, &op_.strides, &op_.dilation}) values->insert(values->begin(), 1);
        for (auto* values : {&op_.before, &op_.after}) values->insert(values->begin(), 0);
      }
      SetPoolPadding(!is_max && call->attrs().Bool("count_include_pad"));
    } else {
      throw Refusal{fmt::format("has no '{}'", name)};
    }
    const bool single = op_.kernel[0] * op_.kernel[1] == 1;
    if (single && op_.kind != Kind::kGlobalAvgPool) throw Refusal{"has no pools of windows of one element"};
  }

  /// The padding behind, which follows from the result's size: with ceil_mode the last window may reach beyond the
  /// stated one.
  void SetPoolPadding(bool counts_padding) {
    const Shape& source = op_.data[0].shape;
    for (size_t d = 0; d < 2; ++d) {
      const int64_t reach = (op_.kernel[d] - 1) * op_.dilation[d] + 1;
      const int64_t needed = (op_.result[d + 1] - 1) * op_.strides[d] + reach - source[d + 1] - op_.before[d];
      if (op_.before[d] >= reach || needed >= reach) throw Refusal{"pools with padding smaller than the window only"};
      if (op_.kind == Kind::kAvgPool && op_.dilation[d] != 1) throw Refusal{"averages without dilation only"};
      CheckAverage(counts_padding, op_.before[d] > 0 || needed > 0, needed > op_.after[d]);
      op_.after[d] = std::max<int64_t>(0, needed);
    }
  }

  /// Averages of floats leave padding out, those of integers count it.
  void CheckAverage(bool counts_padding, bool is_padded, bool reaches_beyond) const {
    if (op_.kind != Kind::kAvgPool || !is_padded) return;
    const bool is_float = op_.data[0].element == Element::kFloat32;
    if (is_float && counts_padding) throw Refusal{"leaves padding out of averages of floats"};
    if (!is_float && (!counts_padding || reaches_beyond)) throw Refusal{"counts padding in averages of 8-bit integers"};
  }

  void Resize(const Call& call) {
    op_.kind = Kind::kResizeBilinear;
    Window(call);
    const Attrs& attrs = call->attrs();
    if (attrs.String("method") != "linear" || attrs.Bool("antialias")) throw Refusal{"interpolates linearly only"};
    const std::string& mode = attrs.String("coordinate_transformation_mode");
    const Shape& in = op_.data[0].shape;
    const Shape& out = op_.result;
    if (mode == "align_corners") {
      op_.align_corners = true;
      if (out[1] == 1 || out[2] == 1) throw Refusal{"aligns corners of more than one row and column only"};
    } else if (mode == "asymmetric") {
      op_.asymmetric = true;
    } else if (mode != "half_pixel" && (mode != "pytorch_half_pixel" || out[1] == 1 || out[2] == 1)) {
      throw Refusal{fmt::format("has no resizing by '{}'", mode)};
    }
    const AttrValue::List* scales = attrs.Get("scales").as_list();
    for (size_t d = 0; scales != nullptr && d < scales->size() && d < 2; ++d) {
      const double* scale = (*scales)[d].as_double();
      const double ratio = static_cast<double>(out[d + 1]) / static_cast<double>(in[d + 1]);
      if (scale == nullptr || std::abs(*scale - ratio) > 1e-6 * ratio)
        throw Refusal{"scales by the ratio of sizes only"};
    }
  }

  // ---- element by element, and what else works in memory order ----

  void Function(Unary unary, const Expr& x) {
    op_.kind = Kind::kUnary;
    op_.unary = unary;
    op_.data = {operands_.ElementWise(x, operands_.root())};
    op_.result = op_.data[0].shape;
  }

  void Square(const Expr& x) {
    const CallNode* difference = CallOf(x, "subtract");
    if (difference == nullptr) return Function(Unary::kSquare, x);
    Operator(Binary::kSquaredDifference, difference->args()[0], difference->args()[1]);
  }

  void Operator(Binary binary, const Expr& a, const Expr& b) {
    op_.kind = Kind::kBinary;
    op_.binary = binary;
    op_.data = {operands_.ElementWise(a, operands_.root()), operands_.ElementWise(b, operands_.root())};
    op_.result = operands_.ResultInMemory();
    if (op_.result.size() > kMaxRank) throw Refusal{fmt::format("broadcasts up to {} dimensions", kMaxRank)};
  }

  void Softmax(const CallNode& call) {
    op_.kind = Kind::kSoftmax;
    op_.data = {operands_.ElementWise(call.args()[0], operands_.root())};
    op_.result = op_.data[0].shape;
    if (operands_.MemoryAxis(call.attrs().Int("axis")) != op_.result.size() - 1) {
      throw Refusal{"has softmax of the axis that is innermost in memory only"};
    }
  }

  void PRelu(const CallNode& call) {
    op_.kind = Kind::kPRelu;
    op_.data = {operands_.ElementWise(call.args()[0], operands_.root())};
    op_.result = op_.data[0].shape;
    op_.weights = operands_.Weights(call.args()[1], "slopes");
    if (operands_.MemoryAxis(call.attrs().Int("axis")) != op_.result.size() - 1) {
      throw Refusal{"has slopes of the axis that is innermost in memory only"};
    }
    if (NumElements(op_.weights.shape) != op_.result.back()) throw Refusal{"takes one slope per channel"};
  }

  void Pad(const CallNode& call) {
    op_.kind = Kind::kPad;
    op_.data = {operands_.InResultLayout(call.args()[0])};
    op_.result = operands_.ResultInMemory();
    if (op_.result.size() > kMaxRank) throw Refusal{fmt::format("pads up to {} dimensions", kMaxRank)};
    if (call.attrs().String("pad_mode") != "constant") throw Refusal{"pads with a constant only"};
    const auto value = call.args().size() > 1 ? ScalarValue(operands_.Outside(call.args()[1])) : 0.0;
    if (!value) throw Refusal{"pads with a value known when compiling only"};
    op_.alpha = *value;
    op_.before.assign(op_.result.size(), 0);
    op_.after = op_.before;
    const AttrValue::List& widths = *call.attrs().Get("pad_width").as_list();
    for (size_t d = 0; d < widths.size(); ++d) {
      const size_t at = operands_.MemoryAxis(static_cast<int64_t>(d));
      op_.before[at] = *widths[d].as_list()->at(0).as_int();
      op_.after[at] = *widths[d].as_list()->at(1).as_int();
      CheckPadding(op_.before[at]);
      CheckPadding(op_.after[at]);
    }
  }

  void Concatenate(const CallNode& call) {
    op_.kind = Kind::kConcatenate;
    const TupleNode* tuple = As<TupleNode>(call.args()[0]);
    if (tuple == nullptr) throw Refusal{"joins tensors that are given one by one only"};
    for (const Expr& field : tuple->fields()) op_.data.push_back(operands_.InResultLayout(field));
    op_.result = operands_.ResultInMemory();
    op_.axis = static_cast<int64_t>(operands_.MemoryAxis(call.attrs().Int("axis")));
  }

  OperandReader operands_;
  Description result_;
  Operation& op_;
  bool is_clamped_ = false;
};

}  // namespace

Result<Description> Describe(const collage::Function& function, const BoundaryLayouts& layouts) {
  try {
    return Describer(function, layouts).Run();
  } catch (const Refusal& refusal) {
    return Reason{refusal.text, "xnnpack"};
  }
}

Result<void> CheckComposite(const collage::Function& composite) {
  const auto eligible = [](const Type& type) {
    const TensorTypeNode* tensor = AsTensorType(type);
    return tensor != nullptr && tensor->rank() >= 3 && tensor->rank() <= 5;
  };
  std::vector<bool> inputs;
  for (const Var& param : composite->params()) inputs.push_back(eligible(param->checked_type()));
  const std::vector<bool> outputs{eligible(composite->body()->checked_type())};
  const Result<Description> last = Describe(composite, ChannelsLastLayouts(inputs, outputs));
  if (last) return {};
  if (Describe(composite, PlainLayouts(inputs.size(), 1))) return {};
  return last.reason();
}

}  // namespace collage::xnnpack_toolchain
