// arguments.h: what the two sides of a launch agree on. The text of this file is also part of what nvcc compiles.
#pragma once

#include <cstdint>

namespace collage::cutlass_interface {

/// Functions of one value behind a sum.
enum class Function : uint8_t { kNone, kRelu, kClip, kSigmoid, kTanh, kSwish, kGelu, kGeluTanh, kHardSwish };

/// How another tensor of the result's shape joins it.
enum class Combination : uint8_t { kNone, kAdd, kMultiply };

/// Sizes, in elements. A product uses the first group, a convolution the second.
struct Problem {
  // [batch, m, n] = [batch, m, k] x [batch, k, n]. A row of a matrix as stored is `lda` or `ldb` long; the next of the
  // batch is `stride_a` or `stride_b` on.
  int64_t batch, m, n, k;
  int64_t lda, ldb, stride_a, stride_b;
  // [images, result_height, result_width, filters] of [images, height, width, channels] and weights [filters,
  // kernel_height, kernel_width, channels].
  int64_t images, height, width, channels, filters;
  int64_t kernel_height, kernel_width, result_height, result_width;
  int64_t before_height, before_width;  ///< padding
  int64_t stride_height, stride_width, dilation_height, dilation_width;
};

/// end(combination(function(a x b + bias), other)).
struct Arguments {
  const void* a;
  const void* b;
  const void* bias;   ///< a number for each column of the result; null: none
  const void* other;  ///< null: none
  void* result;
  Problem problem;
  float low, high;  ///< bounds of Function::kClip
};

/// Images that `collage_move` moves between [images, channels, pixels] and [images, pixels, stored].
struct Move {
  const void* from;
  void* to;
  int64_t images, channels, pixels;
  int64_t stored;            ///< channels that lie innermost, those behind `channels` being 0
  int32_t to_channels_last;  ///< 1: the first is read; 0: the second
  int32_t element_bytes;     ///< 1, 2 or 4

  static constexpr int kEdge = 32;      ///< a block moves so many pixels of so many channels
  static constexpr int kThreads = 256;  ///< in a block
};

/// How the kernel `collage_run` is launched: what `collage_prepare` writes for arguments.
struct Prepared {
  static constexpr int kMostParameterBytes = 4000;

  uint32_t grid[3];
  uint32_t threads;
  uint32_t shared_bytes;
  uint32_t parameter_bytes;
  alignas(16) unsigned char parameters[kMostParameterBytes];
};

}  // namespace collage::cutlass_interface
