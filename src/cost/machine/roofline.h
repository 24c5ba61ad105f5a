// roofline.h: what a partition must take at least: the products that it adds up and the bytes that it moves, at the
// highest rates measured on this machine (Williams, Waterman and Patterson 2009).
#pragma once

#include <array>
#include <cstdint>

#include "cost/measure/timing.h"
#include "partition/work.h"

namespace collage {

/// Highest rates of this machine, of all threads together. 0: unknown.
struct MachineRates {
  double multiply_adds = 0;                 ///< float32, per second
  std::array<double, 3> bytes = {0, 0, 0};  ///< read per second, by CacheLevel

  MachineRates Scaled(double factor) const {
    return {multiply_adds * factor, {bytes[0] * factor, bytes[1] * factor, bytes[2] * factor}};
  }
};

/// Measured with the pool's threads, in some tens of milliseconds each.
double MeasureMultiplyAddRate();
double MeasureReadRate(CacheLevel level);
/// Measures the rate at which each thread reads its own `bytes` repeatedly.
double MeasureReadRate(int64_t bytes);
/// Bytes read and bytes written, both counted, where each thread copies half of `bytes` into the other half, and back,
/// again and again. A line that is written is fetched before: copies move fewer bytes per second than reads.
double MeasureCopyRate(int64_t bytes);

/// Seconds that moving what `work` reads and writes takes at least, operands as below.
double MovingSeconds(const Work& work, const MachineRates& rates, int num_threads, CacheLevel operands);

/// Seconds that `work` takes at least when the operands that only it reads are at `operands`, and values that it shares
/// with neighbours where they fit. Rates that are unknown bound nothing.
double RooflineSeconds(const Work& work, const MachineRates& rates, int num_threads, CacheLevel operands);

}  // namespace collage
