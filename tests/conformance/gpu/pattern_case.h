// pattern_case.h: matches of rows of pattern tables of toolchains for GPUs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/target/toolchain.h"

namespace collage {

struct PatternCase {
  std::string pattern;  ///< the row's name without the toolchain's
  std::vector<Var> params;
  Expr body;

  /// Typed.
  Function function() const;
};

/// Layouts that `toolchain` offers where all images may lie channels-last.
std::vector<BoundaryLayouts> LayoutsOf(const Toolchain& toolchain, const Function& function);

/// Checks each of `cases` with `toolchain`, in each layout that it offers for it.
void ExpectCasesAgree(const Toolchain& toolchain, const std::vector<PatternCase>& cases, double tolerance = 1e-4);

/// A function that may follow an operation, and how names of rows with it end.
struct NamedFunction {
  const char* suffix;
  std::function<Expr(const Expr&)> apply;
};

/// Functions of values of `dtype`, as operators and as exporters write them out.
std::vector<NamedFunction> FunctionsBehind(DataType dtype);

Shape ShapeOf(const Expr& expr);

}  // namespace collage
