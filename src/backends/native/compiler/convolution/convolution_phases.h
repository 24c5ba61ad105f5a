// convolution_phases.h: which data and taps each output of a convolution reads, as even steps along each dimension.
#pragma once

#include <functional>
#include <optional>
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

/// Phases that are all combinations of parts of each spatial dimension.
struct PhaseGrid {
  std::vector<std::vector<PhaseAxis>> axes;  ///< by spatial dimension

  /// Calls `body` for each combination, the last dimension's parts fastest.
  void ForEach(const std::function<void(const ConvolutionPhase&)>& body) const;
};

/// The phases of a transposed convolution: output positions modulo the strides.
struct TransposedPhases : PhaseGrid {
  explicit TransposedPhases(const ConvolutionGeometry& conv);

  std::vector<int64_t> before, after;  ///< rows of zeros that they read around the data
};

/// The phases of a convolution that is not transposed by the taps that meet data, which are read without padding: of a
/// widely dilated kernel on a small image most outputs get few taps. Nothing where that spares little.
std::optional<PhaseGrid> PhasesWithoutPadding(const ConvolutionGeometry& conv);

/// Whether a transposed convolution's images are single pixels, so that each output gets one tap of it.
bool HasOnePixel(const ConvolutionGeometry& conv);

/// Returns such a convolution's taps, one for each output.
ConvolutionPhase OnePixelPhase(const ConvolutionGeometry& conv);

}  // namespace collage::native
