// result_shapes.h: the shapes of a kernel's results, from those of its parameters.
//
// Graphs of dynamic shapes compute sizes: shape_of, a slice of it, a product, and a reshape to the result. Numbers that
// follow from shapes alone are computed here, so that a kernel may have all of these operators inside.
//
//     %0 = shape_of(%x)               known when the shape of %x is
//     %1 = strided_slice(%0, …)       known, as its argument is
//     dyn.reshape(%y, %1)             a reshape to a known shape
#pragma once

#include <vector>

#include "bytecode/bytecode.h"
#include "collage/ir/expr.h"

namespace collage::vm {

/// Whether sizes may be made of a constant of `type`: of few integers.
bool IsSizeConstant(const Type& type);

/// Returns the type of the result of `kernel`, which takes dimensions, for parameters of static `types`. Throws kInput
/// where a type relation does not hold, or a size does not follow from shapes.
Type ResultTypeOf(const DynamicKernel& kernel, const std::vector<Type>& types);

/// Whether the shapes of all values of `function`, typed, follow from those of its parameters; else why not.
Result<void> HasResultShapes(const Function& function);

}  // namespace collage::vm
