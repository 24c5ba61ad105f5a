// products.cc: matrix products, normalisations, reductions and concatenations as primitives.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "backends/dnnl/anchors.h"
#include "collage/ir/op.h"

namespace collage::dnnl_toolchain {
namespace {

/// Whether `operand` is a constant whose elements are all `value`.
bool IsConstantOf(const Reading& reading, const Operand& operand, double value) {
  if (operand.constant < 0) return false;
  const Tensor& tensor = reading.constant(operand.constant);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    if (tensor.At(i) != value) return false;
  }
  return true;
}

std::vector<int64_t> ReducedAxes(const Attrs& attrs, size_t rank) {
  std::vector<bool> listed(rank, attrs.IsNone("axis"));
  if (!attrs.IsNone("axis")) {
    for (int64_t axis : attrs.Ints("axis"))
      listed.at(static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis)) = true;
    if (attrs.Bool("exclude")) listed.flip();
  }
  std::vector<int64_t> axes;
  for (size_t i = 0; i < rank; ++i) {
    if (listed[i]) axes.push_back(static_cast<int64_t>(i));
  }
  return axes;
}

}  // namespace

void ReadProduct(Reading& reading, const CallNode& call, Primitive& p) {
  p.kind = Kind::kMatMul;
  const bool dense = call.op()->name == "nn.dense";
  p.transpose_a = !dense && call.attrs().Bool("transpose_a");
  p.transpose_b = dense || call.attrs().Bool("transpose_b");
  const auto rank = static_cast<int64_t>(p.dst.shape.size());
  p.src = reading.OperandOf(call.args()[0]);
  // Scales of the columns of a batch of matrices would repeat with each of them: one for all, or a single matrix.
  p.weights = reading.OperandOf(call.args()[1], rank == 2 ? (p.transpose_b ? 0 : 1) : -1);
  if (p.src.layout != Layout::kPlain || p.weights.layout != Layout::kPlain)
    throw Refusal{"multiplies plain matrices only"};
}

void ReadNormalisation(Reading& reading, const CallNode& call, Primitive& p) {
  const std::string& name = call.op()->name;
  p.src = reading.OperandOf(call.args()[0]);
  const auto rank = static_cast<int64_t>(p.src.shape.size());
  p.axis = call.attrs().Int("axis");
  if (p.axis < 0) p.axis += rank;
  if (name == "nn.lrn") {
    p.kind = Kind::kLrn;
    if (p.axis != 1 || rank < 3) throw Refusal{"normalises across axis 1 of images only"};
    if (call.attrs().Int("size") % 2 == 0) throw Refusal{"normalises over an odd number of channels only"};
    p.axis = call.attrs().Int("size");
    p.alpha = call.attrs().Double("alpha");
    p.beta = call.attrs().Double("beta");
    p.offset = call.attrs().Double("bias");
    return;
  }
  if (p.src.layout != Layout::kPlain) throw Refusal{"normalises plain tensors only"};
  p.kind = name == "nn.softmax"       ? Kind::kSoftmax
           : name == "nn.log_softmax" ? Kind::kLogSoftmax
           : name == "nn.layer_norm"  ? Kind::kLayerNorm
                                      : Kind::kInstanceNorm;
  if (p.kind == Kind::kSoftmax || p.kind == Kind::kLogSoftmax) return;
  if (p.kind == Kind::kLayerNorm && p.axis != rank - 1) throw Refusal{"normalises the last axis only"};
  if (p.kind == Kind::kLayerNorm && (!call.attrs().Bool("scale") || !call.attrs().Bool("center"))) {
    throw Refusal{"expects scale and shift"};
  }
  p.epsilon = call.attrs().Double("epsilon");
  p.weights = reading.OperandOf(call.args()[1]);
  p.bias = reading.OperandOf(call.args()[2]);
  if (p.kind == Kind::kLayerNorm) return;
  if (name == "nn.group_norm") {
    if (call.attrs().Int("num_groups") != p.src.shape[1]) throw Refusal{"has no groups of channels in this version"};
    if (!call.attrs().Bool("scale") || !call.attrs().Bool("center")) throw Refusal{"expects scale and shift"};
  } else if (name != "nn.instance_norm") {
    throw Refusal{"has no '" + name + "'"};
  }
  // Batch normalisation of one sample whose channels are those of all: scale and shift are not repeated for it.
  const bool is_plain = IsConstantOf(reading, p.weights, 1) && IsConstantOf(reading, p.bias, 0);
  if (p.src.shape[0] != 1 && !is_plain) throw Refusal{"scales and shifts the channels of one sample only"};
  if (is_plain && p.src.shape[0] != 1) p.weights = p.bias = {};
}

void ReadReduction(Reading& reading, const CallNode& call, Primitive& p) {
  const std::string& name = call.op()->name;
  p.kind = Kind::kReduction;
  p.reduction = name == "sum"    ? Reduction::kSum
                : name == "mean" ? Reduction::kMean
                : name == "max"  ? Reduction::kMax
                : name == "min"  ? Reduction::kMin
                                 : Reduction::kProduct;
  p.src = reading.OperandOf(call.args()[0]);
  if (!p.src.dtype.is_floating()) throw Refusal{"reduces floats only, got " + p.src.dtype.ToString()};
  const std::vector<int64_t> axes = ReducedAxes(call.attrs(), p.src.shape.size());
  p.dst.shape = p.src.shape;
  for (int64_t axis : axes) p.dst.shape[static_cast<size_t>(axis)] = 1;
  if (p.dst.shape == p.src.shape) throw Refusal{"reduces nothing"};
}

void ReadConcat(Reading& reading, const CallNode& call, Primitive& p) {
  p.kind = Kind::kConcat;
  p.axis = call.attrs().Int("axis");
  if (p.axis < 0) p.axis += static_cast<int64_t>(p.dst.shape.size());
  const Expr tuple = call.args()[0];
  if (tuple->kind() != ExprKind::kTuple) throw Refusal{"concatenates tensors that are named one by one only"};
  for (const Expr& field : As<TupleNode>(tuple)->fields()) {
    Operand operand = reading.OperandOf(field);
    if (p.src.defined()) {
      if (operand.scale != p.src.scale || operand.zero != p.src.zero || operand.dtype != p.src.dtype) {
        throw Refusal{"concatenates values of one scale only"};
      }
      p.more.push_back(std::move(operand));
    } else {
      p.src = std::move(operand);
    }
  }
}

}  // namespace collage::dnnl_toolchain
