// pool_windows.h: the windows of a pool, dimension by dimension, known when the kernel is compiled.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/runtime/tensor.h"

namespace collage::native {

/// The attributes of a pool, by spatial dimension.
struct PoolGeometry {
  PoolGeometry(const CallNode& call, int rank);

  std::vector<int64_t> size, stride, dilation, pad_before, pad_after;
  bool counts_padding;  ///< whether means include the padding
};

/// Windows along one dimension; tables by output position.
struct Windows {
  int64_t stride = 1;
  int64_t dilation = 1;
  int64_t pad = 0;
  int64_t most_taps = 1;
  Tensor start, low, high;  ///< int64: position of tap 0, taps [low, high) lie inside
  Tensor share;             ///< float32: 1 / how many taps count

  int64_t size() const { return start.shape()[0]; }
  /// From the first tap to behind the last one.
  int64_t extent() const { return (most_taps - 1) * dilation + 1; }
  bool IsInside(int64_t out) const { return low.data<int64_t>()[out] == 0 && high.data<int64_t>()[out] == most_taps; }
  /// The outputs [first, second) between the first and the last one whose taps all lie inside.
  std::pair<int64_t, int64_t> Inside() const;
  /// Distances from a window's start at which positions are a tap of it, or of a later window.
  std::vector<int64_t> UsedOffsets() const;
  /// Distances from the window's start to those of its taps that lie inside.
  std::vector<int64_t> OffsetsAt(int64_t out) const;
};

/// Windows of the size, strides, dilation and padding that `call`, a pool of data of shape `in`, tells.
std::vector<Windows> FixedWindows(const CallNode& call, const Shape& in, const Shape& out);
/// Windows that share the data out evenly.
std::vector<Windows> AdaptiveWindows(const Shape& in, const Shape& out);

/// `windows` over elements that repeat others, as windows over those others: element i is number `positions[i]` of
/// `in`. None where these are no windows that follow each other evenly; `is_max`: how often an element is in a window
/// does not matter.
///
///     pool of 2 by steps of 2 of each element twice:    a a | b b | c c    → a | b | c: pool of 1 by steps of 1
std::optional<Windows> OverRepeated(const Windows& windows, const Tensor& positions, int64_t in, bool is_max);

}  // namespace collage::native
