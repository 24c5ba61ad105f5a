// best_paths.h: the best few ways into each state, and which of equally good ones comes first.
#pragma once

#include <cstddef>
#include <vector>

#include "search/cost_book.h"
#include "search/cover_problem.h"

namespace collage {

/// Paths from the start, sharing their beginnings. Among paths of equal cost, the first one has the lower priority at
/// the first difference, then the lower variant: a total order that no search's own order plays into, and that a
/// prefix's rank decides for all its continuations.
class BestPaths {
 public:
  BestPaths(const CoverProblem& problem, int count) : problem_(problem), count_(count) {
    paths_.push_back({0, kNone, VariantIndex(kNone), Position(0)});
  }

  static constexpr int kStart = 0;  ///< the empty path
  double SecondsOf(int path) const { return paths_[path].seconds; }

  /// Puts the continuation of path `before` by `variant`, at `seconds` in all and covering up to `next`, where it
  /// belongs in `best`, which is the list of the best few into a state; or nowhere.
  void Insert(std::vector<int>& best, int before, VariantIndex variant, double seconds, Position next) {
    if (best.size() == count_ && seconds > SecondsOf(best.back())) return;
    const int path = static_cast<int>(paths_.size());
    paths_.push_back({seconds, before, variant, next});
    size_t at = best.size();
    while (at > 0 && Precedes(path, best[at - 1])) --at;
    if (at == count_) {
      paths_.pop_back();
      return;
    }
    best.insert(best.begin() + static_cast<std::ptrdiff_t>(at), path);
    if (best.size() > count_) best.pop_back();
  }

  std::vector<VariantIndex> VariantsOf(int path) const {
    std::vector<VariantIndex> variants;
    for (; path != kStart; path = paths_[path].before) {
      variants.push_back(paths_[path].variant);
    }
    return {variants.rbegin(), variants.rend()};
  }

  Cover CoverOf(int path, const CostBook& book) const {
    Cover cover{VariantsOf(path), SecondsOf(path), 0};
    for (VariantIndex variant : cover.variants) cover.num_unknown += book.IsUnknown(variant) ? 1 : 0;
    cover.seconds -= CostBook::kUnknownSeconds * cover.num_unknown;
    return cover;
  }

 private:
  static constexpr int kNone = -1;

  struct Path {
    double seconds;
    int before;
    VariantIndex variant;  ///< the last one
    Position next;         ///< first position not covered
  };

  /// Compares paths into the same state.
  bool Precedes(int a, int b) const {
    if (SecondsOf(a) != SecondsOf(b)) return SecondsOf(a) < SecondsOf(b);
    VariantIndex variant_a(kNone), variant_b(kNone);
    while (a != b) {  // up to where they part
      const Path& path_a = paths_[a];
      const Path& path_b = paths_[b];
      if (path_a.next > path_b.next) {
        variant_a = path_a.variant;
        a = path_a.before;
      } else {
        variant_b = path_b.variant;
        b = path_b.before;
      }
    }
    const auto priority = [&](VariantIndex variant) { return problem_.variants[variant].priority; };
    return priority(variant_a) != priority(variant_b) ? priority(variant_a) < priority(variant_b)
                                                      : variant_a < variant_b;
  }

  const CoverProblem& problem_;
  size_t count_;
  std::vector<Path> paths_;
};

}  // namespace collage
