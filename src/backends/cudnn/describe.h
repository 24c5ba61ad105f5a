// describe.h: reads a matched sub-graph as a graph of cuDNN's operations.
#pragma once

#include <vector>

#include "backends/cudnn/graph.h"
#include "collage/ir/expr.h"
#include "collage/support/result.h"
#include "collage/target/toolchain.h"

namespace collage::cudnn {

struct Description {
  Graph graph;
  std::vector<Tensor> constants;
};

/// Liberties that a plan may take, beyond another order of sums.
struct Precision {
  bool allows_tf32 = false;  ///< float32 factors may be rounded to TF32
  bool is_exact = false;     ///< no algorithms with fewer products than the definition has
};

/// `function` is typed: a composite (its body is the match), or a partition whose body calls one. `layouts` are those
/// of the host's memory. The reason where cuDNN does not compute it.
Result<Description> Describe(const Function& function, const BoundaryLayouts& layouts, Precision precision);

/// Whether cuDNN computes `graph` on images whose channels do not lie innermost.
bool TakesPlainImages(const Graph& graph);
/// Whether the library may round factors of `graph`, products of float32, to TF32.
bool HasFactorsToRound(const Graph& graph);

}  // namespace collage::cudnn
