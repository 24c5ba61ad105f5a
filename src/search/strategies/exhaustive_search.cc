// exhaustive_search.cc: all covers, each costed by definition. Other searches are compared with it.
#include <algorithm>

#include "collage/support/error.h"
#include "search/strategies/cover_search.h"

namespace collage {
namespace {

// Beyond this many covers nothing is enumerated in reasonable time.
constexpr size_t kMaxCovers = 5'000'000;

class ExhaustiveSearch : public CoverSearch {
 public:
  SearchResult Run(const CoverProblem& problem, CoverCosts& costs, const SearchOptions& options) const override {
    CostBook book(problem.variants.size(), costs);
    IndexedVector<VariantIndex, double> exact;
    for (VariantIndex v : problem.variants.indices()) exact.push_back(book.Ask(v));
    SearchResult result;
    const IndexedVector<Position, std::vector<VariantIndex>> starting_at = problem.StartingAt();
    IndexedVector<Position, char> covered(problem.num_positions);
    std::vector<VariantIndex> chosen;
    std::vector<Position> dead_ends;
    const auto extend = [&](auto& self, Position next) -> void {
      while (next < problem.end() && covered[next] != 0) ++next;
      ++result.num_states;
      if (next == problem.end()) {
        const double seconds = CoverSeconds(problem, chosen, exact, costs);
        if (seconds < std::numeric_limits<double>::infinity()) {
          result.covers.push_back({chosen, seconds, 0});
        } else {
          dead_ends.push_back(problem.variants[chosen.back()].covers.front());
        }
        COLLAGE_CHECK(result.covers.size() <= kMaxCovers) << "more covers than exhaustive search can try";
        return;
      }
      bool any = false;
      for (VariantIndex v : starting_at[next]) {
        const std::vector<Position>& covers = problem.variants[v].covers;
        const auto is_covered = [&](Position position) { return covered[position] != 0; };
        if (!book.CanRun(v) || std::any_of(covers.begin(), covers.end(), is_covered)) continue;
        for (Position position : covers) covered[position] = 1;
        chosen.push_back(v);
        any = true;
        self(self, next + 1);
        chosen.pop_back();
        for (Position position : covers) covered[position] = 0;
      }
      if (!any) dead_ends.push_back(next);
    };
    extend(extend, Position(0));
    result.least_seconds = std::numeric_limits<double>::infinity();
    for (const Cover& cover : result.covers) result.least_seconds = std::min(result.least_seconds, cover.seconds);
    KeepBest(problem, book, options, result);
    result.num_exact = book.num_exact();
    result.is_exact = true;
    if (result.covers.empty()) result.stuck_at = StuckPositions(problem, book, dead_ends);
    return result;
  }

 private:
  static void KeepBest(const CoverProblem& problem, const CostBook& book, const SearchOptions& options,
                       SearchResult& result) {
    const auto rank = [&](VariantIndex v) { return std::pair(problem.variants[v].priority, v); };
    std::sort(result.covers.begin(), result.covers.end(), [&](const Cover& a, const Cover& b) {
      if (a.seconds != b.seconds) return a.seconds < b.seconds;
      return std::lexicographical_compare(a.variants.begin(), a.variants.end(), b.variants.begin(), b.variants.end(),
                                          [&](VariantIndex x, VariantIndex y) { return rank(x) < rank(y); });
    });
    if (result.covers.empty()) return;
    const double limit = MostSeconds(result.covers[0].seconds, options);
    if (std::ssize(result.covers) > options.num_covers) result.covers.resize(options.num_covers);
    std::erase_if(result.covers, [&](const Cover& cover) { return cover.seconds > limit; });
    for (Cover& cover : result.covers) {
      for (VariantIndex v : cover.variants) cover.num_unknown += book.IsUnknown(v) ? 1 : 0;
      cover.seconds -= CostBook::kUnknownSeconds * cover.num_unknown;
    }
  }
};

}  // namespace

std::unique_ptr<CoverSearch> MakeExhaustive() { return std::make_unique<ExhaustiveSearch>(); }

}  // namespace collage
