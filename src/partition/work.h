// work.h: what a partition has to do, whatever computes it: products to add up and bytes to move.
#pragma once

#include <string>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/target/boundary_layouts.h"

namespace collage {

/// Work of a partition, independent of its implementation.
struct Work {
  double multiply_adds = 0;   ///< float32 ones; those of narrower types count less, as processors do more at once
  double constant_bytes = 0;  ///< weights, each read once
  double boundary_bytes = 0;  ///< inputs read and outputs written, each once
  bool rounds = false;        ///< to integers: results are judged by what that leaves open
  double spared = 0;          ///< multiply_adds that an algorithm with accuracy "standard" may save
  double products = 0;        ///< products that are added up, of all types alike
};

/// Returns the work of a closed, typed function of static shapes, with boundary values stored as their types say.
Work WorkOf(const Function& function);
/// Returns the work with boundary values stored as `layouts` says.
Work WorkOf(const Function& function, const BoundaryLayouts& layouts);

/// Returns the same work with float32 values computed, and weights stored, in a 16-bit type.
Work InLowerPrecision(Work work);

/// Returns the products of each of `nodes`, names of the model's nodes in `function`; nothing if there are no products.
std::vector<double> ProductsOfNodes(const Function& function, const std::vector<std::string>& nodes);

}  // namespace collage
