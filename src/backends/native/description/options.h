// options.h: options of the native toolchain.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "backends/native/description/libraries.h"
#include "backends/native/description/schedule.h"
#include "collage/ir/type.h"

namespace collage::native {

/// LLVM's name of NVIDIA GPUs.
inline constexpr const char* kGpuTriple = "nvptx64-nvidia-cuda";

struct NativeOptions {
  /// Bars algorithms whose results differ from the direct ones' by more than the order of sums.
  bool is_exact = false;
  /// Sides of the result's tiles in Winograd's convolutions, wherever they apply: digits 2 or 4 for the last axes; the
  /// first digit also holds for the axes before. 0: the cost model chooses.
  int winograd_tile = 0;
  /// The schedule of all partitions, as far as they have a use for it; a request's own takes precedence.
  Schedule schedule;
  /// Factors of products of float32 values are rounded to this: bfloat16, or, for a GPU, float16; sums, and all else,
  /// stay float32. Float32: they are not rounded.
  DataType factors = kFloat32;
  /// They are rounded to TensorFloat-32, ten bits behind the point, wherever a GPU's tensor cores multiply them.
  bool in_tf32 = false;
  /// Data of products with weights of few bits are rounded to 8 bits, with a scale for each block.
  bool rounds_data = false;
  /// Float32 values between partitions may be kept as float16; all is computed in float32.
  bool keeps_float16 = false;
  /// The target processors, in LLVM's words: a name ("x86-64-v3", "skylake-avx512"), instruction sets to add or to
  /// leave out ("+avx512vl,-fma"), and a triple. All empty: this machine.
  std::string cpu, attributes, triple;
  /// GPUs that code for `cpu` is assembled for, too.
  std::vector<std::string> further_gpus;
  /// Libraries whose functions compute tiles of products, or Composites: the first that has them is called.
  std::vector<CalledLibrary> libraries;

  /// Whether code is for NVIDIA GPUs.
  bool is_for_gpu() const { return triple == kGpuTriple; }
  /// Whether products are of factors that are narrower than their values, in pairs.
  bool narrows_factors() const { return factors != kFloat32; }
  /// Whether less than float32 is asked for, of products or of what is kept between partitions.
  bool is_lower() const { return narrows_factors() || rounds_data || keeps_float16; }
  /// Whether one of them computes tiles.
  bool calls_for_tiles() const {
    return std::ranges::any_of(libraries, [](const CalledLibrary& library) { return !library.kernels.empty(); });
  }
};

}  // namespace collage::native
