// compatible_covers.cc: a search for each set of toolchains, and the best of what they find.
#include "search/strategies/compatible_covers.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "search/renumbered_costs.h"

namespace collage {
namespace {

/// Problem of one set: its variants, and their numbers in the whole problem.
struct Part {
  CoverProblem problem;
  OriginalVariants original;
};

Part PartOf(const CoverProblem& whole, const std::vector<int>& toolchains) {
  Part part;
  for (VariantIndex v : whole.variants.indices()) {
    const int toolchain = whole.variants[v].toolchain;
    if (std::find(toolchains.begin(), toolchains.end(), toolchain) == toolchains.end()) continue;
    part.original.push_back(v);
  }
  part.problem = whole.Of(part.original);
  return part;
}

/// In the order that FindCovers promises, each once.
void SortCovers(const CoverProblem& problem, std::vector<Cover>& covers) {
  const auto rank = [&](VariantIndex v) { return std::pair(problem.variants[v].priority, v); };
  std::sort(covers.begin(), covers.end(), [&](const Cover& a, const Cover& b) {
    if (a.num_unknown != b.num_unknown) return a.num_unknown < b.num_unknown;
    if (a.seconds != b.seconds) return a.seconds < b.seconds;
    return std::lexicographical_compare(a.variants.begin(), a.variants.end(), b.variants.begin(), b.variants.end(),
                                        [&](VariantIndex x, VariantIndex y) { return rank(x) < rank(y); });
  });
  const auto is_same = [](const Cover& a, const Cover& b) { return a.variants == b.variants; };
  covers.erase(std::unique(covers.begin(), covers.end(), is_same), covers.end());
}

/// Positions that no set comes beyond; where there are none, those of any.
std::vector<Position> StuckInAll(const std::vector<std::vector<Position>>& stuck) {
  std::vector<Position> all, any;
  for (size_t i = 0; i < stuck.size(); ++i) {
    std::vector<Position> sorted = stuck[i];
    std::sort(sorted.begin(), sorted.end());
    std::vector<Position> in_all, in_any;
    std::set_intersection(all.begin(), all.end(), sorted.begin(), sorted.end(), std::back_inserter(in_all));
    std::set_union(any.begin(), any.end(), sorted.begin(), sorted.end(), std::back_inserter(in_any));
    all = i == 0 ? sorted : std::move(in_all);
    any = std::move(in_any);
  }
  return all.empty() ? any : all;
}

}  // namespace

SearchResult SearchCompatibleCovers(const CoverProblem& problem, CoverCosts& costs, const SearchOptions& options,
                                    std::span<const std::vector<int>> sets) {
  if (sets.size() <= 1) return SearchCovers(problem, costs, options);
  SearchResult all;
  all.is_exact = true;
  all.least_seconds = std::numeric_limits<double>::infinity();
  SearchOptions own = options;
  std::vector<std::vector<Position>> stuck;
  for (const std::vector<int>& set : sets) {
    const Part part = PartOf(problem, set);
    RenumberedCosts part_costs(costs, part.original);
    if (options.toolchain_name) {
      own.toolchain_name = [&](VariantIndex variant) { return options.toolchain_name(part.original.at(variant)); };
    }
    if (options.fitness) {
      own.fitness = [&](Cover cover) {
        Renumber(cover, part.original);
        return options.fitness(cover);
      };
    }
    SearchResult found = SearchCovers(part.problem, part_costs, own);
    all.is_exact = all.is_exact && found.is_exact;
    all.least_seconds = std::min(all.least_seconds, found.least_seconds);
    all.num_states += found.num_states;
    all.num_exact += found.num_exact;
    all.num_dropped += found.num_dropped;
    if (found.covers.empty()) stuck.push_back(std::move(found.stuck_at));
    for (Cover& cover : found.covers) {
      Renumber(cover, part.original);
      all.covers.push_back(std::move(cover));
    }
    SortCovers(problem, all.covers);
    // Limit that another set must beat; an evolution does not minimise costs.
    if (!all.covers.empty() && all.covers[0].num_unknown == 0 && !options.fitness) {
      own.limit = std::min(options.limit, MostSeconds(all.covers[0].seconds, options));
    }
  }
  if (all.covers.empty()) {
    all.stuck_at = StuckInAll(stuck);
    return all;
  }
  const Cover best = all.covers[0];
  const double most = options.fitness ? std::numeric_limits<double>::infinity() : MostSeconds(best.seconds, options);
  std::erase_if(all.covers,
                [&](const Cover& cover) { return cover.num_unknown != best.num_unknown || cover.seconds > most; });
  const size_t wanted = std::max(options.num_covers, 1);
  if (all.covers.size() > wanted) all.covers.resize(wanted);
  return all;
}

}  // namespace collage
