// lower.h: a partitioned module becomes an execution plan: kernels in order, values with their places, one arena.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "collage/ir/module.h"
#include "collage/target/toolchain.h"
#include "collage/runtime/executable.h"

namespace collage {

// Function attributes by which a partitioned module says how a partition is to be compiled (beside the RFC's Primitive,
// Compiler, Composite and global_symbol).
inline constexpr const char* kAttrPrimitive = "Primitive";
inline constexpr const char* kAttrCompiler = "Compiler";            ///< absent: the native toolchain
inline constexpr const char* kAttrInputLayouts = "input_layouts";    ///< list of strings; absent: all plain
inline constexpr const char* kAttrOutputLayouts = "output_layouts";
inline constexpr const char* kAttrEstimate = "estimated_seconds";

/// Compiles partitions, each distinct one (function, constants included, and layouts) once.
class PartitionCache {
 public:
  explicit PartitionCache(const ToolchainRegistry& toolchains) : toolchains_(toolchains) {}

  /// Throws kUnsupported with the toolchain's reason when it declines.
  std::shared_ptr<const CompiledPartition> Compile(const std::string& toolchain, const PartitionRequest& request);

 private:
  const ToolchainRegistry& toolchains_;
  std::map<std::string, std::shared_ptr<const CompiledPartition>> compiled_;
};

/// The layouts that `partition` was annotated with; all plain where it was not.
BoundaryLayouts LayoutsOf(const Function& partition);
/// `partition` annotated with `layouts`.
Function WithLayouts(const Function& partition, const BoundaryLayouts& layouts);

/// Compiles every partition of `@main` and plans its execution.
///
/// `@main` must be typed and static, and hold only calls of Primitive functions, tuples, projections, constants and
/// operators that are reshapes (which become aliases). A value that is wanted in another layout than it has gets one
/// conversion. Graph results are written in place by their producers wherever possible.
ExecutionPlan Lower(const IRModule& module, int num_threads, PartitionCache& cache);

}  // namespace collage
