// simplify_expr.cc: operators that do nothing vanish; a zero padding in front of a convolution becomes its own; taps of
// kernels that meet nothing but padding vanish.
#include <algorithm>
#include <cmath>
#include <optional>

#include "collage/ir/infer_type.h"
#include "collage/ir/op.h"
#include "collage/ir/visitor.h"
#include "ir/ops/relations.h"
#include "transform/passes.h"

namespace collage {
namespace {

const CallNode* AsOpCall(const Expr& expr, std::string_view name) {
  const CallNode* call = As<CallNode>(expr);
  return call != nullptr && call->op() != nullptr && call->op()->name == name ? call : nullptr;
}

/// Whether `expr` is a constant whose elements all are `value`.
bool IsFilledWith(const Expr& expr, double value) {
  const ConstantNode* constant = As<ConstantNode>(expr);
  if (constant == nullptr || !constant->value().dtype().is_floating()) return false;
  for (int64_t i = 0; i < constant->value().num_elements(); ++i) {
    if (constant->value().At(i) != value) return false;
  }
  return constant->value().num_elements() > 0;
}

bool AreAllFinite(const Tensor& tensor) {
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    if (!std::isfinite(tensor.At(i))) return false;
  }
  return true;
}

Expr DropIdentity(const Expr& expr, const CallNode& call) {
  const std::string& name = call.op()->name;
  const auto same_type = [&](const Expr& other) { return TypeEqual(InferType(expr), InferType(other)); };
  if (call.op()->is_reshape) {
    // Types that are equal say nothing where sizes are open.
    if (!AsTensorType(InferType(expr))->is_static()) return expr;
    const CallNode* inner = As<CallNode>(call.args()[0]);
    if (same_type(call.args()[0])) return call.args()[0];
    if (inner != nullptr && inner->op() != nullptr && inner->op()->is_reshape) {
      if (same_type(inner->args()[0])) return inner->args()[0];
      const Expr merged = MakeCall("reshape", {inner->args()[0]},
                                   {{"newshape", AsTensorType(InferType(expr))->static_shape()}, {"allowzero", true}});
      merged->share_span(*expr);
      return merged;
    }
    return expr;
  }
  if ((name == "cast" || name == "copy") && same_type(call.args()[0])) return call.args()[0];
  if (name == "transpose") {
    const std::vector<int64_t> axes = call.attrs().IsNone("axes") ? std::vector<int64_t>{} : call.attrs().Ints("axes");
    if (!axes.empty() && std::is_sorted(axes.begin(), axes.end())) return call.args()[0];
  }
  if ((name == "multiply" || name == "divide") && IsFilledWith(call.args()[1], 1) && same_type(call.args()[0]))
    return call.args()[0];
  if ((name == "add" || name == "subtract") && IsFilledWith(call.args()[1], 0) && same_type(call.args()[0]))
    return call.args()[0];
  return expr;
}

/// conv(pad(x, 0)) with spatial padding only → conv(x) with more padding.
Expr MergePadding(const Expr& expr, const CallNode& conv) {
  if (!conv.op()->name.starts_with("nn.conv") || conv.op()->name.ends_with("_transpose")) return expr;
  const CallNode* pad = AsOpCall(conv.args()[0], "nn.pad");
  if (pad == nullptr || pad->attrs().String("pad_mode") != "constant" || !IsFilledWith(pad->args()[1], 0)) return expr;
  const AttrValue::List& widths = *pad->attrs().Get("pad_width").as_list();
  const size_t rank = widths.size() - 2;
  std::vector<int64_t> padding = conv.attrs().Ints("padding");
  if (padding.size() == rank)
    padding.insert(padding.end(), padding.begin(), padding.begin() + static_cast<int64_t>(rank));
  if (padding.size() != 2 * rank) return expr;
  for (size_t i = 0; i < widths.size(); ++i) {
    const int64_t before = *(*widths[i].as_list())[0].as_int();
    const int64_t after = *(*widths[i].as_list())[1].as_int();
    if (i < 2 && (before != 0 || after != 0)) return expr;
    if (before < 0 || after < 0) return expr;
    if (i < 2) continue;
    padding[i - 2] += before;
    padding[i - 2 + rank] += after;
  }
  Attrs attrs = conv.attrs();
  attrs.Set("padding", padding);
  const Expr merged = MakeCall(conv.callee(), {pad->args()[0], conv.args()[1]}, std::move(attrs));
  merged->share_span(*expr);
  return merged;
}

/// A convolution along one axis.
struct ConvAxis {
  int64_t size, taps, stride, dilation, before, after;

