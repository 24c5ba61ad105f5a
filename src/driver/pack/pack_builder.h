// pack_builder.h: makes a measuring pack of the candidates of models, which it compiles.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "collage/compile.h"
#include "cost/runner/candidate_source.h"
#include "driver/covers/partitioner.h"
#include "driver/pack/measuring_pack.h"
#include "target/toolchain_configuration.h"
#include "worker/worker.h"

namespace collage {

/// Properties of a model that its pack holds beside the candidates.
struct PackedProperties {
  std::string name;
  int64_t footprint_bytes = 0;
  Work work;  ///< the whole model's
};

class PackBuilder {
 public:
  explicit PackBuilder(int num_threads);

  /// Adds the candidates of `partitioner`, one of each class, and the conversions that a search may ask it for.
  void Add(const PackedProperties& model, Partitioner& partitioner, const CompileOptions& options);

  /// Adds a play-off, and the partitions of its contenders.
  void AddPlayOff(PackedPlayOff play_off);

  /// How many schedules near a toolchain's own choice are compiled for each partition, at most.
  struct Limits {
    int max_schedules = 0;
    WorkerLimits worker;
  };
  /// Compiles all partitions, in a worker. Runs nothing of what it compiles. `progress` may be null.
  void Compile(const Limits& limits, CompileProgress* progress);

  const MeasuringPack& pack() const { return pack_; }

 private:
  int NumberOf(const Toolchain& toolchain);
  /// `name`: the same for partitions that are compiled once.
  int AddPartition(const std::string& name, const PartitionRequest& request, const Toolchain& toolchain);
  void AddConversions(Partitioner& partitioner, PackedModel& model);
  void AddCallsOf(const Toolchain& toolchain);

  MeasuringPack pack_;
  ConfiguredToolchains configured_;
  std::vector<const Toolchain*> toolchains_;  ///< made by `configured_`, parallel to those of the pack
  std::map<std::tuple<std::string, std::string, int>, int> numbers_;  ///< (name, layouts, toolchain) → partition
  std::vector<std::pair<PartitionRequest, int>> calls_;  ///< partitions that probes and switches run, by toolchains
};

}  // namespace collage
