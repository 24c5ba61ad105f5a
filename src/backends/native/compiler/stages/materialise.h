// materialise.h: values of expressions in memory.
#pragma once

#include "backends/native/compiler/stages/partition_state.h"

namespace collage::native {

/// A buffer that holds `expr`: its own, or a new one that is filled now. `layout` is that of a new one. Its own may
/// keep the elements in another type, as a layout of the boundary says.
Buffer Materialise(PartitionState& state, const Expr& expr, Layout layout);
/// Returns the dtype that its elements are kept in: that of its own buffer if it has one, else its type's.
DataType KeptType(const PartitionState& state, const Expr& expr);

/// As Materialise, row-major without gaps and of the type of `expr`: a copy when the value lies otherwise.
Buffer MaterialisePlain(PartitionState& state, const Expr& expr);

/// `expr` in memory as elements of `dtype`; a new buffer has `layout`.
Buffer MaterialiseAs(PartitionState& state, const Expr& expr, Layout layout, DataType dtype);

}  // namespace collage::native
