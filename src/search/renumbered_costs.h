// renumbered_costs.h: costs of a selection of the variants, which are numbered anew.
#pragma once

#include <vector>

#include "search/find_covers.h"

namespace collage {

/// `all`, asked by positions in a selection: variant v of it is `original[v]`. Both must outlive this.
class RenumberedCosts : public CoverCosts {
 public:
  RenumberedCosts(CoverCosts& all, const std::vector<int>& original) : all_(all), original_(original) {}
  double LowerBound(int variant) override { return all_.LowerBound(Original(variant)); }
  double Exact(int variant) override { return all_.Exact(Original(variant)); }
  bool IsAtHand(int variant) override { return all_.IsAtHand(Original(variant)); }
  bool FindsOut() const override { return all_.FindsOut(); }
  int NumAtOnce() const override { return all_.NumAtOnce(); }
  void Prepare(std::span<const int> variants) override {
    std::vector<int> numbers;
    for (int variant : variants) numbers.push_back(Original(variant));
    all_.Prepare(numbers);
  }
  double Convert(int value, Format from, Format to) override { return all_.Convert(value, from, to); }
  double Transition(int variant) override { return all_.Transition(Original(variant)); }
  int PlaceOf(int variant) override { return all_.PlaceOf(Original(variant)); }
  double SwitchPenalty(int from, int to) override { return all_.SwitchPenalty(from, to); }
  int ClassOf(int variant) override { return all_.ClassOf(Original(variant)); }

 private:
  int Original(int variant) const { return original_[variant]; }

  CoverCosts& all_;
  const std::vector<int>& original_;
};

/// In place: variants of `cover` by their original numbers.
inline void Renumber(Cover& cover, const std::vector<int>& original) {
  for (int& variant : cover.variants) variant = original[variant];
}

}  // namespace collage
