// describe.h: reads a matched sub-graph as one oneDNN primitive with post-ops.
#pragma once

#include <vector>

#include "backends/dnnl/spec.h"
#include "collage/ir/expr.h"
#include "collage/support/result.h"
#include "collage/target/toolchain.h"

namespace collage::dnnl_toolchain {

struct Description {
  Primitive primitive;
  std::vector<Tensor> constants;
};

/// `function` is typed: a composite (its body is the match), or a partition whose body calls one composite. The reason
/// when it is not what one primitive computes.
Result<Description> Describe(const Function& function, const BoundaryLayouts& layouts);

/// As above with float32 data multiplied as `precision`: a refusal where there are none.
Result<Description> DescribeIn(DataType precision, const Function& function, const BoundaryLayouts& layouts);

/// As Describe with all boundaries plain: for predicates.
Result<void> CheckComposite(const Function& composite);

/// As CheckComposite, and a tensor is combined with the result behind the anchor.
Result<void> CheckCombining(const Function& composite);

}  // namespace collage::dnnl_toolchain
