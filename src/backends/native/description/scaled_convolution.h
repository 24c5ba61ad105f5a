// scaled_convolution.h: convolutions whose data are multiplied by a number for each of their channels, as a
// squeeze-and-excitation block leaves them.
#pragma once

#include "collage/ir/expr.h"
#include "collage/support/result.h"

namespace collage::native {

/// The data of a convolution as a product: data [1, C, spatial…] times scale [1, C, 1…] or [C, 1…].
struct ChannelScale {
  Expr data;
  Expr scale;
};

/// The scale that the weights of `convolution` may be multiplied by in place of its data, since there are fewer of
/// them; or why there is none. Results differ by rounding alone.
Result<ChannelScale> ScaleOfWeights(const CallNode& convolution);

}  // namespace collage::native
