// describe.h: reads a matched sub-graph as an instance of one of the programs.
#pragma once

#include <vector>

#include "backends/triton/instance.h"
#include "collage/ir/expr.h"
#include "collage/support/result.h"
#include "collage/target/toolchain.h"

namespace collage::triton {

/// Liberties that a kernel may take with factors of float32, beyond another order of sums.
struct Precision {
  bool allows_tf32 = false;  ///< they may be rounded to TF32
  bool is_exact = false;     ///< they may not be taken apart into two of TF32
};

struct Description {
  Instance instance;
  std::vector<Multiplier> multipliers;  ///< ways to compute products, the default first
  std::vector<Tensor> constants;
};

/// `function` is typed: a composite (its body is the match), or a partition whose body calls one. `layouts` are those
/// of the host's memory. The reason where Triton does not compute it.
Result<Description> Describe(const Function& function, const BoundaryLayouts& layouts, Precision precision);

}  // namespace collage::triton
