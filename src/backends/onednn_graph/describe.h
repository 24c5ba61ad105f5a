// describe.h: partitions as graphs, and the library's own partitions of a function.
#pragma once

#include <string>
#include <vector>

#include "backends/onednn_graph/spec.h"
#include "collage/ir/expr.h"
#include "collage/support/result.h"
#include "collage/target/toolchain.h"

namespace collage::onednn_graph {

/// A partition as a graph, with the constants that its tensors name.
struct Description {
  GraphSpec spec;
  std::vector<Tensor> constants;
};

/// Why not, in the words of the operator's row.
Result<Description> Describe(const Function& function, const BoundaryLayouts& layouts);

/// Whether the library has an operation for `call`.
Result<void> Supports(const CallNode& call);

/// A function as a graph that has gaps where the library has nothing, and which calls each operation computes.
struct WholeDescription {
  GraphSpec spec;
  std::vector<std::vector<Call>> calls;
};
Result<WholeDescription> DescribeWhole(const Function& function);

/// The calls and tuples of a partition that computes `calls` of `function`: with the reshapes and tuples between them.
std::vector<Expr> WithWhatIsBetween(const Function& function, const std::vector<Call>& calls);

}  // namespace collage::onednn_graph
