// convolution.h: convolutions over any number of spatial dimensions.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/native/compiler/contraction/contraction.h"
#include "backends/native/compiler/convolution/geometry.h"
#include "backends/native/compiler/stages/loop_nest.h"

namespace collage::native {

void EmitConvolution(PartitionState& state, const CallNode& call, const StageOutput& output);
/// As EmitConvolution, for dynamic shapes.
void EmitDynamicConvolution(PartitionState& state, const CallNode& call, const StageOutput& output);

/// Convolutions with few channels a group: lanes run over the channels of several groups. False when this one has other
/// groups.
bool EmitGroupedConv(PartitionState& state, const CallNode& call, const ConvolutionGeometry& conv,
                     const StageOutput& output);

/// The rows of such a convolution, for stages that write them one by one.
class GroupRows {
 public:
  /// Neighbouring channels: how many, the first one, and where in the data that is.
  struct Block {
    int64_t size = 0;
    I64 first;
    I64 of_data;
  };
  /// Gets each sum with its place in the result.
  using StoreFn = std::function<void(const Indices& at, const Value& sum)>;

  virtual ~GroupRows() = default;
  /// Begins sums with the constants that are added to them, if there are such; returns the output without this
  /// addition.
  virtual StageOutput BeginWithBias(const StageOutput& output) = 0;
  /// Returns the number of channels that all rows compute before they go on to the next channels. It is chosen so that
  /// the data that a row of the result reads stay in the first-level cache: the next row reads them again, but for one
  /// row of the data. The parts are even, of whole cache lines.
  virtual int64_t ChannelsOfBlock() const = 0;
  /// Writes the row at `outer` of the result: its image and the coordinates of all other dimensions but the last. It
  /// is made of `image` of the data.
  virtual void EmitRow(const I64s& outer, const Block& block, const I64& image, const StoreFn& store) = 0;
};
/// Returns the rows of data in memory, which a stage lays out if it must.
std::unique_ptr<GroupRows> RowsOfMemory(PartitionState& state, const CallNode& call, const ConvolutionGeometry& conv);
/// Returns the rows of two-dimensional data that are never in memory together: row y is row y modulo the height of
/// `ring`, which lies channels-last as well. Not where zeros must be stored around the data.
std::unique_ptr<GroupRows> RowsOfRing(PartitionState& state, const CallNode& call, const ConvolutionGeometry& conv,
                                      const Buffer& ring);
/// Whether they must, since most of the results read beyond the data.
bool NeedsStoredZeros(PartitionState& state, const CallNode& call, const ConvolutionGeometry& conv);

}  // namespace collage::native
