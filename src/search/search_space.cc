// search_space.cc: steps between states, and what they remember of formats.
#include "search/search_space.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/sort_unique.h"

namespace collage {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <typename T>
bool Has(const std::vector<T>& ascending, const T& element) {
  return std::binary_search(ascending.begin(), ascending.end(), element);
}

uint64_t HashOf(const SearchMemory& memory) {
  uint64_t hash = 0x9e3779b97f4a7c15u;
  const auto mix = [&](int value) {
    hash = ((hash << 7 | hash >> 57) ^ static_cast<uint64_t>(value)) * 0xff51afd7ed558ccdu;
  };
  for (const std::vector<FormatUse>* uses : {&memory.made, &memory.converted, &memory.wanted}) {
    for (const FormatUse& use : *uses) {
      mix(use.value);
      mix(use.format);
    }
    mix(-1);
  }
  for (VariantIndex variant : memory.risky) mix(variant.number());
  mix(memory.place);
  return hash ^ hash >> 32;
}

}  // namespace

SearchSpace::SearchSpace(const CoverProblem& problem, CoverCosts& costs)
    : problem_(problem), costs_(costs), order_(problem), starting_at_(problem.StartingAt()) {
  for (const auto& [number, value] : problem.values) {
    if (std::ssize(values_) <= number) values_.resize(number + 1);
    values_[number] = &value;
  }
  formats_.resize(values_.size());
  const auto add_want = [&](const FormatUse& want) {
    formats_[want.value].push_back(want.format);
    num_formats_ = std::max<size_t>(num_formats_, want.format + 1);
  };
  rest_of_.reserve(problem.variants.size());
  for (const CoverVariant& variant : problem.variants) {
    rest_of_.push_back(lists_.Of(variant.covers, 1));
    std::for_each(variant.wants.begin(), variant.wants.end(), add_want);
    for (const FormatUse& made : variant.makes) {
      num_formats_ = std::max<size_t>(num_formats_, made.format + 1);
    }
  }
  std::for_each(problem.returned.begin(), problem.returned.end(), add_want);
  for (std::vector<Format>& formats : formats_) SortUnique(formats);
  converts_.assign(values_.size() * num_formats_ * num_formats_, std::numeric_limits<double>::quiet_NaN());
  FindSwitchPenalties();
  NumberOf({});
}

void SearchSpace::FindSwitchPenalties() {
  int num_places = 0;
  for (VariantIndex v : problem_.variants.indices()) {
    places_.push_back(costs_.PlaceOf(v));
    num_places = std::max(num_places, places_.back() + 1);
  }
  double most = 0;
  for (int from = 0; from < num_places; ++from) {
    switch_penalties_.emplace_back();
    for (int to = 0; to < num_places; ++to) {
      switch_penalties_.back().push_back(costs_.SwitchPenalty(from, to));
      most = std::max(most, switch_penalties_.back().back());
    }
  }
  if (most == 0) switch_penalties_.clear();
}

double SearchSpace::SwitchPenalty(int from, int to) const {
  if (from == SearchMemory::kNoPlace || switch_penalties_.empty()) return 0;
  return switch_penalties_[from][to];
}

int SearchSpace::NumberOf(const SearchMemory& memory) {
  const auto is_equal = [&](int number) { return memories_[number] == memory; };
  const auto [number, is_new] = numbers_.Emplace(HashOf(memory), static_cast<int>(memories_.size()), is_equal);
  if (is_new) memories_.push_back(memory);
  return number;
}

SearchState SearchSpace::Start() {
  SearchMemory memory;
  memory.wanted = problem_.returned;
  return {Position(0), 0, NumberOf(memory)};
}

Format SearchSpace::MadeIn(const SearchMemory& memory, int value) const {
  const auto it = std::lower_bound(memory.made.begin(), memory.made.end(), FormatUse{value, 0});
  return it != memory.made.end() && it->value == value ? it->format : 0;
}

const std::vector<FormatUse>& SearchSpace::Conversions(const SearchState& state, const CoverVariant& variant,
                                                       double& seconds) {
  conversions_.clear();
  if (variant.wants.empty() && variant.makes.empty()) return conversions_;
  const SearchMemory& memory = MemoryOf(state);
  for (const FormatUse& want : variant.wants) {
    if (!IsCovered(state, ValueAt(want.value).maker)) continue;  // charged to its maker
    const Format made = MadeIn(memory, want.value);
    if (made == want.format || Has(memory.converted, want)) continue;
    seconds += Convert(want.value, made, want.format);
    conversions_.push_back(want);
  }
  for (const FormatUse& made : variant.makes) {
    auto want = std::lower_bound(memory.wanted.begin(), memory.wanted.end(), FormatUse{made.value, 0});
    for (; want != memory.wanted.end() && want->value == made.value; ++want) {
      if (want->format == made.format) continue;
      seconds += Convert(made.value, made.format, want->format);
      conversions_.push_back(*want);
    }
  }
  return conversions_;
}

