// find_covers.cc: lazily costed Dijkstra, and the k best paths over what it explored.
#include "search/find_covers.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <set>
#include <unordered_map>

#include "collage/rewrite.h"
#include "search/cover_problem.h"

namespace collage {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Paths kept per state beyond the covers asked for, in case some of them cannot be ordered.
constexpr int kSpareCovers = 4;

/// All lists ascending. `next` is the first position that is not covered; `beyond` what is covered behind it.
struct StateKey {
  int next = 0;
  std::vector<int> beyond;
  std::vector<int> channels_last;  ///< values that were made in that layout and have readers left
  std::vector<int> converted;      ///< values that exist in the other layout as well and have readers left
  std::vector<LayoutUse> wanted;   ///< of values that are not made yet, by what is covered
  bool operator==(const StateKey&) const = default;
};

struct StateKeyHash {
  size_t operator()(const StateKey& key) const {
    uint64_t hash = static_cast<uint64_t>(key.next) + 0x9e3779b97f4a7c15u;
    const auto mix = [&](int value) {
      hash = ((hash << 7 | hash >> 57) ^ static_cast<uint64_t>(value)) * 0xff51afd7ed558ccdu;
    };
    for (int position : key.beyond) mix(position);
    mix(-1);
    for (int value : key.channels_last) mix(value);
    mix(-1);
    for (int value : key.converted) mix(value);
    mix(-1);
    for (const LayoutUse& use : key.wanted) mix(use.value * 2 + static_cast<int>(use.layout));
    return hash ^ (hash >> 32);
  }
};

/// A way into a state.
struct Arrival {
  int from;
  int variant;
  double seconds;
};

struct State {
  StateKey key;
  double best = kInfinity;
  bool is_expanded = false;
  std::vector<Arrival> arrivals;
};

/// Something in the queue: an edge whose cost may still be a bound, or a state that was reached.
struct Entry {
  double seconds;
  int priority;
  int state;
  int variant;     ///< -1: the state itself
  double penalty;  ///< conversions and transition of the edge
  int64_t number;  ///< breaks ties in the order of insertion

  bool operator>(const Entry& other) const {
    return std::tie(seconds, priority, number) > std::tie(other.seconds, other.priority, other.number);
  }
};

class Search {
 public:
  Search(const DataflowGraph& graph, const std::vector<CandidatePartition>& candidates,
         const std::vector<CandidateVariant>& variants, const std::vector<bool>& eligible, CoverCosts& costs,
         const SearchOptions& options)
      : graph_(graph),
        candidates_(candidates),
        variants_(variants),
        costs_(costs),
        options_(options),
        problem_(graph, candidates, variants, eligible),
        num_positions_(static_cast<int>(problem_.nodes().size())),
        expanded_at_(problem_.nodes().size()),
        exact_(variants.size(), -1) {}

  SearchResult Run() {
    StateKey start;
    start.wanted = problem_.returned();
    Reach(StateAt(std::move(start)), 0);
    double limit = kInfinity;
    while (!queue_.empty() && queue_.top().seconds <= limit) {
      const Entry entry = queue_.top();
      queue_.pop();
      if (entry.variant >= 0) {
        Follow(entry);
        continue;
      }
      State& state = states_[static_cast<size_t>(entry.state)];
      if (state.is_expanded || entry.seconds > state.best) continue;
      state.is_expanded = true;
      if (state.key.next == num_positions_) {
        final_ = entry.state;
        limit = options_.num_covers > 1 ? state.best * (1 + options_.slack) : state.best;
      } else {
        Expand(entry.state);
      }
    }
    return Finish();
  }

 private:
  void Push(Entry entry) {
    entry.number = num_pushed_++;
    queue_.push(entry);
  }

  int StateAt(StateKey key) {
    auto [it, is_new] = by_key_.emplace(std::move(key), static_cast<int>(states_.size()));
    if (is_new) states_.push_back({it->first, kInfinity, false, {}});
    return it->second;
  }

  void Reach(int index, double seconds) {
    State& state = states_[static_cast<size_t>(index)];
    if (seconds >= state.best) return;
    state.best = seconds;
    Push({seconds, 0, index, -1, 0, 0});
  }

  static bool IsCovered(const StateKey& key, int position) {
    return position < key.next || std::binary_search(key.beyond.begin(), key.beyond.end(), position);
  }

