// geometry.h: sizes of a convolution over any number of spatial dimensions.
#pragma once

#include <vector>

#include "collage/ir/expr.h"

namespace collage::native {

/// Attributes and shapes of a call of nn.convNd or nn.convNd_transpose.
struct ConvolutionGeometry {
  size_t rank;  ///< spatial dimensions
  std::vector<int64_t> stride, dilation, pad_before, pad_after;
  int64_t groups;
  Shape data, weight, result;

  ConvolutionGeometry(const CallNode& call, const Expr& result);
  int64_t taps() const;
  /// Multiplications and additions.
  double flops() const;
};

}  // namespace collage::native
