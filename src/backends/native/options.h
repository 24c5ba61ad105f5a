// options.h: what a compilation of native kernels may be told.
#pragma once

namespace collage::native {

struct NativeOptions {
  /// Bars algorithms whose results differ from the direct ones' by more than the order of sums.
  bool is_exact = false;
  /// Side of the result's tiles in Winograd's convolutions: 2 or 4 wherever they apply; 0: as the model of their time
  /// says.
  int winograd_tile = 0;
};

}  // namespace collage::native
