// regions.h: what compiler_begin and compiler_end enclose.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "collage/ir/expr.h"

namespace collage {

inline constexpr const char* kCompilerBegin = "annotation.compiler_begin";
inline constexpr const char* kCompilerEnd = "annotation.compiler_end";

/// A call of compiler_begin or compiler_end with `compiler`, around `value`.
Expr CompilerBegin(const Expr& value, const std::string& compiler);
Expr CompilerEnd(const Expr& value, const std::string& compiler);
/// The toolchain that a call of compiler_begin or compiler_end names.
const std::string& CompilerOf(const Expr& annotation);

/// Nodes that belong to one toolchain, between begins and ends. Constants and operators belong to none.
struct Region {
  std::string compiler;
  std::vector<Expr> nodes;    ///< in post-order
  std::vector<Expr> inputs;   ///< the calls of compiler_begin, in post-order
  std::vector<Expr> outputs;  ///< the calls of compiler_end, in post-order
};

/// The regions of `root`, functions within it included, each whole: nodes that feed each other directly share one.
/// Ordered by their last node. Throws kInput when toolchains' annotations do not pair.
std::vector<Region> FindRegions(const Expr& root);

}  // namespace collage
