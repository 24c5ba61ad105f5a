// tensor_types.h: types of nothing but tensors.
#pragma once

#include "collage/ir/type.h"

namespace collage {

/// Whether `type` is a tensor or a tuple of nothing else, nested ones included; false for null.
bool HasTensorsOnly(const Type& type);

}  // namespace collage
