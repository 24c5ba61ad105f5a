// convolution.h: the geometry of convolutions over any number of spatial dimensions, and data with zeros around it.
#pragma once

#include <vector>

#include "backends/native/compiler/product_form.h"

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

/// Whether the pixels of channels-last data follow each other without gaps.
bool IsDense(const Buffer& data);

/// As elements of `dtype` with the channels innermost, whatever the order in which the data lies.
Buffer ChannelsLastData(PartitionState& state, const Expr& data, DataType dtype);

/// The data as elements of `dtype`, with `before` and `after` rows around each spatial dimension: of what `fill` gives,
/// of zeros without. Channels-last unless `layout` says otherwise, which may be plain for data that lie so.
Buffer PaddedData(PartitionState& state, const Expr& data, const std::vector<int64_t>& before,
                  const std::vector<int64_t>& after, DataType dtype, const std::function<Value()>& fill = {},
                  Layout layout = Layout::kChannelsLast);

/// Convolutions with few channels a group: lanes run over the channels of several groups. False when this one has other
/// groups.
bool EmitSmallGroups(PartitionState& state, const CallNode& call, const ConvolutionGeometry& conv,
                     const StageOutput& output);

}  // namespace collage::native
