// find_covers.cc: lazily costed Dijkstra, and the k best paths over what it explored.
#include "search/find_covers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <queue>
#include <set>
#include <unordered_map>

namespace collage {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct StateKey {
  IndexSet covered;
  IndexSet channels_last;  ///< live values in that layout
  bool operator==(const StateKey&) const = default;
};

struct StateKeyHash {
  size_t operator()(const StateKey& key) const { return key.covered.Hash() * 31 + key.channels_last.Hash(); }
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

/// Something in the queue: an edge whose cost is a bound (`is_exact` false) or a state that was reached.
struct Entry {
  double seconds;
  int priority;
  int64_t number;  ///< breaks ties in the order of insertion
  int state;
  int variant;     ///< -1: the state itself
  double penalty;  ///< conversions and transition of the edge

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
        eligible_(eligible),
        costs_(costs),
        options_(options),
        must_cover_(graph.size()) {
    for (int index = 0; index < static_cast<int>(graph.size()); ++index) {
      const OpDef* op = graph.OpAt(index);
      if (op != nullptr && !op->is_reshape) must_cover_.Add(index);
    }
    for (size_t v = 0; v < variants_.size(); ++v) {
      const IndexSet covers = SubGraphOf(static_cast<int>(v)).inside() & must_cover_;
      if (!covers.IsZero()) by_first_[static_cast<int>(covers.FirstInside())].push_back(static_cast<int>(v));
      covers_.push_back(covers);
    }
  }

  SearchResult Run() {
    Push({0, 0, 0, StateAt({IndexSet(graph_.size()), IndexSet(graph_.size())}), -1, 0});
    states_[0].best = 0;
    double limit = kInfinity;
    while (!queue_.empty() && queue_.top().seconds <= limit) {
      const Entry entry = queue_.top();
      queue_.pop();
      if (entry.variant >= 0) {
        Arrive(entry);
        continue;
      }
      State& state = states_[static_cast<size_t>(entry.state)];
      if (state.is_expanded || entry.seconds > state.best) continue;
      state.is_expanded = true;
      if (state.key.covered == must_cover_) {
        final_ = entry.state;
        // A little beyond the best, for the covers that come next.
        limit = options_.num_covers > 1 ? state.best * 1.02 + 1e-9 : state.best;
        continue;
      }
      Expand(entry.state);
    }
    return Finish();
  }

 private:
  const SubGraph& SubGraphOf(int variant) const {
    return candidates_[static_cast<size_t>(variants_[static_cast<size_t>(variant)].candidate)].sub_graph;
  }
  int PriorityOf(int variant) const {
    return candidates_[static_cast<size_t>(variants_[static_cast<size_t>(variant)].candidate)].toolchain->priority();
  }

  void Push(Entry entry) {
    entry.number = pushed_++;
    queue_.push(entry);
  }

  int StateAt(StateKey key) {
    auto [it, is_new] = by_key_.emplace(key, static_cast<int>(states_.size()));
    if (is_new) states_.push_back({std::move(key)});
    return it->second;
  }

  /// The first must-cover node that `covered` lacks.
  int NextUncovered(const IndexSet& covered) const { return static_cast<int>((must_cover_ - covered).FirstInside()); }

  void Expand(int from) {
    const StateKey key = states_[static_cast<size_t>(from)].key;
    const double so_far = states_[static_cast<size_t>(from)].best;
    const int next = NextUncovered(key.covered);
    if (++expanded_at_[next] > options_.beam) {
      ++num_dropped_;
      return;
    }
    bool any = false;
    auto it = by_first_.find(next);
    if (it != by_first_.end()) {
      for (int variant : it->second) {
        if (!covers_[static_cast<size_t>(variant)].AreDisjoint(key.covered)) continue;
        const double penalty = Penalty(key, variant);
        const double bound = KnownOrBound(variant);
        if (bound == kInfinity) continue;
        any = true;
        Push({so_far + bound + penalty, PriorityOf(variant), 0, from, variant, penalty});
      }
    }
    if (!any) stuck_.insert(next);
  }

  double KnownOrBound(int variant) {
    auto it = exact_.find(variant);
    return it != exact_.end() ? it->second : costs_.LowerBound(variant);
  }

  /// The value a node stands for where layouts are concerned: reshapes and projections are plain.
  Layout LayoutOf(const StateKey& key, int node) const {
    return key.channels_last.Contains(node) ? Layout::kChannelsLast : Layout::kPlain;
  }

  double Penalty(const StateKey& key, int variant) {
    double seconds = costs_.Transition();
    const SubGraph& sub_graph = SubGraphOf(variant);
    const std::vector<Layout>& wanted = variants_[static_cast<size_t>(variant)].layouts.inputs;
    for (size_t i = 0; i < sub_graph.input().size(); ++i) {
      const int node = sub_graph.input()[i];
      // What is not computed yet may still come in any layout; its producer is charged for nothing, this is an
      // underestimate that the play-off corrects.
      const bool computed = !must_cover_.Contains(node) || key.covered.Contains(node);
      if (!computed) continue;
      const Layout has = LayoutOf(key, node);
      if (has != wanted[i]) seconds += costs_.Convert(node, has, wanted[i]);
    }
    return seconds;
  }

