// reshape_pattern.h: a reshape to symbolic sizes, as graph formats say it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "collage/ir/type.h"

namespace collage {

/// Sizes of a reshape's result by their places, as ONNX's Reshape has them: 0 copies the input's dimension of that
/// place, -1, at most once, stands for a size that follows from the others.
struct ReshapePattern {
  /// The input's dimension `dim` is the size: only the shape of the input tells it.
  static constexpr int64_t kFromShape = -2;
  std::vector<int64_t> sizes;
  std::vector<int> dims;  ///< by place: where sizes are kFromShape

  bool needs_shape() const;
};

/// Returns the pattern of a reshape from dimensions `from` to `to`; nothing where sizes do not follow from the input's.
/// Dimensions are copies where `codes`, those of the attribute `newshape` of reshape or none, say so, or where their
/// symbols do.
std::optional<ReshapePattern> FindReshapePattern(const std::vector<Dim>& from, const std::vector<Dim>& to,
                                                 const std::vector<int64_t>& codes);

}  // namespace collage
