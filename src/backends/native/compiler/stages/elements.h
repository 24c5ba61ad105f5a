// elements.h: stages that compute each element of a buffer by itself.
#pragma once

#include <functional>

#include "backends/native/compiler/stages/partition_state.h"

namespace collage::native {

/// Writes the value at a place of a tensor.
using ElementFn = std::function<Value(const Indices& at)>;

/// Fills `buffer` with an expression computed in place.
void EmitPointwise(PartitionState& state, const Expr& expr, const Buffer& buffer);
/// Fills `buffer` with `value(indices)`.
void EmitElements(PartitionState& state, const Buffer& buffer, const ElementFn& value);
/// Runs `body` for vectors of the elements of `shape`, whose sizes may be symbolic: the innermost `merged` dimensions
/// are walked as one, in chunks that are units of work.
void ForDynamicElements(PartitionState& state, const Shape& shape, size_t merged,
                        const std::function<void(const Indices& at)>& body);

}  // namespace collage::native
