// convolution_phases.h: which data and taps each output of a convolution reads, as even steps along each dimension.
#pragma once

#include <functional>
#include <vector>

#include "backends/native/compiler/convolution/geometry.h"

namespace collage::native {

/// One spatial dimension of a product: output `first + o * step` reads the padded data at o * stride + j * tap_step +
/// base for j in [0, taps), with the weight's tap first_tap + j * tap_distance.
struct PhaseAxis {
  int64_t outputs = 1, first = 0, step = 1;
  int64_t stride = 1, tap_step = 1, base = 0;
  int64_t taps = 1, first_tap = 0, tap_distance = 1;
};

/// The outputs that one product computes, by spatial dimension.
using ConvolutionPhase = std::vector<PhaseAxis>;

/// Returns the one phase of a convolution that is not transposed.
ConvolutionPhase PlainPhase(const ConvolutionGeometry& conv);

/// The phases of a transposed convolution: output positions modulo the strides.
struct TransposedPhases {
  explicit TransposedPhases(const ConvolutionGeometry& conv);

  std::vector<std::vector<PhaseAxis>> axes;  ///< by spatial dimension
  std::vector<int64_t> before, after;        ///< rows of zeros that they read around the data

  /// Calls `body` for each combination, the last dimension's phases fastest.
  void ForEach(const std::function<void(const ConvolutionPhase&)>& body) const;
};

/// Whether a transposed convolution's images are single pixels, so that each output gets one tap of it.
bool HasOnePixel(const ConvolutionGeometry& conv);

/// Returns such a convolution's taps, one for each output.
ConvolutionPhase OnePixelPhase(const ConvolutionGeometry& conv);

}  // namespace collage::native
