// resize_taps.h: which elements a resized one is made of, per dimension.
#pragma once

#include <vector>

#include "collage/ir/expr.h"
#include "collage/runtime/tensor.h"

namespace collage::native {

/// One spatial dimension: output position o is the sum of weights[t][o] * input at positions[t][o].
struct ResizeTaps {
  int64_t count = 1;
  bool is_identity = false;
  Tensor positions;  ///< int64 [count, output size]
  Tensor weights;    ///< float32 [count, output size]
};

/// The taps of a call of image.resize1d, 2d or 3d, one entry per spatial dimension.
std::vector<ResizeTaps> FindResizeTaps(const CallNode& call);

}  // namespace collage::native
