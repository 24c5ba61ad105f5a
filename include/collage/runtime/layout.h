// layout.h: how the elements of a logical tensor lie in memory when it crosses a partition boundary.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "collage/runtime/tensor.h"

namespace collage {

/// Memory order of a value [N, C, spatial…] at a boundary. Relay's types always speak of the logical, plain shape.
enum class Layout : uint8_t {
  kPlain,         ///< row-major in the logical order: NCW, NCHW, NCDHW and every value that has no channels
  kChannelsLast,  ///< axis 1 innermost: NWC, NHWC, NDHWC; only for ranks 3 to 5
};

/// "plain" or "channels_last".
std::string_view ToString(Layout layout);

/// Logical axis held by each physical axis: {0, 1, 2, 3} or {0, 2, 3, 1}.
std::vector<int> PhysicalAxes(Layout layout, int rank);

/// The dimensions in memory order: (1, 64, 56, 56) channels-last is (1, 56, 56, 64).
Shape PhysicalShape(std::span<const int64_t> shape, Layout layout);

/// Copies `source` to `target`, both of logical `shape`, changing the memory order. The buffers must not overlap.
/// Runs on the process's thread pool when the tensor is large.
void ConvertLayout(const void* source, Layout from, void* target, Layout to, std::span<const int64_t> shape,
                   size_t element_bytes);

}  // namespace collage