  /// An edge came to the front: now its cost must be known.
  void Arrive(const Entry& entry) {
    auto it = exact_.find(entry.variant);
    if (it == exact_.end()) {
      const double exact = costs_.Exact(entry.variant);
      exact_[entry.variant] = exact;
      if (exact == kInfinity) {
        stuck_.insert(static_cast<int>(covers_[static_cast<size_t>(entry.variant)].FirstInside()));
        return;
      }
      const double total = states_[static_cast<size_t>(entry.state)].best + exact + entry.penalty;
      if (total > entry.seconds) return Push({total, entry.priority, 0, entry.state, entry.variant, entry.penalty});
      it = exact_.find(entry.variant);
    }
    const double total = states_[static_cast<size_t>(entry.state)].best + it->second + entry.penalty;
    if (total > entry.seconds) {  // it became known, and dearer, after this edge was queued
      if (total < kInfinity) Push({total, entry.priority, 0, entry.state, entry.variant, entry.penalty});
      return;
    }
    const int target = StateAt(Successor(states_[static_cast<size_t>(entry.state)].key, entry.variant));
    State& state = states_[static_cast<size_t>(target)];
    state.arrivals.push_back({entry.state, entry.variant, it->second + entry.penalty});
    if (total < state.best) {
      state.best = total;
      Push({total, 0, 0, target, -1, 0});
    }
  }

  StateKey Successor(const StateKey& key, int variant) const {
    const SubGraph& sub_graph = SubGraphOf(variant);
    StateKey next{key.covered | covers_[static_cast<size_t>(variant)], key.channels_last};
    const std::vector<Layout>& outputs = variants_[static_cast<size_t>(variant)].layouts.outputs;
    for (size_t i = 0; i < sub_graph.exit().size() && i < outputs.size(); ++i) {
      if (outputs[i] == Layout::kChannelsLast) next.channels_last.Add(sub_graph.exit()[i]);
    }
    for (int node : next.channels_last.Members()) {
      if (!IsLive(node, next.covered)) next.channels_last.Remove(node);
    }
    return next;
  }

  bool IsLive(int node, const IndexSet& covered) const {
    for (int user : graph_.node(node).outputs) {
      if (must_cover_.Contains(user) ? !covered.Contains(user) : true) return true;
    }
    return graph_.node(node).is_external;
  }

  /// The k least-cost paths over the explored edges: states in order of what they cover, k labels each.
  SearchResult Finish() {
    SearchResult result;
    result.num_states = static_cast<int64_t>(states_.size());
    result.num_dropped = num_dropped_;
    if (final_ < 0) {
      result.stuck_at.assign(stuck_.begin(), stuck_.end());
      return result;
    }
    struct Label {
      double seconds;
      int arrival;
      int label;
    };
    std::vector<int> order(states_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    std::vector<size_t> count(states_.size());
    for (size_t i = 0; i < order.size(); ++i) count[i] = states_[i].key.covered.PopCount();
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return count[static_cast<size_t>(a)] < count[static_cast<size_t>(b)]; });
    std::vector<std::vector<Label>> labels(states_.size());
    labels[0] = {{0, -1, -1}};
    for (int s : order) {
      std::vector<Label>& own = labels[static_cast<size_t>(s)];
      const State& state = states_[static_cast<size_t>(s)];
      for (size_t a = 0; a < state.arrivals.size(); ++a) {
        const Arrival& arrival = state.arrivals[a];
        const std::vector<Label>& before = labels[static_cast<size_t>(arrival.from)];
        for (size_t l = 0; l < before.size(); ++l) {
          own.push_back({before[l].seconds + arrival.seconds, static_cast<int>(a), static_cast<int>(l)});
        }
      }
      std::stable_sort(own.begin(), own.end(), [](const Label& a, const Label& b) { return a.seconds < b.seconds; });
      if (own.size() > static_cast<size_t>(options_.num_covers) && s != 0) own.resize(static_cast<size_t>(options_.num_covers));
    }
    std::set<std::vector<int>> seen;
    for (const Label& last : labels[static_cast<size_t>(final_)]) {
      Cover cover{{}, last.seconds};
      int s = final_;
      Label label = last;
      while (label.arrival >= 0) {
        const Arrival& arrival = states_[static_cast<size_t>(s)].arrivals[static_cast<size_t>(label.arrival)];
        cover.variants.push_back(arrival.variant);
        s = arrival.from;
        label = labels[static_cast<size_t>(s)][static_cast<size_t>(label.label)];
      }
      std::reverse(cover.variants.begin(), cover.variants.end());
      std::vector<int> sorted = cover.variants;
      std::sort(sorted.begin(), sorted.end());
      if (seen.insert(std::move(sorted)).second) result.covers.push_back(std::move(cover));
    }
    return result;
  }

  const DataflowGraph& graph_;
  const std::vector<CandidatePartition>& candidates_;
  const std::vector<CandidateVariant>& variants_;
  const std::vector<bool>& eligible_;
  CoverCosts& costs_;
  SearchOptions options_;
  IndexSet must_cover_;
  std::vector<IndexSet> covers_;
  std::unordered_map<int, std::vector<int>> by_first_;
  std::vector<State> states_;
  std::unordered_map<StateKey, int, StateKeyHash> by_key_;
  std::unordered_map<int, double> exact_;
  std::unordered_map<int, int> expanded_at_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
  std::set<int> stuck_;
  int64_t pushed_ = 0;
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
