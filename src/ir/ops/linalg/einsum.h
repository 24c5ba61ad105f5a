// einsum.h: an einsum's equation taken apart.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "collage/ir/type.h"

namespace collage {

/// "ij,jk->ik" as labels: one string per term, a character per dimension. Dimensions that an ellipsis stands for have
/// the labels '0', '1', … in order from the last.
struct Einsum {
  std::vector<std::string> inputs;
  std::string output;

  /// `ranks`: of the tensors. Throws a RelationFailure (ir/ops/relations.h) where they do not fit.
  Einsum(const std::string& equation, const std::vector<int>& ranks);

  /// The size of each label; sizes of 1 broadcast.
  std::map<char, Dim> Sizes(const std::vector<std::vector<Dim>>& shapes) const;
};

}  // namespace collage