  void Expand(int from) {
    const StateKey& key = states_[static_cast<size_t>(from)].key;
    const double so_far = states_[static_cast<size_t>(from)].best;
    if (++expanded_at_[static_cast<size_t>(key.next)] > options_.beam && options_.beam > 0) {
      ++num_dropped_;
      return;
    }
    bool any = false;
    for (int variant : problem_.StartingAt(key.next)) {
      const std::vector<int>& covers = problem_.variant(variant).covers;
      if (std::any_of(covers.begin(), covers.end(), [&](int position) { return IsCovered(key, position); })) continue;
      const double known = exact_[static_cast<size_t>(variant)];
      const double bound = known >= 0 ? known : costs_.LowerBound(variant);
      if (bound == kInfinity) continue;
      any = true;
      const double penalty = Penalty(key, problem_.variant(variant));
      Push({so_far + bound + penalty, problem_.variant(variant).priority, from, variant, penalty, 0});
    }
    if (!any) stuck_.insert(problem_.nodes()[static_cast<size_t>(key.next)]);
  }

  /// Conversions that choosing `variant` in state `key` makes necessary: of what it reads, and of what it makes for
  /// those who wanted it otherwise. By the layout that the value was made in; each at most once per value.
  std::vector<LayoutUse> Conversions(const StateKey& key, const VariantFacts& variant) const {
    std::vector<LayoutUse> conversions;
    const auto contains = [](const std::vector<int>& values, int value) {
      return std::binary_search(values.begin(), values.end(), value);
    };
    for (const LayoutUse& want : variant.wants) {
      if (!IsCovered(key, problem_.MakerOf(want.value))) continue;  // charged to its maker
      const Layout has = contains(key.channels_last, want.value) ? Layout::kChannelsLast : Layout::kPlain;
      if (has != want.layout && !contains(key.converted, want.value)) conversions.push_back({want.value, has});
    }
    for (const LayoutUse& made : variant.makes) {
      const auto differs = [&](const LayoutUse& want) {
        return want.value == made.value && want.layout != made.layout;
      };
      if (std::any_of(key.wanted.begin(), key.wanted.end(), differs)) conversions.push_back(made);
    }
    return conversions;
  }

  double Penalty(const StateKey& key, const VariantFacts& variant) {
    double seconds = costs_.Transition();
    for (const LayoutUse& made : Conversions(key, variant)) {
      const Layout other = made.layout == Layout::kPlain ? Layout::kChannelsLast : Layout::kPlain;
      seconds += costs_.Convert(made.value, made.layout, other);
    }
    return seconds;
  }

  /// An edge came to the front: now its cost must be known.
  void Follow(const Entry& entry) {
    double& exact = exact_[static_cast<size_t>(entry.variant)];
    if (exact < 0) {
      exact = costs_.Exact(entry.variant);
      ++num_exact_;
    }
    if (exact == kInfinity) return;
    const double total = states_[static_cast<size_t>(entry.state)].best + exact + entry.penalty;
    if (total > entry.seconds) {
      Entry later = entry;
      later.seconds = total;
      return Push(later);
    }
    const int target =
        StateAt(Successor(states_[static_cast<size_t>(entry.state)].key, problem_.variant(entry.variant)));
    states_[static_cast<size_t>(target)].arrivals.push_back({entry.state, entry.variant, exact + entry.penalty});
    Reach(target, total);
  }

  StateKey Successor(const StateKey& key, const VariantFacts& variant) const {
    StateKey next;
    std::set_union(key.beyond.begin(), key.beyond.end(), variant.covers.begin(), variant.covers.end(),
                   std::back_inserter(next.beyond));
    size_t done = 0;
    next.next = key.next;
    while (done < next.beyond.size() && next.beyond[done] == next.next) {
      ++done;
      ++next.next;
    }
    next.beyond.erase(next.beyond.begin(), next.beyond.begin() + static_cast<std::ptrdiff_t>(done));

    next.channels_last = key.channels_last;
    next.wanted = key.wanted;
    for (const LayoutUse& made : variant.makes) {
      if (made.layout == Layout::kChannelsLast) next.channels_last.push_back(made.value);
    }
    next.converted = key.converted;
    for (const LayoutUse& made : Conversions(key, variant)) next.converted.push_back(made.value);
    const auto is_dead = [&](int value) {
      const std::vector<int>& readers = problem_.ReadersOf(value);
      return std::all_of(readers.begin(), readers.end(), [&](int reader) { return IsCovered(next, reader); });
    };
    for (std::vector<int>* values : {&next.channels_last, &next.converted}) {
      std::erase_if(*values, is_dead);
      std::sort(values->begin(), values->end());
    }
    next.wanted.insert(next.wanted.end(), variant.wants.begin(), variant.wants.end());
    std::sort(next.wanted.begin(), next.wanted.end());
    next.wanted.erase(std::unique(next.wanted.begin(), next.wanted.end()), next.wanted.end());
    std::erase_if(next.wanted, [&](const LayoutUse& want) { return IsCovered(next, problem_.MakerOf(want.value)); });
    return next;
  }

  // ---- the best covers ----

  /// A path into a state: its last step, and which of the paths to where that came from.
  struct Path {
    double seconds;
    int arrival;
    int before;
  };
  using Paths = std::vector<std::vector<Path>>;

