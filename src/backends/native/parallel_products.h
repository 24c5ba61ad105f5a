// parallel_products.h: products and convolutions of one value by constant weights, as one by all of their weights.
#pragma once

#include <vector>

#include "collage/ir/expr.h"
#include "dataflow/dataflow_graph.h"

namespace collage::native {

/// Returns a partition for each value that several products of one kind read, such as attention's queries, keys and
/// values: all of these products, each with the operators that FuseOps would put behind it or, where that leaves a way
/// out and back in, without them.
std::vector<std::vector<Expr>> ParallelProducts(const DataflowGraph& graph);

/// Returns `function` with one product in place of those that read one value: its weights are all of theirs, side by
/// side, and each of their results is a slice of its own. Operators that follow all of them alike follow the one.
Function JoinParallelProducts(const Function& function);

}  // namespace collage::native
