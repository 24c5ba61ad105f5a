// compile_covers.cc: costs that were not measured do not say whether a toolchain compiles a partition, so those of the
// covers are compiled before the play-off, which finds them in the store.
#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "cost/runner/runner.h"
#include "driver/compilation.h"
#include "driver/phases/cover_search_state.h"

namespace collage {
namespace {

const NamedCover* Cheapest(const FoundCovers& found) {
  const auto seconds = [](const NamedCover& one) { return one.cover.seconds; };
  return &*std::ranges::min_element(found.covers, {}, seconds);
}

}  // namespace

/// Searches again without the candidates that their toolchains decline, until none of the covers' is declined.
FoundCovers Compilation::WithoutDeclined(CoverSearchState& search, FoundCovers found) {
  // A search goes round all candidates of the covers before that were declined. Covers of the last one may fail in the
  // play-off.
  constexpr int kMostSearches = 16;
  if (!builds_covers_) return found;
  std::set<int> compiled;
  for (int i = 0; i < kMostSearches && Declines(search, found, compiled); ++i) found = FindCovers(search);
  return found;
}

/// Compiles the partitions of those covers of `found` that will be built, but for those that a measurement or an
/// earlier call compiled; `compiled` has the latter's classes. Returns whether one was declined, or failed.
bool Compilation::Declines(CoverSearchState& search, const FoundCovers& found, std::set<int>& compiled) {
  MeasureContext context;
  context.num_threads = report_.num_threads;
  std::vector<VariantIndex> variants;
  std::vector<MeasureRequest> requests;
  for (const NamedCover& one : found.covers) {
    if (machine_ && &one != Cheapest(found)) continue;  // of contenders that are not run, one is built
    const std::vector<ChosenPartition> chosen = search.partitioner.ChosenOf(one.cover);
    for (size_t i = 0; i < chosen.size(); ++i) {
      const VariantIndex variant = one.cover.variants[i];
      if (search.partitioner.IsKnownToCompile(variant)) continue;
      if (!compiled.insert(search.partitioner.ClassOf(variant)).second) continue;
      variants.push_back(variant);
      requests.push_back(
          {context, KeepCompiled{{CandidateHandle{variant.number()}, std::nullopt, chosen[i].schedule}}});
    }
  }
  if (requests.empty()) return false;
  Phase("compile");
  const std::unique_ptr<Runner> runner = MakeLocalRunner(search.candidates, Limits(), compiled_.get());
  bool is_any_declined = false;
  runner->Run(requests, [&](size_t index, const MeasureAnswer& answer) {
    if (!answer.ok) search.partitioner.Decline(variants[index], answer.reason);
    is_any_declined = is_any_declined || !answer.ok;
    return true;
  });
  Phase("search");
  return is_any_declined;
}

}  // namespace collage
