// buffer_views.cc: shapes and strides of moved elements.
#include "backends/native/compiler/emit/buffer_views.h"

#include "backends/native/operators.h"

namespace collage::native {
namespace {

/// The operator that moves `expr`'s argument; null when it does anything else.
const CallNode* AsMovement(const Expr& expr) {
  const CallNode* call = As<CallNode>(expr);
  return call != nullptr && call->op() != nullptr && IsMovement(*call->op()) ? call : nullptr;
}

}  // namespace

std::vector<size_t> TransposedAxes(const CallNode& call, size_t rank) {
  std::vector<size_t> axes(rank);
  for (size_t i = 0; i < rank; ++i) {
    int64_t axis = call.attrs().IsNone("axes") ? static_cast<int64_t>(rank - 1 - i) : call.attrs().Ints("axes")[i];
    if (axis < 0) axis += static_cast<int64_t>(rank);
    axes[i] = static_cast<size_t>(axis);
  }
  return axes;
}

std::optional<Buffer> Reshaped(const Buffer& buffer, const Shape& shape) {
  if (NumElements(buffer.shape) != NumElements(shape) || NumElements(shape) == 0) return std::nullopt;
  // Dimensions that continue each other are one; each of the new ones must lie within one of these.
  struct Stretch {
    int64_t size;
    int64_t stride;
  };
  std::vector<Stretch> stretches;  // outermost first
  for (size_t d = 0; d < buffer.shape.size(); ++d) {
    const int64_t size = buffer.shape[d];
    if (size == 1) continue;
    if (!stretches.empty() && stretches.back().stride == buffer.strides[d] * size) {
      stretches.back() = {stretches.back().size * size, buffer.strides[d]};
    } else {
      stretches.push_back({size, buffer.strides[d]});
    }
  }
  Buffer result = buffer;
  result.shape = shape;
  result.strides.assign(shape.size(), 1);
  Stretch left{1, 1};
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && left.size == 1) {
      left = stretches.back();
      stretches.pop_back();
    }
    if (left.size % shape[i] != 0) return std::nullopt;
    result.strides[i] = left.stride;
    left = {left.size / shape[i], left.stride * shape[i]};
  }
  return result;
}

std::optional<Buffer> ViewOf(const Expressions& expressions, const Expr& expr) {
  if (const Buffer* buffer = expressions.FindBuffer(expr)) return *buffer;
  const CallNode* call = AsMovement(expr);
  if (call == nullptr) return std::nullopt;
  const std::optional<Buffer> source = ViewOf(expressions, call->args()[0]);
  if (!source || call->op()->is_reshape) return source ? Reshaped(*source, ShapeOf(expr)) : std::nullopt;
  Buffer view = *source;
  const std::vector<size_t> axes = TransposedAxes(*call, view.shape.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    view.shape[i] = source->shape[axes[i]];
    view.strides[i] = source->strides[axes[i]];
  }
  return view;
}

std::optional<Buffer> PlaceOf(const Expr& inner, const Expr& outer, const Buffer& place) {
  if (inner == outer) return place;
  const CallNode* call = AsMovement(outer);
  if (call == nullptr) return std::nullopt;
  const Expr& source = call->args()[0];
  if (call->op()->is_reshape) {
    const std::optional<Buffer> own = Reshaped(place, ShapeOf(source));
    return own ? PlaceOf(inner, source, *own) : std::nullopt;
  }
  Buffer own = place;
  const std::vector<size_t> axes = TransposedAxes(*call, place.shape.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    own.shape[axes[i]] = place.shape[i];
    own.strides[axes[i]] = place.strides[i];
  }
  return PlaceOf(inner, source, own);
}

}  // namespace collage::native