std::optional<SearchState> SearchSpace::Cover(const SearchState& state, VariantIndex v) {
  const int rest = rest_of_[v];
  if (state.beyond != 0 && rest != 0 && lists_.Intersect(state.beyond, rest)) return std::nullopt;
  SearchState to{state.next + 1, lists_.Union(state.beyond, rest), 0};
  while (to.beyond != 0 && lists_.First(to.beyond) == to.next) {
    ++to.next;
    to.beyond = lists_.Rest(to.beyond);
  }
  return to;
}

std::optional<SearchSpace::Step> SearchSpace::Apply(const SearchState& state, VariantIndex v) {
  if (order_.IsRisky(v) && !order_.CanJoin(MemoryOf(state).risky, v)) return std::nullopt;
  const std::optional<SearchState> to = Cover(state, v);
  if (!to) return std::nullopt;
  Step step{*to, costs_.Transition(v) + SwitchPenalty(MemoryOf(state).place, places_[v])};
  const std::vector<FormatUse>& conversions = Conversions(state, problem_.variants[v], step.penalty);
  step.to.memory = MemoryAfter(state, step.to, v, conversions);
  return step;
}

int SearchSpace::MemoryAfter(const SearchState& before, const SearchState& after, VariantIndex v,
                             const std::vector<FormatUse>& conversions) {
  const CoverVariant& variant = problem_.variants[v];
  const bool is_last = after.next == problem_.end();
  const int place = switch_penalties_.empty() || is_last ? SearchMemory::kNoPlace : places_[v];
  const bool changes_formats = !variant.wants.empty() || !variant.makes.empty();
  if (before.memory == 0 && place == SearchMemory::kNoPlace && !changes_formats && !order_.IsRisky(v)) return 0;
  SearchMemory& memory = after_;
  memory = MemoryOf(before);
  memory.place = place;
  for (const FormatUse& made : variant.makes) {
    if (made.format != 0) memory.made.push_back(made);
  }
  memory.converted.insert(memory.converted.end(), conversions.begin(), conversions.end());
  memory.wanted.insert(memory.wanted.end(), variant.wants.begin(), variant.wants.end());
  const auto is_dead = [&](const FormatUse& use) {
    const std::vector<Position>& readers = ValueAt(use.value).readers;
    return std::all_of(std::lower_bound(readers.begin(), readers.end(), after.next), readers.end(),
                       [&](Position reader) { return lists_.Contains(after.beyond, reader); });
  };
  for (std::vector<FormatUse>* uses : {&memory.made, &memory.converted}) {
    std::erase_if(*uses, is_dead);
    SortUnique(*uses);
  }
  SortUnique(memory.wanted);
  std::erase_if(memory.wanted, [&](const FormatUse& want) { return IsCovered(after, ValueAt(want.value).maker); });
  if (order_.IsRisky(v)) memory.risky.push_back(v);
  std::erase_if(memory.risky, [&](VariantIndex chosen) { return order_.LastPartner(chosen) < after.next; });
  std::sort(memory.risky.begin(), memory.risky.end());
  return NumberOf(memory);
}

double SearchSpace::Convert(int value, Format from, Format to) {
  double& seconds = converts_[(value * num_formats_ + from) * num_formats_ + to];
  if (std::isnan(seconds)) seconds = costs_.Convert(value, from, to);
  return seconds;
}

double SearchSpace::SecondsToMatch(const SearchState& better, const SearchState& worse, double most) {
  const SearchMemory& a = MemoryOf(better);
  const SearchMemory& b = MemoryOf(worse);
  // A state that wants less costs less; pending cycles must be equal, or fewer.
  if (!std::includes(b.wanted.begin(), b.wanted.end(), a.wanted.begin(), a.wanted.end())) return kInfinity;
  if (!std::includes(b.risky.begin(), b.risky.end(), a.risky.begin(), a.risky.end())) return kInfinity;
  std::vector<int>& values = matched_values_;
  values.clear();
  for (const std::vector<FormatUse>* uses : {&a.made, &a.converted, &b.made, &b.converted}) {
    for (const FormatUse& use : *uses) values.push_back(use.value);
  }
  SortUnique(values);
  double seconds = 0;
  for (int to = 0; to < static_cast<int>(switch_penalties_.size()); ++to) {
    seconds = std::max(seconds, SwitchPenalty(a.place, to) - SwitchPenalty(b.place, to));
  }
  for (int value : values) {
    if (seconds > most) return seconds;
    const Format made_a = MadeIn(a, value);
    const Format made_b = MadeIn(b, value);
    for (Format format : FormatsOf(value)) {
      const bool has_a = format == made_a || Has(a.converted, {value, format});
      const bool has_b = format == made_b || Has(b.converted, {value, format});
      if (has_a) continue;
      const double from_a = Convert(value, made_a, format);
      if (has_b) {
        seconds += from_a;
      } else if (from_a > Convert(value, made_b, format)) {
        seconds += from_a - Convert(value, made_b, format);
      }
    }
  }
  return seconds;
}

}  // namespace collage
