// packed_partitions.cc: looks up by handle, and by what a compiler would see.
#include "driver/pack/packed_partitions.h"

#include "collage/support/error.h"

namespace collage {

PackedPartitions::PackedPartitions(const MeasuringPack& pack) : pack_(pack), configured_(ToolchainRegistry::Global()) {
  for (const PackedToolchain& toolchain : pack.toolchains) {
    try {
      toolchains_.push_back(configured_.Find(toolchain.name));
    } catch (const Error&) {  // an option that it has not
      toolchains_.push_back(nullptr);
    }
  }
}

std::pair<PartitionRequest, const Toolchain*> PackedPartitions::Find(CandidateHandle candidate) const {
  const PackedPartition& partition = pack_.partitions.at(static_cast<size_t>(candidate.number));
  return {partition.request, ToolchainAt(partition.toolchain)};
}

std::pair<const DataflowGraph&, const SubGraph&> PackedPartitions::FindSubGraph(CandidateHandle) const {
  throw Error(ErrorCategory::kInternal, "partitions of a measuring pack have no graph");
}

PackedStore::PackedStore(const MeasuringPack& pack, const PackedPartitions& partitions)
    : CompiledStore(std::filesystem::path()), pack_(pack) {
  for (size_t i = 0; i < pack.compiled_names.size(); ++i) places_.emplace(pack.compiled_names[i], i);
  for (const PackedPartition& partition : pack.partitions) {
    const Toolchain* toolchain = partitions.ToolchainAt(partition.toolchain);
    for (const PackedCode& code : partition.codes) {
      if (code.compiled >= 0 || toolchain == nullptr) continue;
      PartitionRequest request = partition.request;
      request.schedule = code.schedule;
      failures_.emplace(NameOf(*toolchain, request), code.failure);
    }
  }
}

std::optional<CompiledPartition> PackedStore::Find(const Toolchain& toolchain, const PartitionRequest& request) const {
  const auto it = places_.find(NameOf(toolchain, request));
  if (it == places_.end()) return std::nullopt;
  return pack_.compiled[it->second];
}

std::optional<Reason> PackedStore::WhyNot(const Toolchain& toolchain, const PartitionRequest& request) const {
  const auto it = failures_.find(NameOf(toolchain, request));
  return Reason{it == failures_.end() ? "declined: the measuring pack has no code for it" : it->second,
                toolchain.name()};
}

}  // namespace collage
