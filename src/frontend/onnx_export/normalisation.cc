// normalisation.cc: normalisation and softmax.
#include <algorithm>
#include <numeric>

#include "frontend/onnx_export/exporter.h"

namespace collage {
namespace {

using V = std::vector<int64_t>;

/// The permutation that exchanges two axes; it undoes itself.
V Exchange(int rank, int64_t a, int64_t b) {
  V axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[static_cast<size_t>(a)], axes[static_cast<size_t>(b)]);
  return axes;
}

/// A vector of equal elements of argument `i`'s dtype and length.
std::string Filled(OnnxExportCall& call, size_t i, double value) {
  const Shape shape = call.ShapeOf(i);
  Tensor tensor = Tensor::Empty(shape, call.DTypeOf(i));
  for (int64_t e = 0; e < tensor.num_elements(); ++e) tensor.Set(e, value);
  return call.Constant(tensor);
}

std::string Gamma(OnnxExportCall& call) { return call.attrs().Bool("scale") ? call.Arg(1) : Filled(call, 1, 1); }
std::string Beta(OnnxExportCall& call) { return call.attrs().Bool("center") ? call.Arg(2) : Filled(call, 2, 0); }

/// Normalises with axis `wanted` in place of the one that the call names.
std::string AlongAxis(OnnxExportCall& call, int64_t wanted,
                      const std::function<std::string(const std::string&)>& make) {
  const V axes = Exchange(call.Rank(0), call.Axis("axis", call.Rank(0)), wanted);
  return call.Transpose(make(call.Transpose(call.Arg(0), axes)), axes);
}

OnnxNames BatchNorm(OnnxExportCall& call) {
  const std::string y = AlongAxis(call, 1, [&](const std::string& x) {
    return call.Node("BatchNormalization", {x, Gamma(call), Beta(call), call.Arg(3), call.Arg(4)},
                     {{"epsilon", call.attrs().Double("epsilon")}});
  });
  return {y, call.Arg(3), call.Arg(4)};
}

OnnxNames LayerNorm(OnnxExportCall& call) {
  return {AlongAxis(call, call.Rank(0) - 1, [&](const std::string& x) {
    return call.Node("LayerNormalization", {x, Gamma(call), Beta(call)},
                     {{"axis", -1}, {"epsilon", call.attrs().Double("epsilon")}});
  })};
}

OnnxNames InstanceNorm(OnnxExportCall& call) {
  return {AlongAxis(call, 1, [&](const std::string& x) {
    return call.Node("InstanceNormalization", {x, Gamma(call), Beta(call)},
                     {{"epsilon", call.attrs().Double("epsilon")}});
  })};
}

OnnxNames GroupNorm(OnnxExportCall& call) {
  call.NeedsOpset(21);
  return {call.Node("GroupNormalization", {call.Arg(0), Gamma(call), Beta(call)},
                    {{"num_groups", call.attrs().Int("num_groups")}, {"epsilon", call.attrs().Double("epsilon")}})};
}

OnnxNames Lrn(OnnxExportCall& call) {
  const Attrs& attrs = call.attrs();
  return {AlongAxis(call, 1, [&](const std::string& x) {
    return call.Node("LRN", {x},
                     {{"size", attrs.Int("size")},
                      {"alpha", attrs.Double("alpha")},
                      {"beta", attrs.Double("beta")},
                      {"bias", attrs.Double("bias")}});
  })};
}

OnnxNames L2Normalize(OnnxExportCall& call) {
  const std::string squares =
      call.Node("ReduceSumSquare", {call.Arg(0), call.Ints(call.attrs().Ints("axis"))}, {{"keepdims", 1}});
  const std::string eps = call.Scalar(call.attrs().Double("eps"), call.DTypeOf(0));
  return {call.Node("Div", {call.Arg(0), call.Node("Sqrt", {call.Node("Max", {squares, eps})})})};
}

OnnxExportRow Softmax(const char* onnx) {
  return [onnx](OnnxExportCall& call) -> OnnxNames {
    return {call.Node(onnx, {call.Arg(0)}, {{"axis", call.attrs().Int("axis")}})};
  };
}

}  // namespace

void AddNormalisationRows(OnnxExportRows& rows) {
  rows["nn.batch_norm"] = BatchNorm;
  rows["nn.layer_norm"] = LayerNorm;
  rows["nn.instance_norm"] = InstanceNorm;
  rows["nn.group_norm"] = GroupNorm;
  rows["nn.lrn"] = Lrn;
  rows["nn.l2_normalize"] = L2Normalize;
  rows["nn.softmax"] = Softmax("Softmax");
  rows["nn.log_softmax"] = Softmax("LogSoftmax");
}

}  // namespace collage
