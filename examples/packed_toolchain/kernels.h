// kernels.h: the blob and the form of the constants, on which compiler and kernels agree.
#pragma once

#include <cstdint>

namespace panels {

/// Columns of a panel: as many as a kernel computes at once.
constexpr int64_t kWidth = 16;

/// Describes [rows, inner] x [inner, columns], all row-major.
///
/// The first constant has the weights as panels of kWidth columns, [PanelsOf(columns), inner, kWidth], with zeros
/// behind the last column. With `has_bias`, the second has a number for each column of the panels.
struct Blob {
  int64_t rows;
  int64_t inner;
  int64_t columns;
  int64_t block;     ///< rows of a task; a thread computes one task after the other
  int64_t has_bias;  ///< 0 or 1
  int64_t has_relu;  ///< 0 or 1
};

constexpr int64_t PanelsOf(int64_t columns) { return (columns + kWidth - 1) / kWidth; }

}  // namespace panels
