// evolve.cc: the graph level of the paper ("Collage", section 4.3): who computes what evolves, partitions of one
// library that touch become one, beyond all candidates, and whole models are timed.
#include <fmt/format.h>

#include <limits>

#include "collage/support/error.h"
#include "driver/compilation.h"
#include "driver/covers/coalesced_cover.h"
#include "driver/phases/cover_search_state.h"
#include "support/machine.h"

namespace collage {

void Compilation::EvolveGraphLevel(CoverSearchState& search, FoundCovers& found) {
  Phase("evolution");
  SearchOptions options{.strategy = options_.search, .num_covers = options_.num_covers};
  options.evolution.budget_seconds = options_.evolution_seconds;
  options.evolution.population = options_.evolution_population;
  options.evolution.seed = options_.evolution_seed;
  options.fitness = [&](const Cover& cover) {
    search.estimator.CheckComplete();  // before anything is built
    return SecondsEndToEnd(search.partitioner, cover);
  };
  const SearchResult evolved = search.partitioner.Search(search.portfolio.IsEager(), options);
  found.num_states += evolved.num_states;
  for (size_t i = 0; i < evolved.covers.size(); ++i) {
    const std::string number = i == 0 ? "" : fmt::format("-{}", i + 1);
    found.covers.push_back({kEvolvedCover + number, false, evolved.covers[i], /*is_baseline=*/false, /*merges=*/true});
  }
}

/// The time of a cover with neighbours merged, checked and timed alone; infinite if it cannot be run, or time is up. A
/// library takes merged partitions as a whole, or the parts stay as they are; results that are wrong rule it out.
double Compilation::SecondsEndToEnd(const Partitioner& partitioner, const Cover& cover) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kTimedSeconds = 1;
  const OwnedPartitions merged = CoalescedForLibraries(partitioner, cover);
  std::optional<IRModule> partitioned = partitioner.Apply(merged.chosen, module_);
  if (!partitioned || IsStopped()) return kInfinity;
  PlayOffOptions play_off = PlayOffSettings();
  play_off.first_seconds = kTimedSeconds;
  play_off.check = Reference();
  try {
    const std::vector<ContenderModule> one{{"individual", false, false, std::move(*partitioned), cover.seconds, ""}};
    return RunPlayOff(module_, one, *database_, ThisMachine().fingerprint, play_off, nullptr).contenders[0].p50;
  } catch (const Error& error) {
    if (error.category() == ErrorCategory::kUnsupported) return kInfinity;
    throw;
  }
}

}  // namespace collage
