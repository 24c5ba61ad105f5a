// best_first_search.cc: Dijkstra and A* with costs asked for lazily.
#include <algorithm>
#include <optional>
#include <queue>
#include <tuple>
#include <unordered_map>

#include "search/best_paths.h"
#include "search/bounds.h"
#include "search/search_space.h"
#include "search/strategies/cover_search.h"

namespace collage {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Sums of the same costs in different orders differ by less than this share.
constexpr double kRounding = 1e-9;

/// Lower bound of the total cost through a step or state.
class Guide {
 public:
  virtual ~Guide() = default;
  virtual double Remaining(const SearchState& state, const SearchSpace& space) = 0;
};

class NoGuide : public Guide {
 public:
  double Remaining(const SearchState&, const SearchSpace&) override { return 0; }
};

class ShareGuide : public Guide {
 public:
  explicit ShareGuide(RemainingBound& bound) : bound_(bound) {}
  double Remaining(const SearchState& state, const SearchSpace& space) override { return bound_.Seconds(state, space); }

 private:
  RemainingBound& bound_;
};

/// Knows what the best path from each cut costs, and bounds the way to the next cut by shares.
class CutGuide : public Guide {
 public:
  CutGuide(const std::vector<Position>& cuts, std::vector<double> from_cut, RemainingBound& bound)
      : cuts_(cuts), from_cut_(std::move(from_cut)), bound_(bound) {}
  double Remaining(const SearchState& state, const SearchSpace& space) override {
    const auto next = std::lower_bound(cuts_.begin(), cuts_.end(), state.next) - cuts_.begin();
    const Position cut = cuts_[next];
    const double behind = bound_.Between(cut, space.problem().end());
    const double before = std::max(0.0, bound_.SharesOf(state, space) - behind * (1 + kRounding));
    const double by_cut = (from_cut_[next] + before) * (1 - kRounding);
    return bound_.is_refined() ? std::max(by_cut, bound_.Seconds(state, space)) : by_cut;
  }

 private:
  const std::vector<Position>& cuts_;
  std::vector<double> from_cut_;
  RemainingBound& bound_;
};

/// Something in the queue: a step whose cost may still be a bound, or a state that was reached.
struct Entry {
  double total;  ///< what a cover by this way costs at least
  int priority;
  int state;
  std::optional<VariantIndex> variant;  ///< none: the state itself
  double so_far;                        ///< cost up to the end of the step
  double penalty;                       ///< conversions and transition of the step
  int64_t number;                       ///< breaks ties in the order of insertion

  bool operator>(const Entry& other) const {
    return std::tie(total, priority, number) > std::tie(other.total, other.priority, other.number);
  }
};

/// One search from the start until nothing in the queue can be on a path of at most the limit.
class BestFirst {
 public:
  BestFirst(SearchSpace& space, CostBook& book, Guide& guide, const std::vector<Position>& cuts,
            const SearchOptions& options)
      : space_(space),
        book_(book),
        guide_(guide),
        cuts_(cuts),
        options_(options),
        expanded_at_(space.problem().num_positions) {}

  /// Looks for the best `count` paths of at most `limit`; where one is enough, what cannot be better is passed over.
  void Run(int count, double limit) {
    const bool only_best = count == 1;
    limit_ = limit;
    Reach(StateAt(space_.Start()), 0);
    while (!queue_.empty() && queue_.top().total <= limit_) {
      const Entry entry = queue_.top();
      queue_.pop();
      if (only_best && IsBehindCut(entry)) continue;
      if (entry.variant) {
        Follow(entry, only_best);
        continue;
      }
      State& state = states_[entry.state];
      if (state.is_expanded || entry.so_far > state.best) continue;
      state.is_expanded = true;
      if (IsDominated(entry.state, count)) continue;
      if (space_.IsEnd(state.key)) {
        final_ = entry.state;
        limit_ = std::min(limit_, state.best * (1 + kRounding));
        if (!only_best) limit_ = limit;
      } else {
        if (only_best) PassCut(entry);
        Expand(entry.state);
      }
    }
  }

