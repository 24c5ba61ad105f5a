// describe.h: reads a matched sub-graph as one XNNPACK operator.
#pragma once

#include <vector>

#include "backends/xnnpack/spec.h"
#include "collage/ir/expr.h"
#include "collage/support/result.h"
#include "collage/target/toolchain.h"

namespace collage::xnnpack_toolchain {

struct Description {
  Operation operation;
  std::vector<Tensor> constants;
};

/// `function` is typed: a composite (its body is the match), or a partition whose body calls one composite. The reason
/// when it is not what one operator computes on operands in these layouts.
Result<Description> Describe(const Function& function, const BoundaryLayouts& layouts);

/// Whether some layouts of the boundaries will do: for predicates.
Result<void> CheckComposite(const Function& composite);

}  // namespace collage::xnnpack_toolchain
