// describe.h: reads a matched sub-graph as a problem that a kernel of CUTLASS computes.
#pragma once

#include <string>
#include <vector>

#include "backends/cutlass/instance.h"
#include "backends/cutlass/kernel.h"
#include "backends/cutlass/tiles.h"
#include "collage/ir/expr.h"
#include "collage/support/result.h"
#include "collage/target/toolchain.h"

namespace collage::cutlass {

/// Liberties that a kernel may take with factors of float32, beyond another order of sums.
struct Precision {
  bool allows_tf32 = false;  ///< they may be rounded to TF32
  bool is_exact = false;     ///< they may not be taken apart into two of TF32
};

struct Description {
  Instance instance;  ///< but for multiplier and tile
  std::vector<Multiplier> multipliers;
  ProductSizes sizes;
  /// But for architecture and image.
  CutlassKernel kernel;
  std::vector<Tensor> constants;
};

/// Layouts in which CUTLASS computes `function` without moving anything: images channels-last, matrices plain.
BoundaryLayouts NaturalLayouts(const collage::Function& function);

/// `function` is typed: a composite (its body is the match), or a partition whose body calls one. `layouts` are those
/// of the host's memory. The reason where CUTLASS does not compute it.
Result<Description> Describe(const collage::Function& function, const BoundaryLayouts& layouts, Precision precision);

}  // namespace collage::cutlass
