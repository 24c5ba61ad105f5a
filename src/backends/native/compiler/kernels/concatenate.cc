// concatenate.cc: each field of the tuple fills its part of the result.
#include "backends/native/compiler/kernels/concatenate.h"

#include <algorithm>

#include "backends/native/compiler/stages/elements.h"
#include "backends/native/compiler/stages/epilogue.h"
#include "collage/support/error.h"

namespace collage::native {

namespace {

/// Whether neighbouring elements of a piece are apart in the whole: the piece is one element wide along `axis` and
/// behind it, the whole is not.
bool IsColumn(const Shape& piece, const Shape& whole, size_t axis) {
  return whole[axis] != 1 &&
         std::all_of(piece.begin() + static_cast<int64_t>(axis), piece.end(), [](int64_t size) { return size == 1; });
}

}  // namespace

// Each piece is a smaller tensor with the whole one's strides, from its position on.
void EmitConcatenate(PartitionState& state, const CallNode& call, const StageOutput& output) {
  const TupleNode* tuple = As<TupleNode>(call.args()[0]);
  if (tuple == nullptr) throw Error(ErrorCategory::kUnsupported, "joins tuples that are written out only");
  const bool is_stack = call.op()->name == "stack";
  const Buffer& out = output.buffer;
  const size_t axis = AxisAttr(call, "axis", out.shape.size());
  const auto erase = [&](auto list) {
    if (is_stack) list.erase(list.begin() + static_cast<int64_t>(axis));
    return list;
  };
  int64_t at = 0;
  for (const Expr& field : tuple->fields()) {
    const int64_t size = is_stack ? 1 : ShapeOf(field)[axis];
    Buffer piece = out;
    piece.shape[axis] = size;
    if (HasSymbolic(out.shape)) {
      const bool is_column = IsColumn(piece.shape, out.shape, axis);
      if (is_column) state.emitter.SetLanes(1);
      ForDynamicElements(state, piece.shape, 1, [&](const Indices& own) {
        Indices whole = own;
        whole[axis] = state.emitter.Shifted(own[axis], at);
        const Value value = state.expressions.At(field, erase(own));
        StoreResult(state, output, whole, value);
      });
      if (is_column) state.emitter.SetLanes(state.emitter.native_lanes());
      at = state.emitter.Added(at, size);
      continue;
    }
    piece.offset_bytes += at * out.strides[axis] * static_cast<int64_t>(out.dtype.size_bytes());
    if (output.epilogue == output.result) {
      piece.shape = erase(piece.shape);
      piece.strides = erase(piece.strides);
      EmitPointwise(state, field, piece);
    } else {
      EmitElements(state, piece, [&](const Indices& own) {
        Indices whole = own;
        whole[axis] = state.emitter.Shifted(own[axis], at);
        state.expressions.SetRegister(output.result, state.expressions.At(field, erase(own)));
        const Value value = state.expressions.At(output.epilogue, whole);
        state.expressions.ClearRegisters();
        return value;
      });
    }
    at += size;
  }
}

}  // namespace collage::native
