// compiled_store.h: compiled partitions by their content, kept in files, so that the workers of one compilation compile
// each once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "collage/target/toolchain.h"
#include "support/file_cache.h"

namespace collage {

/// Keeps partitions of any toolchain that measurements compiled, for the play-off and other workers. A partition is
/// found by its function (constants included), layouts, number of threads, schedule, and the toolchain with its
/// options; the toolchain's version is no part of the key, so a store is for one run. Like every FileCache it never
/// fails: a partition that cannot be kept or read is compiled again.
class CompiledStore {
 public:
  /// Makes `folder`. Removes the least recently used partitions if more than `max_bytes` gather.
  explicit CompiledStore(const std::filesystem::path& folder, int64_t max_bytes = int64_t{1} << 30);
  virtual ~CompiledStore() = default;

  /// Returns the name by which a partition is found.
  static std::string NameOf(const Toolchain& toolchain, const PartitionRequest& request);

  virtual std::optional<CompiledPartition> Find(const Toolchain& toolchain, const PartitionRequest& request) const;
  /// Why a partition that is not found is not to be compiled; nothing unless this holds all that there is to be.
  virtual std::optional<Reason> WhyNot(const Toolchain&, const PartitionRequest&) const { return std::nullopt; }
  /// A partition that differs from `request` at most by the values of its constants that are tensors: for
  /// Toolchain::UpdateConstants.
  virtual std::optional<CompiledPartition> FindLike(const Toolchain& toolchain, const PartitionRequest& request) const;
  virtual void Put(const Toolchain& toolchain, const PartitionRequest& request, const CompiledPartition& compiled);

  /// Returns the name that a partition shares with those that differ from it at most by the values of constants that
  /// are tensors.
  static std::string StructureOf(const Toolchain& toolchain, const PartitionRequest& request);
  /// Notes that a kernel of this structure was tried (cost/measure/kernel_trial.h) and is right.
  void MarkTried(const Toolchain& toolchain, const PartitionRequest& request);
  bool WasTried(const Toolchain& toolchain, const PartitionRequest& request) const;

 private:
  FileCache files_;
};

}  // namespace collage
