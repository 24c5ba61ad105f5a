// lower.h: a partitioned module becomes an execution plan: kernels in order, values with their places, one arena.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "collage/ir/module.h"
#include "collage/runtime/executable.h"
#include "collage/target/toolchain.h"
#include "lowering/compiled_store.h"
#include "lowering/partition_dump.h"
#include "target/annotations.h"
#include "target/toolchain_configuration.h"

namespace collage {

/// Compiles partitions, each distinct one (function, constants included, and layouts) once. Partitions that differ only
/// by constant tensors are compiled once by toolchains with UpdateConstants.
class PartitionCache {
 public:
  /// `store`, if it is not null, is asked before a toolchain is, and gets what it compiles. It must outlive this.
  explicit PartitionCache(const ToolchainRegistry& toolchains, CompiledStore* store = nullptr)
      : toolchains_(toolchains), configured_(toolchains), store_(store) {}

  /// Called before each partition that is compiled: how long all take depends on how many there are.
  void OnCompile(std::function<void()> on_compile) { on_compile_ = std::move(on_compile); }

  /// Null when there is none of that name or configuration.
  const Toolchain* Find(const std::string& toolchain);

  /// `toolchain`: a name, or a configuration's text (target/toolchain_configuration.h); empty for the native one.
  /// Throws kUnsupported with the toolchain's reason when it declines.
  std::shared_ptr<const CompiledPartition> Compile(const std::string& toolchain, const PartitionRequest& request);

 private:
  using Shared = std::shared_ptr<const CompiledPartition>;
  /// Made of `like`, one of the same structure, or of one in the store; null where that cannot be.
  Shared Update(const Toolchain& compiler, const PartitionRequest& request, const Shared& like) const;

  const ToolchainRegistry& toolchains_;
  ConfiguredToolchains configured_;
  CompiledStore* store_;
  std::function<void()> on_compile_;
  std::map<std::string, Shared> compiled_;
  /// One of each structure, where it serves others.
  std::map<std::string, Shared> by_structure_;
};

/// A partition of a module, as it is compiled.
struct ModulePartition {
  std::string toolchain;  ///< as PartitionCache::Compile takes it
  PartitionRequest request;
};

/// `function`, a partition of a module, as `Lower` compiles it.
ModulePartition AsLowered(const Function& function, int num_threads);
/// The partitions of `@main` in the order in which `Lower` compiles them.
std::vector<ModulePartition> PartitionsOf(const IRModule& module, int num_threads);

/// Compiles every partition of `@main` and plans its execution.
///
/// `@main` must be typed and static, and hold only calls of Primitive functions, tuples, projections, constants and
/// operators that are reshapes (which become aliases) or only say where a value is. A value that is wanted in another
/// layout than it has gets one conversion, or a copy to another memory. Inputs and results are the host's. Graph
/// results are written in place by their producers wherever possible.
///
/// `dump`, if it is not null, gets every partition.
ExecutionPlan Lower(const IRModule& module, int num_threads, PartitionCache& cache, PartitionDump* dump = nullptr);

}  // namespace collage
