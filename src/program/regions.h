// regions.h: the parts of a program that a plan can run. Control flow, closures, data and dynamic shapes are left to
// the virtual machine; pure dataflow of static tensors between them is a model of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "collage/ir/module.h"

namespace collage {

/// A module with its regions as calls of Primitive functions without Compiler, which have no free variables.
struct ProgramRegions {
  IRModule module;
  std::vector<Function> regions;       ///< as they are in `module`, typed
  std::vector<std::string> functions;  ///< by region: the global function that it is in
};

/// A toolchain that compiles functions of symbolic sizes (collage/target/symbolic_sizes.h).
struct SymbolicSizes {
  std::string toolchain;                            ///< its name; empty: there is none
  std::function<bool(const CallNode& call)> takes;  ///< calls with a dimension `?`
  /// Calls of static types, for those that compute sizes: empty: operators that take shapes, or are told sizes, stay
  /// outside.
  std::function<bool(const CallNode& call)> takes_static = {};
};

/// The calls that the toolchain for dynamic shapes takes; empty functions: none.
struct DynamicShapes {
  std::function<bool(const CallNode& call)> takes;          ///< calls with a dimension `?`
  std::function<bool(const CallNode& call)> takes_one_row;  ///< calls with a batch of one row
  SymbolicSizes symbolic = {};                              ///< gets the largest sub-graphs that it takes
};

/// Whether a Primitive function that FindRegions made has operators on dynamic shapes, and is no region. Attribute
/// Compiler names the toolchain of a symbolic one.
bool IsDynamicFusion(const FunctionNode& function);

/// A tensor of this many elements is about as much work as a kernel's fixed cost.
inline constexpr int64_t kFewElements = 16;

/// Whether `module` is more than a plan can run: several functions, control flow, closures, data, references, tensors
/// of dynamic shapes, or operators that draw random numbers.
bool IsProgram(const IRModule& module);

/// Takes out of every function, inner ones included, the largest static graphs (RFC 0.81, "DataflowGraph", basic
/// blocks): operators in one basic block whose arguments and results are tensors of known shapes, such that no path
/// between two of them leaves the region. Regions that only move around a few numbers, such as a loop's counter, are
/// left alone: those without a result of more than `few_elements`.
/// Needs a typed module; works on its graph normal form (ToGraphNormalForm).
///
/// Calls that `dynamic` takes become Primitive functions, too, which are not among the regions: a function for each of
/// the largest sub-graphs of a toolchain for symbolic sizes, which come first, one for each dynamic fusion
/// (program/dynamic_fusion.h), and one with attribute `rows` for batch-parallel operators (program/batch_analysis.h),
/// if some of these take static batches only.
ProgramRegions FindRegions(IRModule module, int64_t few_elements = kFewElements, const DynamicShapes& dynamic = {});

}  // namespace collage
