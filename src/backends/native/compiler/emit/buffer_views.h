// buffer_views.h: transpositions and reshapes as other strides over the same memory.
#pragma once

#include <optional>

#include "backends/native/compiler/emit/expressions.h"

namespace collage::native {

/// Which axis of its argument each axis of a `transpose` is.
std::vector<size_t> TransposedAxes(const CallNode& call, size_t rank);

/// `buffer` under another shape of as many elements in the same order; nothing where they are not evenly spaced along
/// each of its dimensions.
std::optional<Buffer> Reshaped(const Buffer& buffer, const Shape& shape);

/// Returns the value of `expr` where it lies: its own buffer, or a view of the buffer of the value that `expr`
/// transposes and reshapes. Nothing if there is no such buffer.
std::optional<Buffer> ViewOf(const Expressions& expressions, const Expr& expr);

/// Returns the buffer for `inner` such that `outer`, transpositions and reshapes of it, lies in `place`; nothing if
/// `outer` is anything else.
std::optional<Buffer> PlaceOf(const Expr& inner, const Expr& outer, const Buffer& place);

}  // namespace collage::native