  SearchResult Finish() {
    SearchResult result;
    result.num_states = static_cast<int64_t>(states_.size());
    result.num_exact = num_exact_;
    result.num_dropped = num_dropped_;
    if (final_ < 0) {
      result.stuck_at = Stuck();
      return result;
    }
    const Paths paths = BestPaths(static_cast<size_t>(options_.num_covers + kSpareCovers));
    std::set<std::vector<int>> seen;
    for (const Path& last : paths[static_cast<size_t>(final_)]) {
      if (static_cast<int>(result.covers.size()) == options_.num_covers) break;
      Cover cover = CoverOf(paths, last);
      if (seen.insert(cover.variants).second && CanBeOrdered(cover)) result.covers.push_back(std::move(cover));
    }
    return result;
  }

  /// For each state the `count` cheapest paths over explored edges. Every edge covers more than before, so states in
  /// the order of how much they cover have their predecessors behind them.
  Paths BestPaths(size_t count) const {
    std::vector<int> order(states_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    const auto num_covered = [&](int s) {
      const StateKey& key = states_[static_cast<size_t>(s)].key;
      return static_cast<size_t>(key.next) + key.beyond.size();
    };
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return num_covered(a) < num_covered(b); });
    Paths paths(states_.size());
    paths[0] = {{0, -1, -1}};
    for (int s : order) {
      std::vector<Path>& own = paths[static_cast<size_t>(s)];
      const std::vector<Arrival>& arrivals = states_[static_cast<size_t>(s)].arrivals;
      for (size_t a = 0; a < arrivals.size(); ++a) {
        const std::vector<Path>& before = paths[static_cast<size_t>(arrivals[a].from)];
        for (size_t b = 0; b < before.size(); ++b) {
          own.push_back({before[b].seconds + arrivals[a].seconds, static_cast<int>(a), static_cast<int>(b)});
        }
      }
      std::stable_sort(own.begin(), own.end(), [](const Path& a, const Path& b) { return a.seconds < b.seconds; });
      if (own.size() > count) own.resize(count);
    }
    return paths;
  }

  Cover CoverOf(const Paths& paths, Path path) const {
    Cover cover{{}, path.seconds};
    int s = final_;
    while (path.arrival >= 0) {
      const Arrival& arrival = states_[static_cast<size_t>(s)].arrivals[static_cast<size_t>(path.arrival)];
      cover.variants.push_back(arrival.variant);
      s = arrival.from;
      path = paths[static_cast<size_t>(s)][static_cast<size_t>(path.before)];
    }
    std::reverse(cover.variants.begin(), cover.variants.end());
    return cover;
  }

  bool CanBeOrdered(const Cover& cover) const {
    std::vector<const SubGraph*> sub_graphs;
    for (int variant : cover.variants) {
      const int candidate = variants_[static_cast<size_t>(variant)].candidate;
      sub_graphs.push_back(&candidates_[static_cast<size_t>(candidate)].sub_graph);
    }
    return collage::CanBeOrdered(graph_, sub_graphs);
  }

  std::vector<int> Stuck() const {
    std::vector<char> coverable(problem_.nodes().size());
    for (size_t v = 0; v < variants_.size(); ++v) {
      if (exact_[v] == kInfinity) continue;
      for (int position : problem_.variant(static_cast<int>(v)).covers) coverable[static_cast<size_t>(position)] = 1;
    }
    std::vector<int> never;
    for (size_t i = 0; i < coverable.size(); ++i) {
      if (coverable[i] == 0) never.push_back(problem_.nodes()[i]);
    }
    return never.empty() ? std::vector<int>(stuck_.begin(), stuck_.end()) : never;
  }

  const DataflowGraph& graph_;
  const std::vector<CandidatePartition>& candidates_;
  const std::vector<CandidateVariant>& variants_;
  CoverCosts& costs_;
  SearchOptions options_;
  CoverProblem problem_;
  int num_positions_;
  std::vector<State> states_;
  std::unordered_map<StateKey, int, StateKeyHash> by_key_;
  std::vector<int> expanded_at_;  ///< by position
  std::vector<double> exact_;     ///< by variant; -1: not asked yet
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
  std::set<int> stuck_;
  int64_t num_pushed_ = 0;
  int64_t num_exact_ = 0;
  int64_t num_dropped_ = 0;
  int final_ = -1;
};

}  // namespace

SearchResult FindCovers(const DataflowGraph& graph, const std::vector<CandidatePartition>& candidates,
                        const std::vector<CandidateVariant>& variants, const std::vector<bool>& eligible,
                        CoverCosts& costs, const SearchOptions& options) {
  return Search(graph, candidates, variants, eligible, costs, options).Run();
}

}  // namespace collage
