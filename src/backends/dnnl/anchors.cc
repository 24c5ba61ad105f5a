// anchors.cc: which call is the anchor, and the element-wise ones.
#include "backends/dnnl/anchors.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/dnnl/activation.h"
#include "collage/ir/op.h"

namespace collage::dnnl_toolchain {
namespace {

using Reader = void(Reading& reading, const CallNode& call, Primitive& primitive);

Reader* ReaderOf(const std::string& op) {
  if (op.starts_with("nn.conv")) return ReadConvolution;
  if (op == "nn.dense" || op == "nn.matmul" || op == "nn.batch_matmul") return ReadProduct;
  if (op.find("_pool") != std::string::npos) return ReadPool;
  if (op.starts_with("image.resize")) return ReadResampling;
  if (op == "concatenate") return ReadConcat;
  if (op == "sum" || op == "mean" || op == "max" || op == "min" || op == "prod") return ReadReduction;
  if (op == "nn.softmax" || op == "nn.log_softmax" || op.ends_with("_norm") || op == "nn.lrn") return ReadNormalisation;
  return nullptr;
}

/// Whether both are read in one order of elements, or the second is broadcast.
bool IsComparison(Binary op) { return op >= Binary::kEqual && op <= Binary::kGreaterEqual; }

void ReadBinary(Reading& reading, const CallNode& call, Binary op, Primitive& p) {
  p.kind = Kind::kBinary;
  p.binary = op;
  p.src = reading.OperandOf(call.args()[0]);
  p.weights = reading.OperandOf(call.args()[1]);
  const bool commutes =
      op == Binary::kAdd || op == Binary::kMultiply || op == Binary::kMaximum || op == Binary::kMinimum;
  if (p.src.shape != p.dst.shape && commutes) std::swap(p.src, p.weights);  // oneDNN broadcasts the second
  if (p.src.shape != p.dst.shape) throw Refusal{"broadcasts the second argument only"};
  for (const Operand* operand : {&p.src, &p.weights}) {
    const bool is_raw_integer = !operand->dtype.is_floating() && !operand->is_quantised();
    if (is_raw_integer) throw Refusal{"combines floats and dequantised integers, got " + operand->dtype.ToString()};
  }
  p.weights.shape.insert(p.weights.shape.begin(), p.dst.shape.size() - p.weights.shape.size(), 1);
  if (p.weights.shape != p.dst.shape && p.weights.layout != Layout::kPlain)
    throw Refusal{"an operand is reshaped out of its layout"};
  if (IsComparison(op)) p.dst.dtype = DataType::Bool();
}

/// Permutations of axes.
void ReadTransposition(Reading& reading, const CallNode& call, Primitive& p) {
  p.kind = Kind::kReorder;
  p.src = reading.OperandOf(call.args()[0]);
  const size_t rank = p.src.shape.size();
  if (p.src.layout != Layout::kPlain) throw Refusal{"permutes plain tensors only"};
  if (call.op()->name == "layout_transform") {
    const std::string& from = call.attrs().String("src_layout");
    for (char axis : call.attrs().String("dst_layout")) p.axes.push_back(static_cast<int64_t>(from.find(axis)));
  } else if (call.attrs().IsNone("axes")) {
    for (size_t i = rank; i-- > 0;) p.axes.push_back(static_cast<int64_t>(i));
  } else {
    for (int64_t axis : call.attrs().Ints("axes"))
      p.axes.push_back(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
  }
  const bool is_permutation = p.axes.size() == rank && std::ranges::all_of(p.axes, [&](int64_t axis) {
                                return axis >= 0 && axis < static_cast<int64_t>(rank);
                              });
  if (!is_permutation) throw Refusal{"permutes whole axes only"};
}

/// cast, qnn.quantize, qnn.dequantize, or the last two in a row, ending in `last`.
void ReadConversion(Reading& reading, const Call& last, Primitive& p) {
  p.kind = Kind::kReorder;
  const std::string& name = last->op()->name;
  const Expr& data = name == "qnn.dequantize" ? Expr(last) : last->args()[0];
  if (const CallNode* dequantize = CallOf(data, "qnn.dequantize")) p.axis = QuantisationOf(*dequantize).axis;
  p.src = reading.OperandOf(data, p.axis);
  if (p.src.dtype.is_bool() || p.dst.dtype.is_bool()) throw Refusal{"converts no truth values"};
  if (!p.src.dtype.is_floating() && !p.dst.dtype.is_floating() && name == "cast")
    throw Refusal{"does not wrap integers around"};
  if (p.src.dtype.is_floating() && !p.dst.dtype.is_floating() && name == "cast")
    throw Refusal{"rounds, but does not truncate"};
  if (name != "qnn.quantize") return;
  const QuantisationOf quantisation(*last);
  p.dst.scale = quantisation.scale;
  p.dst.zero = quantisation.zero;
  if (quantisation.scales == nullptr) return;
  if (p.src.scales >= 0 && p.axis != quantisation.axis) throw Refusal{"takes scales along one axis only"};
  p.axis = quantisation.axis;
  p.dst.scales = reading.AddConstant(quantisation.scales->value());
}

/// PReLU, an operator or written out, of a value from outside; which call computes it.
bool ReadPrelu(Reading& reading, Primitive& p, size_t* at) {
  for (size_t i = 0; i < reading.calls().size(); ++i) {
    const Call& call = reading.calls()[i];
    const bool is_operator = call->op()->name == "nn.prelu";
    const auto written = is_operator ? WrittenPrelu{call->args()[0], call->args()[1]} : MatchPrelu(call);
    if (!written || As<CallNode>(written->x) != nullptr) continue;
    if (!is_operator && ScalarValue(written->slope)) continue;  // a function of its own
    p.kind = Kind::kBinary;
    p.binary = Binary::kPrelu;
    p.src = reading.OperandOf(written->x);
    p.weights = reading.OperandOf(written->slope);
    for (const Operand* operand : {&p.src, &p.weights}) {
      if (!operand->dtype.is_floating() || operand->is_quantised()) throw Refusal{"computes this of floats only"};
    }
    const size_t rank = p.src.shape.size();
    if (ShapeOf(call) != p.src.shape || p.weights.shape.size() > rank) throw Refusal{"broadcasts slopes only"};
    if (is_operator) p.weights.shape = AlongAxis(*call, rank);
    p.weights.shape.insert(p.weights.shape.begin(), rank - p.weights.shape.size(), 1);
    if (p.weights.shape != p.src.shape && p.weights.layout != Layout::kPlain)
      throw Refusal{"an operand is reshaped out of its layout"};
    p.dst.shape = p.src.shape;
    p.dst.dtype = p.src.dtype;
    *at = i;
    return true;
  }
  return false;
}

/// An activation, written out or not, of a value from outside; which call computes it.
bool ReadActivation(Reading& reading, Primitive& p, size_t* at) {
  for (const Call& first : reading.calls()) {
    for (const Expr& x : first->args()) {
      const TensorTypeNode* type = x->kind() == ExprKind::kVar ? AsTensorType(x->checked_type()) : nullptr;
      if (type == nullptr || !type->dtype().is_floating()) continue;
      for (size_t i = reading.calls().size(); i-- > 0;) {
        const Call& call = reading.calls()[i];
        auto function = MatchActivation(call, x.get());
        if (!function && call->args()[0] == x) function = UnaryPostOp(*call);
        if (!function) continue;
        p.kind = Kind::kEltwise;
        p.src = reading.OperandOf(x);
        p.dst.shape = ShapeOf(call);
        p.dst.dtype = p.src.dtype;
        p.post_ops.push_back(*function);
        *at = i;
        return true;
      }
    }
  }
  return false;
}

}  // namespace

Binary BinaryOf(const std::string& op) {
  if (op == "add") return Binary::kAdd;
  if (op == "subtract") return Binary::kSubtract;
  if (op == "multiply") return Binary::kMultiply;
  if (op == "divide") return Binary::kDivide;
  if (op == "maximum") return Binary::kMaximum;
  if (op == "minimum") return Binary::kMinimum;
  if (op == "equal") return Binary::kEqual;
  if (op == "not_equal") return Binary::kNotEqual;
  if (op == "less") return Binary::kLess;
  if (op == "less_equal") return Binary::kLessEqual;
  if (op == "greater") return Binary::kGreater;
  if (op == "greater_equal") return Binary::kGreaterEqual;
  return Binary::kNone;
}

size_t ReadAnchor(Reading& reading, Primitive& primitive) {
  const std::vector<Call>& calls = reading.calls();
  const auto result_of = [&](const Call& call) {
    primitive.dst.shape = ShapeOf(call);
    primitive.dst.dtype = DTypeOf(call);
  };
  for (size_t i = 0; i < calls.size(); ++i) {
    if (Reader* read = ReaderOf(calls[i]->op()->name)) {
      result_of(calls[i]);
      read(reading, *calls[i], primitive);
      return i;
    }
  }
  size_t at = 0;
  if (ReadPrelu(reading, primitive, &at) || ReadActivation(reading, primitive, &at)) return at;
  for (size_t i = 0; i < calls.size(); ++i) {
    const CallNode& call = *calls[i];
    const std::string& name = call.op()->name;
    if (name == "transpose" || name == "layout_transform") {
      result_of(calls[i]);
      ReadTransposition(reading, call, primitive);
      return i;
    }
    if (const Binary op = BinaryOf(name); op != Binary::kNone) {
      result_of(calls[i]);
      ReadBinary(reading, call, op, primitive);
      return i;
    }
  }
  const bool converts = !calls.empty() && std::ranges::all_of(calls, [](const Call& call) {
    return call->op()->name == "cast" || call->op()->name == "qnn.quantize" || call->op()->name == "qnn.dequantize";
  });
  if (!converts) throw Refusal{"has no operator that is a oneDNN primitive"};
  result_of(calls.back());
  ReadConversion(reading, calls.back(), primitive);
  return calls.size() - 1;
}

Shape AlongAxis(const CallNode& call, size_t rank) {
  const int64_t axis = call.attrs().Int("axis");
  Shape shape(rank, 1);
  shape.at(static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis)) =
      NumElements(ShapeOf(call.args()[1]));
  return shape;
}

void RequireChannelsFirst(const CallNode& call, const char* attribute) {
  const std::string order = call.attrs().StringOr(attribute, "");
  if (!order.empty() && !order.starts_with("NC")) throw Refusal{"takes channels on axis 1 only, got " + order};
}

}  // namespace collage::dnnl_toolchain
