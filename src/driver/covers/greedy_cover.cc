// greedy_cover.cc: largest candidates first.
#include "driver/covers/greedy_cover.h"

#include <algorithm>
#include <set>
#include <string>

#include "partition/fusion_groups.h"

namespace collage {
namespace {

/// Names of Composites that no greedy row of the toolchain's pattern table has.
std::set<std::string> NamesOfRowsLeftOut(const Toolchain& toolchain) {
  std::set<std::string> names;
  std::set<std::string> greedy;
  for (const PatternTableEntry& entry : toolchain.PatternTable()) (entry.is_greedy ? greedy : names).insert(entry.name);
  for (const std::string& name : greedy) names.erase(name);
  return names;
}

/// Whether a Composite of one of these names is in `sub_graph`.
bool HoldsComposite(const SubGraph& sub_graph, const std::set<std::string>& names) {
  return std::any_of(sub_graph.nested.begin(), sub_graph.nested.end(), [&](const NestedSubGraph& nested) {
    return names.contains(nested.attrs.StringOr("Composite", ""));
  });
}

/// Pairs of a value and its reader that is to be computed in the registers of what makes it: element-wise behind an
/// anchor, or what makes narrower integers.
using ReadersOfRegisters = std::set<std::pair<int, int>>;

/// Adds pairs whose reader is in `sub_graph`. With `both_inside` the value must be made there, too; without, none of
/// the reader's operands may be.
void AddReaders(const DataflowGraph& graph, const SubGraph& sub_graph, bool both_inside, ReadersOfRegisters& pairs) {
  const auto is_made_inside = [&](int input) {
    return graph.OpAt(input) != nullptr && sub_graph.inside().Contains(input);
  };
  for (const int reader : sub_graph.members()) {
    if (graph.OpAt(reader) == nullptr || graph.KindAt(reader) > OpPatternKind::kBroadcast) continue;
    const std::vector<int>& inputs = graph.node(reader).inputs;
    if (std::ranges::any_of(inputs, is_made_inside) != both_inside) continue;
    for (const int input : inputs) {
      if (graph.OpAt(input) == nullptr || is_made_inside(input) != both_inside) continue;
      const bool is_anchor = graph.KindAt(input) == OpPatternKind::kOutEWiseFusable;
      if (is_anchor || graph.OpAt(reader)->name == "qnn.quantize") pairs.emplace(input, reader);
    }
  }
}

/// Whether `sub_graph` begins with a reader of `pairs`.
bool TakesFromRegisters(const DataflowGraph& graph, const SubGraph& sub_graph, const ReadersOfRegisters& pairs) {
  ReadersOfRegisters taken;
  AddReaders(graph, sub_graph, /*both_inside=*/false, taken);
  return std::ranges::any_of(taken, [&](const std::pair<int, int>& pair) { return pairs.contains(pair); });
}

/// Takes each variant in turn that fits what is left of `all` nodes, and takes its nodes out of `left`.
Cover TakeGreedily(const Candidates& candidates, const std::vector<VariantIndex>& order, const IndexSet& all,
                   IndexSet& left) {
  Cover cover;
  for (VariantIndex variant : order) {
    const IndexSet covers = candidates.CandidateOf(variant).sub_graph.inside() & all;
    if (covers.IsZero() || !covers.IsSubset(left)) continue;
    cover.variants.push_back(variant);
    left = left - covers;
  }
  return cover;
}

/// When a variant's turn is: lower numbers first.
enum Turn : int { kItsOwn = 0, kFallBack = 1, kItsOwnLeftOut = 2 };

/// The variants to be taken, in their order.
class GreedyOrder {
 public:
  GreedyOrder(const Candidates& candidates, const Toolchain& toolchain, const GreedyOptions& options)
      : candidates_(candidates), toolchain_(toolchain) {
    const DataflowGraph& graph = candidates.graph();
    const auto may_take = [&](const CandidatePartition& candidate) {
      return !options.may_take || options.may_take(candidate);
    };
    for (const CandidatePartition& candidate : candidates.candidates()) {
      if (candidate.toolchain != &toolchain || !may_take(candidate)) continue;
      AddReaders(graph, candidate.sub_graph, /*both_inside=*/true, together_);
    }
    const std::set<std::string> left_out = NamesOfRowsLeftOut(toolchain);
    for (VariantIndex v : candidates.variants().indices()) {
      const CandidatePartition& candidate = candidates.CandidateOf(v);
      if (candidate.toolchain != &toolchain && candidate.toolchain != options.fall_back) continue;
      if (!may_take(candidate)) continue;
      // The gain of keeping values as narrower types depends on the neighbours, which are not known here.
      if (!KeepsNarrow(candidates.variant(v).layouts)) ranks_.push_back(RankOf(v, left_out));
    }
    std::stable_sort(ranks_.begin(), ranks_.end(), [](const Rank& a, const Rank& b) {
      if (a.turn != b.turn) return a.turn < b.turn;
      return a.takes != b.takes ? !a.takes : a.size > b.size;
    });
  }

