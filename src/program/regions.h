// regions.h: the parts of a program that a plan can run. What has control flow, closures, data or unknown shapes is
// left to the virtual machine; what is pure dataflow of static tensors between is a model of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "collage/ir/module.h"

namespace collage {

/// A module with its regions as calls of Primitive functions without Compiler, which have no free variables.
struct ProgramRegions {
  IRModule module;
  std::vector<Function> regions;  ///< as they are in `module`, typed
};

/// What the toolchain takes that compiles operators on tensors of unknown shapes; empty functions: nothing.
struct DynamicShapes {
  std::function<bool(const CallNode& call)> takes;          ///< calls with such
  std::function<bool(const CallNode& call)> takes_one_row;  ///< calls with one row where they had a batch
};

/// Whether a Primitive function that FindRegions made is none of the regions, but operators of unknown shapes.
bool IsDynamicFusion(const FunctionNode& function);

/// A tensor of this many elements is about as much work as a kernel's fixed cost.
inline constexpr int64_t kFewElements = 16;

/// Whether `module` is more than a plan can run: several functions, control flow, closures, data, references, or
/// tensors whose shapes are not known.
bool IsProgram(const IRModule& module);

/// Takes out of every function, inner ones included, the largest regions of dataflow (RFC 0.81, "DataflowGraph", basic
/// blocks): operators in one basic block whose arguments and results are tensors of known shapes, such that no path
/// between two of them leaves the region. Regions that only move around a few numbers, such as a loop's counter, are
/// left alone: those without a result of more than `few_elements`.
/// Needs a typed module; works on what ToGraphNormalForm makes of it.
///
/// Calls that `unknown` takes become calls of Primitive functions, too, which are not among the regions: groups of them
/// for one kernel each (program/dynamic_fusion.h), and as a whole what computes the rows of a batch one by one
/// (program/batch_analysis.h), with attribute `rows`, where some of it only takes a batch of known size.
ProgramRegions FindRegions(IRModule module, int64_t few_elements = kFewElements, const DynamicShapes& unknown = {});

}  // namespace collage
