// reduction.cc: reductions and running sums.
#include <algorithm>

#include "frontend/onnx_export/exporter.h"
#include "ir/ops/relations.h"

namespace collage {
namespace {

using V = std::vector<int64_t>;

V Axes(OnnxExportCall& call) {
  const std::vector<int> axes = ReduceAxes(call.attrs(), call.Rank(0));
  return V(axes.begin(), axes.end());
}

std::string Reduce(OnnxExportCall& call, const char* onnx, const std::string& x, bool keepdims) {
  const V axes = Axes(call);
  if (axes.empty()) return call.Node("Identity", {x});  // ONNX reduces all when no axis is given
  const Attrs& attrs = call.attrs();
  if (attrs.IsNone("axis") && !attrs.Bool("exclude")) return call.Node(onnx, {x}, {{"keepdims", keepdims}});
  // As they are stated, where they are: a model that comes back is the same.
  const V stated = attrs.Bool("exclude") ? axes : attrs.Ints("axis");
  return call.Node(onnx, {x, call.Ints(stated)}, {{"keepdims", keepdims}});
}

OnnxExportRow Direct(const char* onnx) {
  return [onnx](OnnxExportCall& call) -> OnnxNames {
    return {Reduce(call, onnx, call.Arg(0), call.attrs().Bool("keepdims"))};
  };
}

/// Whether all or any hold: the least or largest of bools.
OnnxExportRow OfBools(const char* onnx) {
  return [onnx](OnnxExportCall& call) -> OnnxNames {
    call.NeedsOpset(20);
    const std::string held = call.Cast(call.Arg(0), call.DTypeOf(0), kBool);
    return {call.Cast(Reduce(call, onnx, held, call.attrs().Bool("keepdims")), kBool, call.ResultType().dtype())};
  };
}

OnnxNames Variance(OnnxExportCall& call) {
  const std::string mean = Reduce(call, "ReduceMean", call.Arg(0), /*keepdims=*/true);
  const std::string centred = call.Node("Sub", {call.Arg(0), mean});
  return {Reduce(call, "ReduceMean", call.Node("Mul", {centred, centred}), call.attrs().Bool("keepdims"))};
}

OnnxExportRow ArgReduce(const char* onnx) {
  return [onnx](OnnxExportCall& call) -> OnnxNames {
    const V axes = Axes(call);
    const Attrs& attrs = call.attrs();
    const bool last = attrs.Bool("select_last_index");
    if (axes.size() == 1) {
      return {call.Node(onnx, {call.Arg(0)},
                        {{"axis", axes[0]}, {"keepdims", attrs.Bool("keepdims")}, {"select_last_index", last}})};
    }
    if (axes.size() != static_cast<size_t>(call.Rank(0))) call.Unsupported("positions along several axes");
    const std::string flat = call.Reshape(call.Arg(0), {-1});
    const std::string place = call.Node(onnx, {flat}, {{"axis", 0}, {"keepdims", 0}, {"select_last_index", last}});
    return {call.Reshape(place, call.ResultSizes())};
  };
}

OnnxExportRow Cumulative(const char* onnx, int64_t opset) {
  return [onnx, opset](OnnxExportCall& call) -> OnnxNames {
    if (opset > 0) call.NeedsOpset(opset);
    const std::string x = call.Cast(call.Arg(0), call.DTypeOf(0), call.ResultType().dtype());
    return {call.Node(onnx, {x, call.Int(call.Axis("axis", call.Rank(0)))},
                      {{"exclusive", call.attrs().Bool("exclusive")}})};
  };
}

}  // namespace

void AddReductionRows(OnnxExportRows& rows) {
  rows["sum"] = Direct("ReduceSum");
  rows["mean"] = Direct("ReduceMean");
  rows["prod"] = Direct("ReduceProd");
  rows["max"] = Direct("ReduceMax");
  rows["min"] = Direct("ReduceMin");
  rows["all"] = OfBools("ReduceMin");
  rows["any"] = OfBools("ReduceMax");
  rows["variance"] = Variance;
  rows["argmax"] = ArgReduce("ArgMax");
  rows["argmin"] = ArgReduce("ArgMin");
  rows["cumsum"] = Cumulative("CumSum", 0);
  rows["cumprod"] = Cumulative("CumProd", 26);
}

}  // namespace collage
