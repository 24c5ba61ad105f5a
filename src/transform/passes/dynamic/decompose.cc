// decompose.cc: transposed convolutions as sub-pixel convolutions (Shi et al. 2016, "Is the deconvolution layer
// the same as a convolutional layer?").
#include "transform/passes/dynamic/decompose.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "collage/ir/infer_type.h"
#include "ir/ops/relations.h"
#include "transform/passes/dynamic/replaced_calls.h"
#include "transform/rewriting.h"

namespace collage {
namespace {

using V = std::vector<int64_t>;

/// Geometry of a transposed convolution, and of the convolution that computes all remainders of it.
struct TransposedGeometry {
  size_t rank;
  int64_t groups;
  V strides, dilation, begin, window;
  V taps;    ///< positions of the convolution's window
  V excess;  ///< positions that are cropped behind the result

  /// None where a result begins or ends outside of what the convolution computes.
  static std::optional<TransposedGeometry> Of(const CallNode& call, const Shape& weight) {
    const int rank = static_cast<int>(weight.size()) - 2;
    const Padding padding = SpatialPadding(call.attrs(), rank);
    const V extra = PerDimension(call.attrs().Ints("output_padding"), rank);
    TransposedGeometry made{weight.size() - 2,
                            call.attrs().Int("groups"),
                            PerDimension(call.attrs().Ints("strides"), rank),
                            PerDimension(call.attrs().Ints("dilation"), rank),
                            padding.before,
                            Shape(weight.begin() + 2, weight.end()),
                            {},
                            {}};
    for (size_t d = 0; d < made.rank; ++d) {
      const int64_t span = (made.window[d] - 1) * made.dilation[d] + 1;
      const int64_t needed = std::max(span, span - padding.after[d] + extra[d]);
      made.taps.push_back((needed + made.strides[d] - 1) / made.strides[d]);
      made.excess.push_back(made.taps[d] * made.strides[d] - span + padding.after[d] - extra[d]);
      if (made.window[d] < 1 || padding.before[d] < 0 || made.excess[d] < 0) return std::nullopt;
    }
    return made;
  }

