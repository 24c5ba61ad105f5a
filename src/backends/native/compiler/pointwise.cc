// pointwise.cc: loops over a result's elements, and gathers.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/native/compiler/stages.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"

namespace collage::native {

Buffer PartitionState::AddConstant(const Tensor& value) {
  constants.push_back(value);
  return {kFirstConstant + static_cast<int>(constants.size()) - 1, 0, value.dtype(), value.shape(),
          LayoutStrides(value.shape(), Layout::kPlain)};
}

Buffer PartitionState::AddWorkspace(const Shape& shape, Layout layout) {
  constexpr int64_t kAlignment = 64;
  const Buffer buffer{kWorkspace, workspace_bytes, kFloat32, shape, LayoutStrides(shape, layout)};
  workspace_bytes += (NumElements(shape) * 4 + kAlignment - 1) / kAlignment * kAlignment;
  return buffer;
}

std::vector<std::string> Delinearise(Emitter& e, const std::string& flat, const std::vector<int64_t>& sizes) {
  std::vector<std::string> parts(sizes.size());
  std::string rest = flat;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 1) {
      parts[i] = e.Int(0);
      continue;
    }
    const bool is_last = std::all_of(sizes.begin(), sizes.begin() + static_cast<int64_t>(i), [](int64_t s) { return s == 1; });
    if (is_last) {
      parts[i] = rest;
      continue;
    }
    const std::string size = e.Int(sizes[i]);
    parts[i] = e.Def(fmt::format("arith.remui {}, {} : i64", rest, size));
    rest = e.Def(fmt::format("arith.divui {}, {} : i64", rest, size));
  }
  return parts;
}

namespace {

/// Logical axes in memory order, outermost first.
std::vector<int> MemoryOrder(const Buffer& buffer) {
  std::vector<int> axes(buffer.shape.size());
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int>(i);
  // Dimensions of one element come first: lanes run along the last.
  const auto stride = [&](int axis) {
    const auto i = static_cast<size_t>(axis);
    return buffer.shape[i] == 1 ? std::numeric_limits<int64_t>::max() : buffer.strides[i];
  };
  std::stable_sort(axes.begin(), axes.end(), [&](int a, int b) { return stride(a) > stride(b); });
  return axes;
}

/// Whether every operand has the result's shape and layout, or is one element: then the result is one long row.
bool IsFlat(PartitionState& state, const Expr& expr, const Buffer& buffer) {
  bool flat = true;
  const Shape shape = ShapeOf(expr);
  std::vector<Expr> work{expr};
  while (!work.empty() && flat) {
    const Expr current = work.back();
    work.pop_back();
    if (const ConstantNode* constant = As<ConstantNode>(current); constant != nullptr && constant->value().num_elements() == 1) continue;
    if (ShapeOf(current) != shape) return false;
    if (const Buffer* own = state.expressions.FindBuffer(current)) {
      flat = own->strides == buffer.strides;
      continue;
    }
    const CallNode* call = As<CallNode>(current);
    if (call == nullptr || call->op() == nullptr || call->op()->pattern > OpPatternKind::kBroadcast ||
        call->op()->name == "nn.bias_add") return false;
    work.insert(work.end(), call->args().begin(), call->args().end());
  }
  return flat;
}

constexpr int64_t kFlatChunk = 4096;

}  // namespace

void EmitPointwiseFrom(PartitionState& state, const Expr& expr, const Buffer& buffer,
                       const std::function<Indices(const Indices&)>& source) {
  Emitter& e = state.emitter;
  const std::vector<int> order = MemoryOrder(buffer);
  const int64_t count = NumElements(buffer.shape);
  if (count == 0) return;
  if (order.empty() || count == 1 || buffer.strides[static_cast<size_t>(order.back())] != 1) e.SetLanes(1);
  const int lane_axis = order.empty() ? -1 : order.back();
  const int64_t length = lane_axis < 0 ? 1 : buffer.shape[static_cast<size_t>(lane_axis)];
  std::vector<int64_t> outer;
  for (size_t i = 0; i + 1 < order.size(); ++i) outer.push_back(buffer.shape[static_cast<size_t>(order[i])]);
  const std::string name = state.NextStageName();
  e.Function(name, [&](const std::string& begin, const std::string& end) {
    e.For(begin, end, 1, [&](const std::string& row) {
      const std::vector<std::string> parts = Delinearise(e, row, outer);
      e.ForLanes(length, [&](const std::string& first) {
        Indices indices(buffer.shape.size());
        for (size_t i = 0; i + 1 < order.size(); ++i) indices[static_cast<size_t>(order[i])] = {parts[i], 0};
        if (lane_axis >= 0) indices[static_cast<size_t>(lane_axis)] = {first, 1};
        e.Store(buffer, indices, state.expressions.At(expr, source(indices)));
      });
    });
  });
  e.Call(name, count / length, state.IsParallel(static_cast<double>(count) * 4));
  e.SetLanes(e.native_lanes());
}

