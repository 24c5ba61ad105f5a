// pool_indices.h: where in the data the largest elements of windows are.
#pragma once

#include "backends/native/compiler/emit/expressions.h"

namespace collage::native {

/// nn.max_pool1d_indices and those of more dimensions.
void AddPoolIndexRows(InPlaceTable& rows);

}  // namespace collage::native
