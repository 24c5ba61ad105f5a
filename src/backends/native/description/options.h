// options.h: options of the native toolchain.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "backends/native/description/libraries.h"
#include "backends/native/description/schedule.h"

namespace collage::native {

struct NativeOptions {
  /// Bars algorithms whose results differ from the direct ones' by more than the order of sums.
  bool is_exact = false;
  /// Sides of the result's tiles in Winograd's convolutions, wherever they apply: digits 2 or 4 for the last axes; the
  /// first digit also holds for the axes before. 0: the cost model chooses.
  int winograd_tile = 0;
  /// The schedule of all partitions, as far as they have a use for it; a request's own takes precedence.
  Schedule schedule;
  /// Factors of products of float32 values are rounded to bfloat16; sums, and all else, stay float32.
  bool in_bfloat16 = false;
  /// Float32 values between partitions may be kept as float16; all is computed in float32.
  bool keeps_float16 = false;
  /// The target processors, in LLVM's words: a name ("x86-64-v3", "skylake-avx512"), instruction sets to add or to
  /// leave out ("+avx512vl,-fma"), and a triple. All empty: this machine.
  std::string cpu, attributes, triple;
  /// Libraries whose functions compute tiles of products, or Composites: the first that has them is called.
  std::vector<CalledLibrary> libraries;

  /// Whether one of them computes tiles.
  bool calls_for_tiles() const {
    return std::ranges::any_of(libraries, [](const CalledLibrary& library) { return !library.kernels.empty(); });
  }
};

}  // namespace collage::native
