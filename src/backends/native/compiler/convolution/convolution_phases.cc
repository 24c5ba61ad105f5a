// convolution_phases.cc: a transposed convolution is one product for each phase of its output positions modulo the
// strides: the taps that reach a phase are evenly spaced, and so are the inputs that they read.
#include "backends/native/compiler/convolution/convolution_phases.h"

#include <algorithm>
#include <numeric>

#include "ir/ops/relations.h"

namespace collage::native {
namespace {

/// Output o gets tap k of input i where i * stride = o + pad - k * dilation: with o + pad = q * stride + phase, the
/// taps of the phase are every (stride / g)-th, g = gcd(stride, dilation), and each step of them goes dilation / g
/// inputs back.
std::vector<PhaseAxis> PhasesOf(const ConvolutionGeometry& conv, size_t d) {
  const int64_t stride = conv.stride[d];
  const int64_t dilation = conv.dilation[d];
  const int64_t pad = conv.pad_before[d];
  const int64_t kernel = conv.weight[d + 2];
  const int64_t common = std::gcd(stride, dilation);
  std::vector<PhaseAxis> phases;
  for (int64_t first = 0; first < std::min(stride, conv.result[d + 2]); ++first) {
    PhaseAxis axis;
    axis.first = first;
    axis.step = stride;
    axis.outputs = (conv.result[d + 2] - first + stride - 1) / stride;
    const int64_t phase = (first + pad) % stride;
    axis.first_tap = 0;
    while (axis.first_tap < kernel && (axis.first_tap * dilation) % stride != phase) ++axis.first_tap;
    axis.tap_distance = stride / common;
    axis.taps = axis.first_tap < kernel ? (kernel - axis.first_tap + axis.tap_distance - 1) / axis.tap_distance : 0;
    axis.tap_step = -(dilation / common);
    axis.base = (first + pad - axis.first_tap * dilation) / stride;
    // The division is exact but for phases without taps, where it does not matter.
    phases.push_back(axis);
  }
  return phases;
}

}  // namespace

ConvolutionPhase PlainPhase(const ConvolutionGeometry& conv) {
  ConvolutionPhase phase;
  for (size_t d = 0; d < conv.rank; ++d) {
    PhaseAxis axis;
    axis.outputs = conv.result[d + 2];
    axis.stride = conv.stride[d];
    axis.tap_step = conv.dilation[d];
    axis.taps = conv.weight[d + 2];
    phase.push_back(axis);
  }
  return phase;
}

TransposedPhases::TransposedPhases(const ConvolutionGeometry& conv) {
  for (size_t d = 0; d < conv.rank; ++d) {
    axes.push_back(PhasesOf(conv, d));
    int64_t low = 0;
    int64_t high = conv.data[d + 2] - 1;
    for (const PhaseAxis& axis : axes.back()) {
      if (axis.taps == 0) continue;
      const int64_t reach = (axis.taps - 1) * axis.tap_step;
      low = std::min(low, axis.base + std::min<int64_t>(reach, 0));
      high = std::max(high, axis.base + std::max<int64_t>(reach, 0) + axis.outputs - 1);
    }
    before.push_back(-low);
    after.push_back(high - conv.data[d + 2] + 1);
    for (PhaseAxis& axis : axes.back()) axis.base -= low;
  }
}

void PhaseGrid::ForEach(const std::function<void(const ConvolutionPhase&)>& body) const {
  ConvolutionPhase phase(axes.size());
  const std::function<void(size_t)> choose = [&](size_t d) {
    if (d == axes.size()) return body(phase);
    for (const PhaseAxis& axis : axes[d]) {
      phase[d] = axis;
      choose(d + 1);
    }
  };
  choose(0);
}

namespace {

// Products that must remain at most, as a share of all: parts of an image are computed less efficiently.
constexpr double kWorthwhileShare = 0.6;

/// The outputs along dimension `d` that follow each other and get the same taps.
std::vector<PhaseAxis> PartsWithEqualTaps(const ConvolutionGeometry& conv, size_t d) {
  std::vector<PhaseAxis> parts;
  std::pair<int64_t, int64_t> last{-1, -1};
  for (int64_t o = 0; o < conv.result[d + 2]; ++o) {
    // [first, last) of those that meet data.
    const std::pair<int64_t, int64_t> taps =
        ValidRange(conv.data[d + 2], conv.weight[d + 2], conv.dilation[d], o * conv.stride[d] - conv.pad_before[d]);
    if (taps == last) {
      ++parts.back().outputs;
      continue;
    }
    PhaseAxis& part = parts.emplace_back();
    part.first = o;
    part.stride = conv.stride[d];
    part.tap_step = conv.dilation[d];
    part.first_tap = taps.first;
    part.taps = taps.second - taps.first;
    part.base = o * conv.stride[d] + taps.first * conv.dilation[d] - conv.pad_before[d];
    last = taps;
  }
  return parts;
}

}  // namespace

std::optional<PhaseGrid> PhasesWithoutPadding(const ConvolutionGeometry& conv) {
  PhaseGrid grid;
  double share = 1;
  for (size_t d = 0; d < conv.rank; ++d) {
    grid.axes.push_back(PartsWithEqualTaps(conv, d));
    double products = 0;
    for (const PhaseAxis& part : grid.axes.back()) {
      if (part.taps <= 0) return std::nullopt;  // outputs of padding alone
      products += static_cast<double>(part.outputs * part.taps);
    }
    share *= products / static_cast<double>(conv.result[d + 2] * conv.weight[d + 2]);
  }
  return share <= kWorthwhileShare ? std::optional(grid) : std::nullopt;
}

bool HasOnePixel(const ConvolutionGeometry& conv) {
  for (size_t d = 0; d < conv.rank; ++d) {
    const bool has_gaps = conv.dilation[d] > 1 && conv.weight[d + 2] > 1;
    if (conv.data[d + 2] != 1 || has_gaps) return false;
    if (conv.pad_before[d] + conv.result[d + 2] > conv.weight[d + 2]) return false;
  }
  return true;
}

ConvolutionPhase OnePixelPhase(const ConvolutionGeometry& conv) {
  ConvolutionPhase phase(conv.rank);
  for (size_t d = 0; d < conv.rank; ++d) {
    phase[d].first_tap = conv.pad_before[d];
    phase[d].taps = conv.result[d + 2];
  }
  return phase;
}

}  // namespace collage::native
