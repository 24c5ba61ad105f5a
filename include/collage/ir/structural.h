// structural.h: equality and digests of expressions up to the names of variables.
#pragma once

#include <string>

#include "collage/ir/expr.h"

namespace collage {

struct StructuralHashOptions {
  /// Constants count by dtype and shape only, rank-0 ones by value: what timings depend on (tuning keys).
  bool constants_by_shape = false;
};

/// 32 hexadecimal digits. Equal for expressions that differ in variable names, spans and node identity only; sharing
/// counts (computing a thing twice is another program), except that of scalars and names, which are what they say.
/// Linear in the number of nodes (and bytes of constants).
std::string StructuralHash(const Expr& expr, const StructuralHashOptions& options = {});

/// Whether two expressions have the same structure, sharing and constants included.
bool StructuralEqual(const Expr& a, const Expr& b);

}  // namespace collage
