// renumbered_costs.h: costs of a selection of the variants, which are numbered anew.
#pragma once

#include <vector>

#include "search/find_covers.h"

namespace collage {

/// `all`, asked by positions in a selection: variant v of it is `original[v]`. Both must outlive this.
class RenumberedCosts : public CoverCosts {
 public:
  RenumberedCosts(CoverCosts& all, const OriginalVariants& original) : all_(all), original_(original) {}
  double LowerBound(VariantIndex variant) override { return all_.LowerBound(Original(variant)); }
  double Exact(VariantIndex variant) override { return all_.Exact(Original(variant)); }
  bool IsAtHand(VariantIndex variant) override { return all_.IsAtHand(Original(variant)); }
  bool FindsOut() const override { return all_.FindsOut(); }
  int NumAtOnce() const override { return all_.NumAtOnce(); }
  void Prepare(std::span<const VariantIndex> variants) override {
    std::vector<VariantIndex> numbers;
    for (VariantIndex variant : variants) numbers.push_back(Original(variant));
    all_.Prepare(numbers);
  }
  double Convert(int value, Format from, Format to) override { return all_.Convert(value, from, to); }
  double Transition(VariantIndex variant) override { return all_.Transition(Original(variant)); }
  int PlaceOf(VariantIndex variant) override { return all_.PlaceOf(Original(variant)); }
  double SwitchPenalty(int from, int to) override { return all_.SwitchPenalty(from, to); }
  int ClassOf(VariantIndex variant) override { return all_.ClassOf(Original(variant)); }

 private:
  VariantIndex Original(VariantIndex variant) const { return original_[variant]; }

  CoverCosts& all_;
  const OriginalVariants& original_;
};

/// In place: variants of `cover` by their original numbers.
inline void Renumber(Cover& cover, const OriginalVariants& original) {
  for (VariantIndex& variant : cover.variants) variant = original[variant];
}

}  // namespace collage
