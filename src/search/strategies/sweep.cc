// sweep.cc: one pass over the states.
#include "search/strategies/sweep.h"

#include <algorithm>

namespace collage {
namespace {

// Sums of the same costs in different orders differ by less than this share.
constexpr double kRounding = 1e-9;

/// A state by what it covers, then by cost.
struct Ranked {
  int beyond;
  double seconds;
  int state;
  auto operator<=>(const Ranked&) const = default;
};

}  // namespace

Sweep::Sweep(SearchSpace& space, const CostBook& book, RemainingBound* bound, const SweepOptions& options)
    : space_(space),
      book_(book),
      bound_(bound),
      options_(options),
      paths_(space.problem(), options.num_covers),
      at_(space.problem().num_positions + 1) {}

std::vector<Cover> Sweep::Run() {
  const int start = StateAt(space_.Start());
  states_[start].best = {BestPaths::kStart};
  for (Position position : space_.problem().positions()) {
    Layer layer = std::move(at_[position]);
    Prune(layer.states);
    for (int state : layer.states) Expand(state);
  }
  std::vector<Cover> covers;
  for (int state : at_.back().states) {  // one, if any: nothing is left to tell states apart
    for (int path : states_[state].best) covers.push_back(paths_.CoverOf(path, book_));
    least_seconds_ = std::min(least_seconds_, SecondsOf(state));
  }
  return covers;
}

int Sweep::StateAt(const SearchState& key) {
  Layer& layer = at_[key.next];
  const auto is_equal = [&](int state) { return states_[state].key == key; };
  const auto [number, is_new] =
      layer.numbers.Emplace(SearchStateHash{}(key), static_cast<int>(states_.size()), is_equal);
  if (is_new) {
    states_.push_back({key, {}});
    layer.states.push_back(number);
  }
  return number;
}

double Sweep::Estimate(int state) {
  const double rest = bound_ == nullptr ? 0 : bound_->Seconds(states_[state].key, space_);
  return SecondsOf(state) + rest;
}

void Sweep::Prune(std::vector<int>& states) {
  const double limit = options_.limit * (1 + kRounding);
  if (bound_ != nullptr) {
    std::erase_if(states, [&](int state) {
      const double estimate = Estimate(state);
      if (estimate <= limit) return false;
      least_seconds_ = std::min(least_seconds_, estimate);
      return true;
    });
  }
  PruneDominated(states);
  if (options_.beam <= 0 || std::ssize(states) <= options_.beam) return;
  std::vector<std::pair<double, int>> ranked;
  for (int state : states) ranked.emplace_back(Estimate(state), state);
  std::sort(ranked.begin(), ranked.end());
  num_dropped_ += static_cast<int64_t>(ranked.size()) - options_.beam;
  least_seconds_ = std::min(least_seconds_, ranked[static_cast<size_t>(options_.beam)].first);
  ranked.resize(options_.beam);
  states.clear();
  for (const auto& [_, state] : ranked) states.push_back(state);
}

/// Drops states if, among those that cover the same, as many paths as covers are wanted beat them even after making all
/// their formats.
void Sweep::PruneDominated(std::vector<int>& states) {
  if (states.size() < 2) return;
  std::vector<Ranked> ranked;
  ranked.reserve(states.size());
  for (int state : states) ranked.push_back({states_[state].key.beyond, SecondsOf(state), state});
  std::sort(ranked.begin(), ranked.end());
  states.clear();
  std::vector<int> kept;  // of those that cover the same so far
  for (size_t r = 0; r < ranked.size(); ++r) {
    if (r > 0 && ranked[r].beyond != ranked[r - 1].beyond) kept.clear();
    const int state = ranked[r].state;
    int num_better = 0;
    for (size_t i = 0; i < kept.size() && num_better < options_.num_covers; ++i) {
      const State& better = states_[kept[i]];
      const double most = SecondsOf(state) - SecondsOf(kept[i]);
      const double match = space_.SecondsToMatch(better.key, states_[state].key, most);
      for (int path : better.best) {
        num_better += (paths_.SecondsOf(path) + match) * (1 + kRounding) < SecondsOf(state) ? 1 : 0;
      }
    }
    if (num_better >= options_.num_covers) continue;
    kept.push_back(state);
    states.push_back(state);
  }
  std::sort(states.begin(), states.end());
}

void Sweep::Expand(int from) {
  const SearchState key = states_[from].key;
  before_ = states_[from].best;
  const bool any = space_.ForEachStep(key, book_, [&](VariantIndex variant, const SearchSpace::Step& step) {
    const int target = StateAt(step.to);
    const double seconds = book_.Seconds(variant) + step.penalty;
    for (int path : before_) {
      paths_.Insert(states_[target].best, path, variant, paths_.SecondsOf(path) + seconds, step.to.next);
    }
  });
  if (!any) dead_ends_.push_back(key.next);
}

}  // namespace collage
