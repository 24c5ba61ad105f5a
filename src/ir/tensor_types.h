// tensor_types.h: types of nothing but tensors.
#pragma once

#include "collage/ir/type.h"

namespace collage {

/// Whether `type` is a tensor or a tuple of nothing else, nested ones included; false for null.
bool HasTensorsOnly(const Type& type);
/// As HasTensorsOnly, and all of them have static shapes.
bool HasStaticTensorsOnly(const Type& type);

/// A tensor type with the same sizes, and `?` for those that are known as expressions; other types as they are.
Type WithoutSymbols(const Type& type);

}  // namespace collage