void EmitPointwise(PartitionState& state, const Expr& expr, const Buffer& buffer) {
  Emitter& e = state.emitter;
  const int64_t count = NumElements(buffer.shape);
  if (count < 2 || !IsFlat(state, expr, buffer)) {
    return EmitPointwiseFrom(state, expr, buffer, [](const Indices& indices) { return indices; });
  }
  const std::vector<int> order = MemoryOrder(buffer);
  const auto last = static_cast<size_t>(order.back());
  const auto write = [&](int64_t length, const std::string& row) {
    const std::string start = e.MulInt(row, kFlatChunk);
    e.ForLanes(length, [&](const std::string& first) {
      Indices indices(buffer.shape.size());
      for (Index& index : indices) index = {e.Int(0), 0};
      indices[last] = {e.AddInt(start, first), 1};
      e.Store(buffer, indices, state.expressions.At(expr, indices));
    });
  };
  const int64_t chunks = count / kFlatChunk;
  if (chunks > 0) {
    const std::string name = state.NextStageName();
    e.Function(name, [&](const std::string& begin, const std::string& end) {
      e.For(begin, end, 1, [&](const std::string& row) { write(kFlatChunk, row); });
    });
    e.Call(name, chunks, state.IsParallel(static_cast<double>(count) * 4));
  }
  if (count % kFlatChunk == 0) return;
  const std::string name = state.NextStageName();
  e.Function(name, [&](const std::string&, const std::string&) { write(count % kFlatChunk, e.Int(chunks)); });
  e.Call(name, 1, false);
}

Buffer Materialise(PartitionState& state, const Expr& expr, Layout layout) {
  if (const Buffer* buffer = state.expressions.FindBuffer(expr)) return *buffer;
  const Buffer buffer = state.AddWorkspace(ShapeOf(expr), layout);
  EmitPointwise(state, expr, buffer);
  state.expressions.SetBuffer(expr, buffer);
  return buffer;
}

void EmitTake(PartitionState& state, const CallNode& call, const Buffer& buffer) {
  Emitter& e = state.emitter;
  const Shape data = ShapeOf(call.args()[0]);
  const auto rank = static_cast<int64_t>(data.size());
  const int64_t raw_axis = call.attrs().Int("axis");
  const auto axis = static_cast<size_t>(raw_axis < 0 ? raw_axis + rank : raw_axis);
  const size_t index_rank = ShapeOf(call.args()[1]).size();
  const bool lane_indexes = !buffer.shape.empty() && buffer.shape.size() <= axis + index_rank;
  if (lane_indexes) e.SetLanes(1);
  EmitPointwiseFrom(state, call.args()[0], buffer, [&](const Indices& indices) {
    Indices at(indices.begin() + static_cast<int64_t>(axis), indices.begin() + static_cast<int64_t>(axis + index_rank));
    const Value index = state.expressions.At(call.args()[1], at);
    const std::string type = e.TypeOf(ElementKind::kInt);
    std::string scalar = e.Def(fmt::format("vector.extract {}[0] : i64 from {}", index.name, type));
    // Negative indices count from the end, what is beyond is clipped.
    const std::string zero = e.Int(0);
    const std::string is_negative = e.Def(fmt::format("arith.cmpi slt, {}, {} : i64", scalar, zero));
    const std::string wrapped = e.Plus(scalar, data[axis]);
    scalar = e.Def(fmt::format("arith.select {}, {}, {} : i64", is_negative, wrapped, scalar));
    scalar = e.Def(fmt::format("arith.maxsi {}, {} : i64", scalar, zero));
    scalar = e.Def(fmt::format("arith.minsi {}, {} : i64", scalar, e.Int(data[axis] - 1)));
    Indices source(indices.begin(), indices.begin() + static_cast<int64_t>(axis));
    source.push_back({scalar, 0});
    source.insert(source.end(), indices.begin() + static_cast<int64_t>(axis + index_rank), indices.end());
    return source;
  });
  e.SetLanes(e.native_lanes());
}

}  // namespace collage::native
