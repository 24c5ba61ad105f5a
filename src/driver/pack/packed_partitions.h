// packed_partitions.h: a pack as the measuring code sees it: candidates by handles, and a store of what they were
// compiled to.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cost/runner/candidate_source.h"
#include "driver/pack/measuring_pack.h"
#include "lowering/compiled_store.h"
#include "target/toolchain_configuration.h"

namespace collage {

/// The partitions of a pack; handles are their indices. The pack must outlive it.
class PackedPartitions : public CandidateSource {
 public:
  explicit PackedPartitions(const MeasuringPack& pack);

  std::pair<PartitionRequest, const Toolchain*> Find(CandidateHandle candidate) const override;
  std::pair<const DataflowGraph&, const SubGraph&> FindSubGraph(CandidateHandle candidate) const override;
  /// Null where this build has none of that name. By the toolchain's index in the pack.
  const Toolchain* ToolchainAt(int number) const { return toolchains_.at(static_cast<size_t>(number)); }

 private:
  const MeasuringPack& pack_;
  ConfiguredToolchains configured_;
  std::vector<const Toolchain*> toolchains_;
};

/// Finds what a pack holds; there is nothing else, so that no toolchain is asked to compile. The pack must outlive it.
class PackedStore : public CompiledStore {
 public:
  PackedStore(const MeasuringPack& pack, const PackedPartitions& partitions);

  std::optional<CompiledPartition> Find(const Toolchain& toolchain, const PartitionRequest& request) const override;
  std::optional<Reason> WhyNot(const Toolchain& toolchain, const PartitionRequest& request) const override;
  std::optional<CompiledPartition> FindLike(const Toolchain&, const PartitionRequest&) const override { return {}; }
  void Put(const Toolchain&, const PartitionRequest&, const CompiledPartition&) override {}

 private:
  const MeasuringPack& pack_;
  std::map<std::string, size_t> places_;         ///< by name
  std::map<std::string, std::string> failures_;  ///< by name
};

}  // namespace collage
