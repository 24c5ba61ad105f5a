// split_outputs.cc: products by the weights of several are stored where each of these goes (parallel_products.h).
#include "backends/native/compiler/driver/split_outputs.h"

#include <algorithm>

#include "collage/ir/op.h"
#include "collage/ir/type.h"

namespace collage::native {
namespace {

/// A slice of `whole` along one dimension, steps of one.
struct Slice {
  Expr whole;
  int64_t axis = 0;
  int64_t begin = 0;
  int64_t end = 0;
};

std::optional<Slice> ReadSlice(const Expr& expr) {
  const CallNode* call = As<CallNode>(expr);
  if (call == nullptr || call->op() == nullptr || call->op()->name != "strided_slice") return std::nullopt;
  const auto ints = [&](const char* name) {
    return call->attrs().IsNone(name) ? std::vector<int64_t>() : call->attrs().Ints(name);
  };
  const std::vector<int64_t> axes = ints("axes"), begin = ints("begin"), end = ints("end"), strides = ints("strides");
  const bool has_steps = std::ranges::any_of(strides, [](int64_t stride) { return stride != 1; });
  if (axes.size() != 1 || begin.size() != 1 || end.size() != 1 || has_steps) return std::nullopt;
  return Slice{call->args()[0], axes[0], begin[0], end[0]};
}

Layout LayoutOf(const Buffer& buffer) {
  return buffer.strides == LayoutStrides(buffer.shape, Layout::kPlain) ? Layout::kPlain : Layout::kChannelsLast;
}

}  // namespace

std::optional<SplitOutput> FindSplit(std::span<const PlacedValue> outputs, size_t first, int64_t lanes) {
  const std::optional<Slice> start = ReadSlice(outputs[first].expr);
  if (!start) return std::nullopt;
  const TensorTypeNode* type = AsTensorType(start->whole->checked_type());
  const Shape shape = type->static_shape();
  const Layout layout = LayoutOf(outputs[first].buffer);
  SplitOutput split{start->whole, {}, {}};
  split.buffer.dtype = outputs[first].buffer.dtype;
  split.buffer.shape = shape;
  split.buffer.strides = LayoutStrides(shape, layout);
  split.buffer.split_axis = static_cast<int>(start->axis);
  if (split.buffer.strides.at(static_cast<size_t>(start->axis)) != 1) return std::nullopt;
  int64_t reached = 0;
  while (reached < shape[static_cast<size_t>(start->axis)]) {
    size_t next = first;
    std::optional<Slice> slice;
    for (; next < outputs.size(); ++next) {
      slice = ReadSlice(outputs[next].expr);
      if (slice && slice->whole == start->whole && slice->axis == start->axis && slice->begin == reached) break;
    }
    if (next == outputs.size() || slice->end <= reached || reached % lanes != 0) return std::nullopt;
    const Buffer& own = outputs[next].buffer;
    if (own.dtype != split.buffer.dtype || own.strides != LayoutStrides(own.shape, layout)) return std::nullopt;
    split.buffer.pieces.push_back({own.ref, reached, own.shape, own.strides});
    split.outputs.push_back(next);
    reached = slice->end;
  }
  if (reached != shape[static_cast<size_t>(start->axis)] || split.outputs.size() < 2) return std::nullopt;
  return split;
}

}  // namespace collage::native
