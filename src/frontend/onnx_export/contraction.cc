// contraction.cc: products of matrices and convolutions.
#include <fmt/format.h>

#include "frontend/onnx_export/exporter.h"
#include "ir/ops/relations.h"

namespace collage {
namespace {

using V = std::vector<int64_t>;

/// An operand of the contraction's accumulator: products of small integers are summed in wider ones.
std::string Operand(OnnxExportCall& call, size_t i, DataType wanted) {
  return call.Cast(call.Arg(i), call.DTypeOf(i), wanted);
}

/// `x` with its last two dimensions exchanged.
std::string Exchanged(OnnxExportCall& call, const std::string& x, int rank) {
  V axes;
  for (int i = 0; i < rank - 2; ++i) axes.push_back(i);
  axes.push_back(rank - 1);
  axes.push_back(rank - 2);
  return call.Transpose(x, axes);
}

OnnxNames Product(OnnxExportCall& call, bool transpose_a, bool transpose_b) {
  const DataType dtype = call.ResultType().dtype();
  const std::string a = Operand(call, 0, dtype);
  const std::string b = Operand(call, 1, dtype);
  const int rank = call.Rank(0);
  if (rank == 2 && dtype.is_floating()) {
    return {call.Node(
        "Gemm", {a, b},
        {{"transA", transpose_a ? AttrValue(1) : AttrValue()}, {"transB", transpose_b ? AttrValue(1) : AttrValue()}})};
  }
  return {
      call.Node("MatMul", {transpose_a ? Exchanged(call, a, rank) : a, transpose_b ? Exchanged(call, b, rank) : b})};
}

OnnxNames Dense(OnnxExportCall& call) { return Product(call, false, true); }
OnnxNames Matmul(OnnxExportCall& call) {
  return Product(call, call.attrs().Bool("transpose_a"), call.attrs().Bool("transpose_b"));
}

V Pads(const Attrs& attrs, int rank) {
  const Padding padding = SpatialPadding(attrs, rank);
  V pads = padding.before;
  pads.insert(pads.end(), padding.after.begin(), padding.after.end());
  return pads;
}

V Kernel(OnnxExportCall& call, size_t weight) {
  const Shape shape = call.ShapeOf(weight);
  return V(shape.begin() + 2, shape.end());
}

void RequireLayouts(OnnxExportCall& call, int rank, const char* kernel) {
  call.Require("data_layout", rank == 1 ? "NCW" : rank == 2 ? "NCHW" : "NCDHW");
  call.Require("kernel_layout", kernel);
}

/// ONNX convolves floats. Integers are exact in float64 as long as the sums stay below 2^53, which those of 8 and 16
/// bits do.
OnnxNames Convolution(OnnxExportCall& call, const char* onnx, Attrs attributes) {
  const DataType result = call.ResultType().dtype();
  const DataType dtype = result.is_floating() ? result : kFloat64;
  const std::string made = call.Node(onnx, {Operand(call, 0, dtype), Operand(call, 1, dtype)}, attributes);
  return {call.Cast(made, dtype, result)};
}

Attrs WindowAttrs(OnnxExportCall& call, int rank) {
  const Attrs& attrs = call.attrs();
  return {{"kernel_shape", Kernel(call, 1)},
          {"strides", PerDimension(attrs.Ints("strides"), rank)},
          {"dilations", PerDimension(attrs.Ints("dilation"), rank)},
          {"pads", Pads(attrs, rank)},
          {"group", attrs.Int("groups")}};
}

OnnxExportRow Conv(int rank) {
  return [rank](OnnxExportCall& call) {
    RequireLayouts(call, rank, rank == 1 ? "OIW" : rank == 2 ? "OIHW" : "OIDHW");
    return Convolution(call, "Conv", WindowAttrs(call, rank));
  };
}

OnnxExportRow ConvTranspose(int rank) {
  return [rank](OnnxExportCall& call) {
    RequireLayouts(call, rank, rank == 1 ? "IOW" : rank == 2 ? "IOHW" : "IODHW");
    Attrs attributes = WindowAttrs(call, rank);
    attributes.Set("output_padding", PerDimension(call.attrs().Ints("output_padding"), rank));
    return Convolution(call, "ConvTranspose", attributes);
  };
}

OnnxNames DeformableConv(OnnxExportCall& call) {
  call.NeedsOpset(19);
  RequireLayouts(call, 2, "OIHW");
  const Shape weight = call.ShapeOf(2);
  const Attrs& attrs = call.attrs();
  return {call.Node("DeformConv", {call.Arg(0), call.Arg(2), call.Arg(1), "", call.num_args() > 3 ? call.Arg(3) : ""},
                    {{"kernel_shape", V{weight[2], weight[3]}},
                     {"strides", PerDimension(attrs.Ints("strides"), 2)},
                     {"dilations", PerDimension(attrs.Ints("dilation"), 2)},
                     {"pads", Pads(attrs, 2)},
                     {"group", attrs.Int("groups")},
                     {"offset_group", attrs.Int("deformable_groups")}})};
}

OnnxNames Einsum(OnnxExportCall& call) {
  return {call.Node("Einsum", call.Fields(0), {{"equation", call.attrs().String("equation")}})};
}

}  // namespace

void AddContractionRows(OnnxExportRows& rows) {
  rows["nn.dense"] = Dense;
  rows["nn.matmul"] = Matmul;
  rows["nn.batch_matmul"] = Matmul;
  for (int rank = 1; rank <= 3; ++rank) {
    rows[fmt::format("nn.conv{}d", rank)] = Conv(rank);
    rows[fmt::format("nn.conv{}d_transpose", rank)] = ConvTranspose(rank);
  }
  rows["nn.deformable_conv2d"] = DeformableConv;
  rows["einsum"] = Einsum;
  rows["linalg.det"] = [](OnnxExportCall& call) -> OnnxNames { return {call.Node("Det", {call.Arg(0)})}; };
}

}  // namespace collage
