// sweep.cc: one pass over the states.
#include "search/sweep.h"

#include <algorithm>

namespace collage {
namespace {

// Sums of the same costs in different orders differ by less than this share.
constexpr double kRounding = 1e-9;

}  // namespace

Sweep::Sweep(SearchSpace& space, const CostBook& book, RemainingBound* bound, const SweepOptions& options)
    : space_(space),
      book_(book),
      bound_(bound),
      options_(options),
      paths_(space.problem(), options.num_covers),
      at_(static_cast<size_t>(space.problem().num_positions) + 1) {}

std::vector<Cover> Sweep::Run() {
  const int start = StateAt(space_.Start());
  states_[static_cast<size_t>(start)].best = {BestPaths::kStart};
  for (size_t position = 0; position + 1 < at_.size(); ++position) {
    std::vector<int> states = std::move(at_[position]);
    Prune(states);
    for (int state : states) Expand(state);
    for (int state : states) by_key_.erase(states_[static_cast<size_t>(state)].key);
  }
  std::vector<Cover> covers;
  for (int state : at_.back()) {  // one, if any: nothing is left to tell states apart
    for (int path : states_[static_cast<size_t>(state)].best) covers.push_back(paths_.CoverOf(path, book_));
  }
  return covers;
}

int Sweep::StateAt(const SearchState& key) {
  const auto [it, is_new] = by_key_.emplace(key, static_cast<int>(states_.size()));
  if (is_new) {
    states_.push_back({key, {}});
    at_[static_cast<size_t>(key.next)].push_back(it->second);
  }
  return it->second;
}

double Sweep::Estimate(int state) {
  const double rest = bound_ == nullptr ? 0 : bound_->Seconds(states_[static_cast<size_t>(state)].key, space_);
  return SecondsOf(state) + rest;
}

void Sweep::Prune(std::vector<int>& states) {
  const double limit = options_.limit * (1 + kRounding);
  if (bound_ != nullptr) std::erase_if(states, [&](int state) { return Estimate(state) > limit; });
  PruneDominated(states);
  if (options_.beam <= 0 || states.size() <= static_cast<size_t>(options_.beam)) return;
  std::vector<std::pair<double, int>> ranked;
  for (int state : states) ranked.emplace_back(Estimate(state), state);
  std::sort(ranked.begin(), ranked.end());
  num_dropped_ += static_cast<int64_t>(ranked.size()) - options_.beam;
  ranked.resize(static_cast<size_t>(options_.beam));
  states.clear();
  for (const auto& [_, state] : ranked) states.push_back(state);
}

/// Of states that cover the same, drops those that as many paths as covers are wanted beat even after making all
/// formats that they have.
void Sweep::PruneDominated(std::vector<int>& states) {
  if (states.size() < 2) return;
  std::unordered_map<int, std::vector<int>> by_beyond;
  for (int state : states) by_beyond[states_[static_cast<size_t>(state)].key.beyond].push_back(state);
  if (by_beyond.size() == states.size()) return;
  states.clear();
  for (auto& [_, group] : by_beyond) {
    std::sort(group.begin(), group.end(),
              [&](int a, int b) { return std::pair(SecondsOf(a), a) < std::pair(SecondsOf(b), b); });
    std::vector<int> kept;
    for (int state : group) {
      int num_better = 0;
      for (size_t i = 0; i < kept.size() && num_better < options_.num_covers; ++i) {
        const State& better = states_[static_cast<size_t>(kept[i])];
        const double match = space_.SecondsToMatch(better.key, states_[static_cast<size_t>(state)].key);
        for (int path : better.best) {
          num_better += (paths_.SecondsOf(path) + match) * (1 + kRounding) < SecondsOf(state) ? 1 : 0;
        }
      }
      if (num_better < options_.num_covers) kept.push_back(state);
    }
    states.insert(states.end(), kept.begin(), kept.end());
  }
  std::sort(states.begin(), states.end());
}

void Sweep::Expand(int from) {
  const SearchState key = states_[static_cast<size_t>(from)].key;
  const bool any = space_.ForEachStep(key, book_, [&](int variant, const SearchSpace::Step& step) {
    const int target = StateAt(step.to);
    const double seconds = book_.Seconds(variant) + step.penalty;
    const std::vector<int> before = states_[static_cast<size_t>(from)].best;
    for (int path : before) {
      paths_.Insert(states_[static_cast<size_t>(target)].best, path, variant, paths_.SecondsOf(path) + seconds,
                    step.to.next);
    }
  });
  if (!any) dead_ends_.push_back(key.next);
}

}  // namespace collage