  std::vector<VariantIndex> variants() const {
    std::vector<VariantIndex> variants;
    for (const Rank& rank : ranks_) variants.push_back(rank.variant);
    return variants;
  }

 private:
  struct Rank {
    VariantIndex variant;
    Turn turn;
    /// Whether it takes from another partition what can be computed in that one's registers: it has more operators, and
    /// the wider value that it reads has to be stored.
    bool takes;
    size_t size;
  };

  Rank RankOf(VariantIndex variant, const std::set<std::string>& left_out) const {
    const CandidatePartition& candidate = candidates_.CandidateOf(variant);
    Rank rank{variant, kFallBack, false, candidate.sub_graph.members().size()};
    if (candidate.toolchain != &toolchain_) return rank;
    rank.turn = HoldsComposite(candidate.sub_graph, left_out) ? kItsOwnLeftOut : kItsOwn;
    rank.takes = rank.turn == kItsOwn && TakesFromRegisters(candidates_.graph(), candidate.sub_graph, together_);
    return rank;
  }

  const Candidates& candidates_;
  const Toolchain& toolchain_;
  ReadersOfRegisters together_;
  std::vector<Rank> ranks_;
};

IndexSet AllThatMustBeCovered(const DataflowGraph& graph) {
  IndexSet nodes(graph.size());
  for (int index = 0; index < static_cast<int>(graph.size()); ++index) {
    if (MustBeCovered(graph, index)) nodes.Add(index);
  }
  return nodes;
}

}  // namespace

std::optional<Cover> GreedyCover(Partitioner& partitioner, const Toolchain& toolchain, const GreedyOptions& options,
                                 std::vector<int>* open) {
  GreedyOptions own = options;
  if (own.fall_back != nullptr && WhyIncompatible(toolchain, *own.fall_back)) own.fall_back = nullptr;
  const Candidates& candidates = partitioner.candidates();
  std::vector<VariantIndex> order = GreedyOrder(candidates, toolchain, own).variants();
  const IndexSet all = AllThatMustBeCovered(candidates.graph());
  for (;;) {
    IndexSet left = own.nodes.value_or(all);
    Cover cover = TakeGreedily(candidates, order, all, left);
    if (!left.IsZero()) {
      if (open != nullptr) {
        for (int node : left.Members()) open->push_back(node);
      }
      return std::nullopt;
    }
    partitioner.Prepare(cover.variants);
    for (VariantIndex variant : cover.variants) partitioner.Exact(variant);
    const size_t num_before = order.size();
    std::erase_if(order, [&](VariantIndex variant) { return partitioner.IsInvalid(variant); });
    if (order.size() == num_before) return cover;
  }
}

std::optional<Cover> FuseOpsCover(Partitioner& partitioner, const Toolchain& toolchain, const Toolchain* fall_back,
                                  int64_t max_calls) {
  const DataflowGraph& graph = partitioner.candidates().graph();
  std::vector<int> function_of(graph.size(), -1);  // by node that calls an operator
  int num_functions = 0;
  for (const std::vector<int>& group : FusionGroups(graph, max_calls)) {
    for (const int node : group) function_of[static_cast<size_t>(node)] = num_functions;
    ++num_functions;
  }
  const auto is_in_one = [&](const CandidatePartition& candidate) {
    int function = -1;
    return std::ranges::all_of(candidate.sub_graph.members(), [&](int node) {
      if (graph.OpAt(node) == nullptr) return true;
      if (function < 0) function = function_of[static_cast<size_t>(node)];
      return function_of[static_cast<size_t>(node)] == function;
    });
  };
  return GreedyCover(partitioner, toolchain, {.fall_back = fall_back, .may_take = is_in_one}, nullptr);
}

}  // namespace collage
