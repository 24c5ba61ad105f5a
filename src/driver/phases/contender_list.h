// contender_list.h: the covers of one form of a model that meet in the play-off, each once.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "driver/covers/cover_portfolio.h"
#include "driver/covers/partitioner.h"
#include "driver/play_off/play_off.h"

namespace collage {

/// A choice of partitions that may not be candidates.
struct NamedPartitions {
  std::string name;
  OwnedPartitions partitions;
};

/// Contenders whose partitions differ: of equal covers the first is built and timed, and has the others' baselines,
/// too.
class ContenderList {
 public:
  /// All must outlive this. `module` is the one whose @main `partitioner` covers.
  ContenderList(Partitioner& partitioner, const IRModule& module) : partitioner_(partitioner), module_(module) {}

  /// Adds a cover, with neighbours merged where it says so, unless its partitions need each other in a circle.
  /// `is_extra`: no search chose it. A mix that is a single toolchain's cover goes by the toolchain's name.
  void Add(const NamedCover& one, bool is_extra = false);

  /// Adds partitions that one toolchain's passes made, which can be run one after the other.
  void AddBaseline(const NamedPartitions& one);

  /// Adds `cover` with neighbours merged (CoalescedForLibraries); false, and adds nothing, if that does not change it.
  /// A merged partition was not measured: what it takes, the play-off finds out.
  bool AddCoalesced(const std::string& name, const Cover& cover);

  /// Adds a partitioning that the user gave. A mix that is the same goes by its name.
  void AddGiven(ContenderModule given);

  const std::vector<ContenderModule>& contenders() const { return contenders_; }

 private:
  ContenderModule* AddModule(ContenderModule one);

  Partitioner& partitioner_;
  const IRModule& module_;
  std::vector<ContenderModule> contenders_;
  std::vector<std::string> keys_;  ///< digests of the first contenders' partitions
  std::map<std::vector<VariantIndex>, size_t> seen_;
};

}  // namespace collage
