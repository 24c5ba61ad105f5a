// evolve.cc: the graph level of the paper: covers judged by what they take end to end.
#include <fmt/format.h>

#include <limits>

#include "collage/support/error.h"
#include "driver/compilation.h"
#include "driver/phases/cover_search_state.h"
#include "support/machine.h"

namespace collage {

void Compilation::Evolve(CoverSearchState& search, FoundCovers& found) {
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
    found.covers.push_back({"collage-evolved" + number, false, evolved.covers[i]});
  }
}

/// Checked and timed alone; infinite when it cannot be run, or time is up.
double Compilation::SecondsEndToEnd(const Partitioner& partitioner, const Cover& cover) const {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kTimedSeconds = 1;
  std::optional<IRModule> partitioned = partitioner.Apply(partitioner.ChosenOf(cover), module_);
  if (!partitioned || (options_.should_stop && options_.should_stop())) return kInfinity;
  PlayOffOptions play_off = PlayOffSettings();
  play_off.first_seconds = kTimedSeconds;
  try {
    const std::vector<ContenderModule> one{{"individual", false, false, std::move(*partitioned), cover.seconds, ""}};
    return RunPlayOff(module_, one, *database_, ThisMachine().fingerprint, play_off, nullptr).contenders[0].p50;
  } catch (const Error& error) {
    if (error.category() == ErrorCategory::kUnsupported) return kInfinity;
    throw;
  }
}

}  // namespace collage