  int64_t num_results() const { return (size + before + after - dilation * (taps - 1) - 1) / stride + 1; }
  /// Whether a tap meets an element, and not only padding.
  bool MeetsData(int64_t tap) const {
    const auto [first, last] = ValidRange(size, num_results(), stride, tap * dilation - before);
    return first < last;
  }
};

/// Taps from `begin` on, and the convolution with `taps` of them that has the same results.
struct KeptTaps {
  int64_t begin;
  ConvAxis axis;
};

/// The taps between the first and the last that meet data; nothing if that is all of them, or none.
std::optional<KeptTaps> TapsThatMeetData(const ConvAxis& axis) {
  int64_t begin = 0, end = axis.taps;
  while (begin < end && !axis.MeetsData(begin)) ++begin;
  while (end > begin && !axis.MeetsData(end - 1)) --end;
  if (begin == end || end - begin == axis.taps) return std::nullopt;
  ConvAxis kept = axis;
  kept.taps = end - begin;
  kept.before = axis.before - begin * axis.dilation;
  kept.after = std::max<int64_t>(
      0, (axis.num_results() - 1) * axis.stride + axis.dilation * (kept.taps - 1) + 1 - axis.size - kept.before);
  if (kept.taps == 1) kept.dilation = 1;
  if (kept.before < 0 || kept.num_results() != axis.num_results()) return std::nullopt;
  return KeptTaps{begin, kept};
}

/// conv(x) by a kernel some of whose outer taps meet nothing but zeros, as those of widely dilated ones on small images
/// do → conv(x) by the others. Weights are finite constants: zero times infinity would count.
Expr DropTaps(const Expr& expr, const CallNode& conv) {
  if (!conv.op()->name.starts_with("nn.conv") || conv.op()->name.ends_with("_transpose")) return expr;
  const ConstantNode* weights = As<ConstantNode>(conv.args()[1]);
  const TensorTypeNode* data = AsTensorType(InferType(conv.args()[0]));
  if (weights == nullptr || !data->is_static() || !conv.attrs().String("data_layout").starts_with("NC") ||
      !conv.attrs().String("kernel_layout").starts_with("OI"))
    return expr;
  const int rank = data->rank() - 2;
  auto [before, after] = SpatialPadding(conv.attrs(), rank);
  std::vector<int64_t> dilation = PerDimension(conv.attrs().Ints("dilation"), rank);
  const std::vector<int64_t> strides = PerDimension(conv.attrs().Ints("strides"), rank);
  Shape begin(static_cast<size_t>(rank) + 2, 0), end = weights->value().shape();
  bool changes = false;
  for (size_t i = 0; i < strides.size(); ++i) {
    const std::optional<KeptTaps> kept =
        TapsThatMeetData({data->static_shape()[i + 2], end[i + 2], strides[i], dilation[i], before[i], after[i]});
    if (!kept) continue;
    changes = true;
    begin[i + 2] = kept->begin;
    end[i + 2] = kept->begin + kept->axis.taps;
    before[i] = kept->axis.before;
    after[i] = kept->axis.after;
    dilation[i] = kept->axis.dilation;
  }
  if (!changes || !AreAllFinite(weights->value())) return expr;
  Attrs attrs = conv.attrs();
  before.insert(before.end(), after.begin(), after.end());
  attrs.Set("padding", before);
  attrs.Set("dilation", dilation);
  attrs.Set("kernel_size", std::vector<int64_t>(end.begin() + 2, end.end()));
  const Expr slice = MakeCall("strided_slice", {conv.args()[1]}, {{"begin", begin}, {"end", end}});
  const Expr smaller = MakeCall(conv.callee(), {conv.args()[0], slice}, std::move(attrs));
  slice->share_span(*expr);
  smaller->share_span(*expr);
  return smaller;
}

}  // namespace

Function SimplifyExpr(const Function& function) {
  const Expr result = Rewrite(function, [](const Expr& expr) -> Expr {
    const CallNode* call = As<CallNode>(expr);
    if (call == nullptr || call->op() == nullptr || call->args().empty()) return expr;
    const Expr simpler = DropIdentity(expr, *call);
    if (simpler != expr) return simpler;
    const Expr merged = MergePadding(expr, *call);
    return merged != expr ? merged : DropTaps(expr, *call);
  });
  return AsShared<FunctionNode>(result);
}

}  // namespace collage
