// elements.h: stages that compute each element of a buffer by itself.
#pragma once

#include <functional>

#include "backends/native/compiler/stages/partition_state.h"

namespace collage::native {

/// Writes the value at a place of a tensor.
using ElementFn = std::function<Value(const Indices& at)>;

/// Fills `buffer` with an expression computed in place.
void EmitPointwise(PartitionState& state, const Expr& expr, const Buffer& buffer);
/// Whether elements at a place are to be written; lanes are not in its indices.
using ElementGuard = std::function<I1(const Indices& at)>;

/// Fills `buffer` with `value(indices)`, where `guard`, if there is one, holds: it may depend on dimensions of known
/// sizes that are far from the innermost.
void EmitElements(PartitionState& state, const Buffer& buffer, const ElementFn& value, const ElementGuard& guard = {});
/// Runs `body` for vectors of the elements of `shape`, whose sizes may be symbolic: the innermost `merged` dimensions
/// are walked as one, in chunks that are units of work.
void ForDynamicElements(PartitionState& state, const Shape& shape, size_t merged,
                        const std::function<void(const Indices& at)>& body);

}  // namespace collage::native
