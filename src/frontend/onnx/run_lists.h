// run_lists.h: operands that say how something is shaped, and that each run has anew.
#pragma once

#include "frontend/onnx/importer.h"

namespace collage {

/// Whether input `i` is a list of a known number of integers that is an input of the model, or computed of data.
inline bool IsListOfRun(const NodeContext& node, size_t i) {
  return node.HasInput(i) && !node.IsConstant(i) && !node.IsComputedFromSizes(i) && node.Rank(node.Input(i)) == 1 &&
         node.IsStatic(node.Input(i));
}

/// Whether input `i` has its numbers only in a run: they are computed of sizes, or a list of the run.
inline bool IsOfRun(const NodeContext& node, size_t i) {
  return (!node.IsConstant(i) && node.IsComputedFromSizes(i)) || IsListOfRun(node, i);
}

}  // namespace collage
