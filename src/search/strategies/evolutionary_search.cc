// evolutionary_search.cc: the paper's graph-level search among the variants of a problem.
#include <algorithm>
#include <map>
#include <set>

#include "search/strategies/cover_search.h"
#include "search/strategies/evolution.h"

namespace collage {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Genes are the partitions of an op-level cover. Allele 0 keeps a partition; any other hands its nodes to another
/// toolchain, which takes what it was handed in the largest variants that fit.
class HandingOver {
 public:
  HandingOver(const CoverProblem& problem, const Cover& base) : problem_(problem), base_(base) {
    for (VariantIndex v : problem.variants.indices()) {
      const CoverVariant& variant = problem.variants[v];
      by_size_[variant.toolchain].push_back(v);
      coverable_[variant.toolchain].insert(variant.covers.begin(), variant.covers.end());
    }
    for (auto& [_, variants] : by_size_) {
      std::stable_sort(variants.begin(), variants.end(), [&](VariantIndex a, VariantIndex b) {
        return problem.variants[a].covers.size() > problem.variants[b].covers.size();
      });
    }
    for (VariantIndex v : base.variants) {
      const CoverVariant& own = problem.variants[v];
      std::vector<int> alleles{own.toolchain};
      for (const auto& [toolchain, coverable] : coverable_) {
        const bool takes_all = std::all_of(own.covers.begin(), own.covers.end(),
                                           [&](Position position) { return coverable.contains(position); });
        if (toolchain != own.toolchain && takes_all) alleles.push_back(toolchain);
      }
      alleles_.push_back(std::move(alleles));
    }
  }

  std::vector<int> NumAlleles() const {
    std::vector<int> counts;
    for (const std::vector<int>& alleles : alleles_) counts.push_back(static_cast<int>(alleles.size()));
    return counts;
  }

  /// For each toolchain, all that it can take.
  std::vector<Genome> Seeds() const {
    std::vector<Genome> seeds;
    for (const auto& [toolchain, _] : by_size_) {
      Genome& genome = seeds.emplace_back();
      for (const std::vector<int>& alleles : alleles_) {
        const auto it = std::find(alleles.begin(), alleles.end(), toolchain);
        genome.push_back(it == alleles.end() ? 0 : static_cast<int>(it - alleles.begin()));
      }
    }
    return seeds;
  }

  /// The variants of the cover that a genome stands for; empty when there is none.
  std::vector<VariantIndex> Realise(const Genome& genome, const CostBook& book) const {
    IndexedVector<Position, int> handed(problem_.num_positions, -1);  // to which toolchain
    std::vector<VariantIndex> variants;
    std::set<int> takers;
    for (size_t gene = 0; gene < genome.size(); ++gene) {
      if (genome[gene] == 0) {
        variants.push_back(base_.variants[gene]);
        continue;
      }
      const int toolchain = alleles_[gene][genome[gene]];
      takers.insert(toolchain);
      for (Position position : problem_.variants[base_.variants[gene]].covers) {
        handed[position] = toolchain;
      }
    }
    for (int toolchain : takers) {
      for (VariantIndex v : by_size_.at(toolchain)) {
        const std::vector<Position>& covers = problem_.variants[v].covers;
        const auto is_handed = [&](Position position) { return handed[position] == toolchain; };
        if (!book.CanRun(v) || !std::all_of(covers.begin(), covers.end(), is_handed)) continue;
        for (Position position : covers) handed[position] = -1;
        variants.push_back(v);
      }
    }
    if (std::any_of(handed.begin(), handed.end(), [](int toolchain) { return toolchain >= 0; })) return {};
    std::sort(variants.begin(), variants.end(), [&](VariantIndex a, VariantIndex b) {
      return problem_.variants[a].covers < problem_.variants[b].covers;
    });
    return variants;
  }

 private:
  const CoverProblem& problem_;
  const Cover& base_;
  std::map<int, std::vector<VariantIndex>> by_size_;  ///< toolchain → its variants, the largest first
  std::map<int, std::set<Position>> coverable_;       ///< by toolchain
  std::vector<std::vector<int>> alleles_;             ///< by gene: toolchains, the partition's own first
};

class EvolutionarySearch : public CoverSearch {
 public:
  SearchResult Run(const CoverProblem& problem, CoverCosts& costs, const SearchOptions& options) const override {
    SearchOptions op_level = options;
    op_level.num_covers = 1;
    SearchResult result = MakeDijkstra()->Run(problem, costs, op_level);
    if (result.covers.empty()) return result;
    result.is_exact = false;
    CostBook book(problem.variants.size(), costs);
    const HandingOver handing_over(problem, result.covers[0]);
    std::vector<std::pair<double, Cover>> seen;
    const EvolutionResult evolved =
        Evolve(handing_over.NumAlleles(), handing_over.Seeds(), options.evolution, [&](const Genome& genome) {
          const Cover cover = Costed(problem, costs, book, handing_over.Realise(genome, book));
          if (cover.variants.empty()) return kInfinity;
          const double fitness =
              options.fitness ? options.fitness(cover) : cover.seconds + cover.num_unknown * CostBook::kUnknownSeconds;
          if (fitness < kInfinity) seen.emplace_back(fitness, cover);
          return fitness;
        });
    result.num_states += evolved.num_evaluations;
    result.num_exact += book.num_exact();
    std::stable_sort(seen.begin(), seen.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    if (!seen.empty()) result.covers.clear();
    for (const auto& [_, cover] : seen) {
      if (static_cast<int>(result.covers.size()) == options.num_covers) break;
      const auto is_same = [&](const Cover& other) { return other.variants == cover.variants; };
      if (std::none_of(result.covers.begin(), result.covers.end(), is_same)) result.covers.push_back(cover);
    }
    return result;
  }

 private:
  /// Without variants when it cannot be run.
  static Cover Costed(const CoverProblem& problem, CoverCosts& costs, CostBook& book,
                      std::vector<VariantIndex> variants) {
    IndexedVector<VariantIndex, double> exact(problem.variants.size());
    Cover cover;
    for (VariantIndex v : variants) {
      exact[v] = book.Ask(v);
      if (!book.CanRun(v)) return {};
      if (!book.IsUnknown(v)) continue;
      exact[v] = 0;
      ++cover.num_unknown;
    }
    cover.seconds = CoverSeconds(problem, variants, exact, costs);
    if (!variants.empty() && cover.seconds < kInfinity) cover.variants = std::move(variants);
    return cover;
  }
};

}  // namespace

std::unique_ptr<CoverSearch> MakeEvolutionary() { return std::make_unique<EvolutionarySearch>(); }

}  // namespace collage