  /// The best paths into the end, over everything that was explored.
  std::vector<int> PathsTo(BestPaths& paths) const {
    std::vector<int> order;
    for (size_t s = 0; s < states_.size(); ++s) order.push_back(static_cast<int>(s));
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return states_[a].key.next < states_[b].key.next; });
    std::vector<std::vector<int>> best(states_.size());
    best[0] = {BestPaths::kStart};
    for (int s : order) {
      const State& state = states_[s];
      for (const Arrival& arrival : state.arrivals) {
        for (int before : best[arrival.from]) {
          paths.Insert(best[s], before, arrival.variant, paths.SecondsOf(before) + arrival.seconds, state.key.next);
        }
      }
    }
    return final_ < 0 ? std::vector<int>{} : best[final_];
  }

  /// For each cut, what the best path to it costs; all must have been passed.
  std::vector<double> BestToCuts() const {
    std::vector<double> best(cuts_.size(), kInfinity);
    for (const State& state : states_) {
      if (state.key.beyond != 0) continue;
      const auto it = std::lower_bound(cuts_.begin(), cuts_.end(), state.key.next);
      if (it == cuts_.end() || *it != state.key.next) continue;
      double& least = best[it - cuts_.begin()];
      least = std::min(least, state.best);
    }
    return best;
  }

  int64_t num_states() const { return static_cast<int64_t>(states_.size()); }
  int64_t num_dropped() const { return num_dropped_; }
  /// The cost below which there is no cover: that of the best one, or what a dropped state may come to.
  double least_seconds() const {
    return std::min(least_dropped_, final_ < 0 ? kInfinity : states_[final_].best) * (1 - kRounding);
  }
  /// Positions at which nothing went on; else, when all that did turned out not to run, the one that it came furthest
  /// to.
  std::vector<Position> dead_ends() const { return dead_ends_.empty() ? std::vector<Position>{furthest_} : dead_ends_; }

 private:
  /// A way into a state.
  struct Arrival {
    int from;
    VariantIndex variant;
    double seconds;
  };
  struct State {
    SearchState key;
    double best = kInfinity;
    bool is_expanded = false;
    std::vector<Arrival> arrivals;
  };

  void Push(Entry entry) {
    entry.number = num_pushed_++;
    queue_.push(entry);
  }

  int StateAt(const SearchState& key) {
    const auto [it, is_new] = by_key_.emplace(key, static_cast<int>(states_.size()));
    if (is_new) states_.push_back({key, kInfinity, false, {}});
    return it->second;
  }

  void Reach(int index, double seconds) {
    State& state = states_[index];
    if (seconds >= state.best) return;
    state.best = seconds;
    Push({seconds + guide_.Remaining(state.key, space_), 0, index, std::nullopt, seconds, 0, 0});
  }

  /// All paths pass a cut in the same state, and the best way to it is known once it comes to the front: what is left
  /// of the search before it is of no use, unless it is as good.
  void PassCut(const Entry& entry) {
    const Position next = states_[entry.state].key.next;
    if (next <= passed_cut_ || !std::binary_search(cuts_.begin(), cuts_.end(), next)) return;
    passed_cut_ = next;
    passed_total_ = entry.total * (1 + kRounding);
  }

  bool IsBehindCut(const Entry& entry) const {
    return states_[entry.state].key.next < passed_cut_ && entry.total > passed_total_;
  }

  /// Whether `count` states that cover the same are better even after they made all formats that this one has: then so
  /// many covers are better than any by this one.
  bool IsDominated(int index, int count) {
    const State& state = states_[index];
    std::vector<int>& others = expanded_[{state.key.next, state.key.beyond, 0}];
    for (int other : others) {
      const State& better = states_[other];
      const double match = better.best + space_.SecondsToMatch(better.key, state.key);
      if (match * (1 + kRounding) < state.best && --count == 0) return true;
    }
    others.push_back(index);
    return false;
  }

  void Expand(int from) {
    const SearchState key = states_[from].key;
    const double so_far = states_[from].best;
    if (++expanded_at_[key.next] > options_.beam && options_.beam > 0) {
      ++num_dropped_;
      least_dropped_ = std::min(least_dropped_, so_far + guide_.Remaining(key, space_));
      return;
    }
    furthest_ = std::max(furthest_, key.next);
    const bool any = space_.ForEachStep(key, book_, [&](VariantIndex variant, const SearchSpace::Step& step) {
      const double seconds = so_far + (book_.Seconds(variant) + step.penalty);
      const int priority = space_.problem().variants[variant].priority;
      Push({seconds + guide_.Remaining(step.to, space_), priority, from, variant, seconds, step.penalty, 0});
    });
    if (!any) dead_ends_.push_back(key.next);
  }

  /// A step came to the front: now its cost must be known.
  void Follow(const Entry& entry, bool only_best) {
    const SearchState from = states_[entry.state].key;
    const SearchSpace::Step step = *space_.Apply(from, *entry.variant);
    const int target = StateAt(step.to);
    // If a better path is known, this one's cost is not needed.
    if (only_best && states_[target].best < entry.so_far) return;
    const double exact = book_.Ask(*entry.variant);
    if (exact == kInfinity) return;
    const double so_far = states_[entry.state].best + (exact + entry.penalty);
    if (so_far > entry.so_far) {
      Entry later = entry;
      later.so_far = so_far;
      later.total = so_far + guide_.Remaining(step.to, space_);
      if (later.total > entry.total) return Push(later);
    }
    states_[target].arrivals.push_back({entry.state, *entry.variant, exact + entry.penalty});
    Reach(target, so_far);
  }

  SearchSpace& space_;
  CostBook& book_;
  Guide& guide_;
  const std::vector<Position>& cuts_;
  const SearchOptions& options_;
  std::vector<State> states_;
  std::unordered_map<SearchState, int, SearchStateHash> by_key_;
  std::unordered_map<SearchState, std::vector<int>, SearchStateHash> expanded_;  ///< by what is covered
  IndexedVector<Position, int> expanded_at_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
  std::vector<Position> dead_ends_;
  Position furthest_;
  double limit_ = kInfinity;
  Position passed_cut_;
  double passed_total_ = kInfinity;
  int64_t num_pushed_ = 0;
  int64_t num_dropped_ = 0;
  double least_dropped_ = kInfinity;
  int final_ = -1;
};

