// cudnn_cases.h: matches of the rows of cuDNN's pattern table, some with odd sizes.
#pragma once

#include <string>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/target/toolchain.h"

namespace collage {

struct CudnnCase {
  std::string pattern;  ///< the row's name without "cudnn."
  std::vector<Var> params;
  Expr body;

  /// Typed.
  Function function() const;
};

/// At least one for each row.
std::vector<CudnnCase> CudnnCases(DataType dtype);

/// Layouts that `toolchain` offers where all images may lie channels-last.
std::vector<BoundaryLayouts> LayoutsOf(const Toolchain& toolchain, const Function& function);

}  // namespace collage