  int64_t remainders() const { return NumElements(strides); }
};

/// [I, O / groups, window…] → [O * remainders, I / groups, taps…], channels of one remainder after the other within
/// each channel of the result.
Tensor RearrangedWeights(const Tensor& weight, const TransposedGeometry& own) {
  const int64_t group_in = weight.shape()[0] / own.groups, group_out = weight.shape()[1];
  Shape shape{group_out * own.groups * own.remainders(), group_in};
  shape.insert(shape.end(), own.taps.begin(), own.taps.end());
  const Tensor made = Tensor::Zeros(shape, weight.dtype());
  const V from_strides = Strides(weight.shape()), strides = Strides(shape);
  const size_t bytes = weight.dtype().size_bytes();
  Shape positions(own.window);  // of a remainder's taps in the window
  ForEachIndex(positions, [&](const V& tap) {
    int64_t from = 0, to = 0, remainder = 0;
    for (size_t d = 0; d < own.rank; ++d) {
      const int64_t at = tap[d] * own.dilation[d];
      remainder = remainder * own.strides[d] + at % own.strides[d];
      from += tap[d] * from_strides[d + 2];
      to += (own.taps[d] - 1 - at / own.strides[d]) * strides[d + 2];
    }
    for (int64_t channel = 0; channel < group_out * own.groups; ++channel) {
      const int64_t first = channel / group_out * group_in;
      for (int64_t in = 0; in < group_in; ++in) {
        const int64_t source = (first + in) * from_strides[0] + channel % group_out * from_strides[1] + from;
        const int64_t target = (channel * own.remainders() + remainder) * strides[0] + in * strides[1] + to;
        std::copy_n(weight.data<char>() + static_cast<size_t>(source) * bytes, bytes,
                    made.data<char>() + static_cast<size_t>(target) * bytes);
      }
    }
  });
  return made;
}

/// [N, O * remainders, spatial…] → [N, O, spatial * stride…].
Expr SpreadOverPixels(Expr value, const TransposedGeometry& own, int64_t channels, const ExprNode& origin) {
  const auto rank = static_cast<int64_t>(own.rank);
  value = TypedCall("reshape", {value}, origin, {{"newshape", V{0, -4, channels, own.remainders(), -2}}});
  int64_t rest = own.remainders();
  for (size_t d = 0; d + 1 < own.rank; ++d) {
    V shape(d + 2, 0);
    rest /= own.strides[d];
    shape.insert(shape.end(), {-4, own.strides[d], rest, -2});
    value = TypedCall("reshape", {value}, origin, {{"newshape", shape}});
  }
  V axes{0, 1}, merged{0, 0};
  for (int64_t d = 0; d < rank; ++d) {
    axes.insert(axes.end(), {2 + rank + d, 2 + d});
    merged.push_back(-3);
  }
  value = TypedCall("transpose", {value}, origin, {{"axes", axes}});
  return TypedCall("reshape", {value}, origin, {{"newshape", merged}});
}

Expr Cropped(const Expr& value, const TransposedGeometry& own, const ExprNode& origin) {
  V begin, end, axes;
  for (size_t d = 0; d < own.rank; ++d) {
    if (own.begin[d] == 0 && own.excess[d] == 0) continue;
    begin.push_back(own.begin[d]);
    end.push_back(own.excess[d] == 0 ? std::numeric_limits<int32_t>::max() : -own.excess[d]);
    axes.push_back(static_cast<int64_t>(d) + 2);
  }
  if (axes.empty()) return value;
  return TypedCall("strided_slice", {value}, origin, {{"begin", begin}, {"end", end}, {"axes", axes}});
}

/// Whether `call` is a transposed convolution of floats whose images have dynamic sizes.
bool IsDynamicTransposed(const CallNode& call) {
  const OpDef* op = call.op();
  if (op == nullptr || !op->name.starts_with("nn.conv") || !op->name.ends_with("d_transpose")) return false;
  const TensorTypeNode* data = AsTensorType(call.args()[0]->checked_type());
  const TensorTypeNode* result = AsTensorType(call.checked_type());
  if (data == nullptr || result == nullptr || data->dtype() != result->dtype()) return false;
  if (data->rank() < 3 || data->shape()[1].is_any()) return false;
  return std::any_of(data->shape().begin() + 2, data->shape().end(), [](const Dim& dim) { return dim.is_any(); });
}

/// The call as a convolution; null where it cannot be one.
Expr AsConvolution(const CallNode& call) {
  const ConstantNode* weight = As<ConstantNode>(call.args()[1]);
  if (weight == nullptr) return nullptr;
  const Tensor& taps = weight->value();
  const std::optional<TransposedGeometry> own = TransposedGeometry::Of(call, taps.shape());
  if (!own) return nullptr;
  V padding;
  for (int end = 0; end < 2; ++end) {
    for (const int64_t window : own->taps) padding.push_back(window - 1);
  }
  const std::string name = call.op()->name.substr(0, call.op()->name.size() - std::string_view("_transpose").size());
  const Expr computed = TypedCall(name, {call.args()[0], MakeConstant(RearrangedWeights(taps, *own))}, call,
                                  {{"padding", padding}, {"groups", own->groups}});
  return Cropped(SpreadOverPixels(computed, *own, taps.shape()[1] * own->groups, call), *own, call);
}

}  // namespace

IRModule DecomposeDynamic(const IRModule& module, const std::function<bool(const CallNode& call)>& takes) {
  return WithReplacedCalls(module, [&](const CallNode& original, const CallNode& call) -> Expr {
    return IsDynamicTransposed(original) && !takes(original) ? AsConvolution(call) : nullptr;
  });
}

}  // namespace collage