class BestFirstSearch : public CoverSearch {
 public:
  explicit BestFirstSearch(bool is_guided) : is_guided_(is_guided) {}

  SearchResult Run(const CoverProblem& problem, CoverCosts& costs, const SearchOptions& options) const override {
    CostBook book(problem.variants.size(), costs);
    SearchSpace space(problem, costs);
    RemainingBound bound(problem, book, costs);
    NoGuide no_guide;
    ShareGuide share_guide(bound);
    Guide& guide = is_guided_ ? static_cast<Guide&>(share_guide) : no_guide;
    const bool has_formats = !problem.values.empty();
    if (has_formats && is_guided_) bound.Refine(space, book, costs, kMostRefined);
    // If switching toolchains costs anything, the state at a cut depends on the variant chosen last.
    const std::vector<Position> cuts =
        space.has_switch_penalties() ? std::vector<Position>{Position(0), problem.end()} : CutPositions(problem, book);
    BestFirst first(space, book, guide, cuts, options);
    first.Run(1, kInfinity);
    SearchResult result;
    BestPaths paths(problem, 1);
    const std::vector<int> best = first.PathsTo(paths);
    Note(first, result);
    result.least_seconds = first.least_seconds();
    if (best.empty()) {
      result.stuck_at = StuckPositions(problem, book, first.dead_ends());
    } else if (options.num_covers <= 1) {
      result.covers.push_back(paths.CoverOf(best[0], book));
    } else {
      if (has_formats) bound.Refine(space, book, costs, kMostRefined);
      FindMore(first, paths.SecondsOf(best[0]), bound, cuts, space, book, options, result);
    }
    result.num_exact = book.num_exact();
    result.is_exact = result.num_dropped == 0;
    return result;
  }

 private:
  static void Note(const BestFirst& search, SearchResult& result) {
    result.num_states += search.num_states();
    result.num_dropped += search.num_dropped();
  }

  /// Now that the best cost is known, and of every cut what the way from there costs: all paths within the slack.
  static void FindMore(const BestFirst& first, double best, RemainingBound& bound, const std::vector<Position>& cuts,
                       SearchSpace& space, CostBook& book, const SearchOptions& options, SearchResult& result) {
    std::vector<double> from_cut = first.BestToCuts();
    for (double& seconds : from_cut) seconds = std::max(0.0, best - seconds);
    CutGuide guide(cuts, std::move(from_cut), bound);
    BestFirst all(space, book, guide, cuts, options);
    const double limit = MostSeconds(best, options);
    all.Run(options.num_covers, limit * (1 + kRounding));
    BestPaths paths(space.problem(), options.num_covers);
    for (int path : all.PathsTo(paths)) {
      if (paths.SecondsOf(path) <= limit) result.covers.push_back(paths.CoverOf(path, book));
    }
    Note(all, result);
  }

  bool is_guided_;
};

}  // namespace

std::unique_ptr<CoverSearch> MakeDijkstra() { return std::make_unique<BestFirstSearch>(false); }
std::unique_ptr<CoverSearch> MakeAStar() { return std::make_unique<BestFirstSearch>(true); }

}  // namespace collage
