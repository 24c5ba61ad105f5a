// management.h: NVIDIA's management library (NVML) by a table of its functions: a GPU's clocks, and why they are low.
//
// Types, numbers and names are those of the library's documentation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace collage::cuda_driver {

/// A GPU's state at one moment.
struct GpuClocks {
  unsigned processors_mhz = 0;       ///< clock of the multiprocessors
  unsigned most_processors_mhz = 0;  ///< the highest that there is
  unsigned memory_mhz = 0;
  unsigned celsius = 0;
  uint64_t reasons = 0;  ///< nvmlClocksThrottleReasons, why the clock is not higher

  /// Whether temperature or power hold the clock down; neither idleness nor a setting does.
  bool IsThrottled() const;
  /// How many times slower than usual products are: above 1 while the GPU throttles.
  double Slowdown() const;
};

/// The GPU at `bus_id` ("0000:01:00.0"). Nothing where the library is missing, or does not tell.
std::optional<GpuClocks> ReadClocks(const std::string& bus_id);

}  // namespace collage::cuda_driver
