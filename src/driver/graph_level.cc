// graph_level.cc: handing over, merging neighbours, and what may be handed over at all.
#include "driver/graph_level.h"

#include <algorithm>

#include "collage/support/error.h"
#include "partition/rewrite.h"

namespace collage {
namespace {

/// Tuples and projections through which values of `a` reach `b`, and nothing else.
std::vector<int> GlueBetween(const DataflowGraph& graph, const SubGraph& a, const SubGraph& b) {
  std::vector<int> glue;
  const auto is_glue = [&](int node) {
    const ExprKind kind = graph.node(node).expr->kind();
    return kind == ExprKind::kTuple || kind == ExprKind::kTupleGetItem;
  };
  for (int node : a.output()) {
    const std::vector<int>& readers = graph.node(node).outputs;
    const auto reads = [&](int reader) { return b.inside().Contains(reader); };
    if (is_glue(node) && !b.inside().Contains(node) && std::any_of(readers.begin(), readers.end(), reads)) {
      glue.push_back(node);
    }
  }
  return glue;
}

bool Touch(const SubGraph& a, const SubGraph& b, const std::vector<int>& glue) {
  return !glue.empty() ||
         std::any_of(a.output().begin(), a.output().end(), [&](int node) { return b.inside().Contains(node); });
}

class Merger {
 public:
  Merger(const DataflowGraph& graph, std::vector<CandidatePartition> partitions, std::vector<char> may_merge)
      : graph_(graph), partitions_(std::move(partitions)), may_merge_(std::move(may_merge)) {}

  /// Each merge leaves one partition less, so this ends.
  std::vector<CandidatePartition> Run() {
    for (size_t i = 0; i < partitions_.size(); ++i) {
      bool grew = may_merge_[i] != 0;
      while (grew) {
        grew = false;
        for (size_t j = i + 1; j < partitions_.size() && !grew; ++j) grew = may_merge_[j] != 0 && TryMerge(i, j);
      }
    }
    return std::move(partitions_);
  }

 private:
  bool TryMerge(size_t i, size_t j) {
    const CandidatePartition& a = partitions_[i];
    const CandidatePartition& b = partitions_[j];
    if (a.toolchain != b.toolchain) return false;
    std::vector<int> glue = GlueBetween(graph_, a.sub_graph, b.sub_graph);
    const std::vector<int> back = GlueBetween(graph_, b.sub_graph, a.sub_graph);
    if (!Touch(a.sub_graph, b.sub_graph, glue) && !Touch(b.sub_graph, a.sub_graph, back)) return false;
    glue.insert(glue.end(), back.begin(), back.end());
    SubGraph merged = DisjointUnion(graph_, a.sub_graph, b.sub_graph, glue);
    if (!merged.CheckValid(graph_, {.allow_taps = true}).ok()) return false;
    std::vector<const SubGraph*> all{&merged};
    for (size_t k = 0; k < partitions_.size(); ++k) {
      if (k == i || k == j) continue;
      // Glue may be inside of another partition already.
      if (Overlap(graph_, merged, partitions_[k].sub_graph)) return false;
      all.push_back(&partitions_[k].sub_graph);
    }
    if (!CanBeOrdered(graph_, all)) return false;
    partitions_[i] = {"graph-level", std::move(merged), a.toolchain};
    partitions_.erase(partitions_.begin() + static_cast<std::ptrdiff_t>(j));
    may_merge_.erase(may_merge_.begin() + static_cast<std::ptrdiff_t>(j));
    return true;
  }

  const DataflowGraph& graph_;
  std::vector<CandidatePartition> partitions_;
  std::vector<char> may_merge_;
};

bool SupportsAll(const DataflowGraph& graph, const Toolchain& toolchain, const SubGraph& sub_graph) {
  if (!toolchain.PatternTable().empty()) return false;  // takes its patterns only
  return std::all_of(sub_graph.members().begin(), sub_graph.members().end(), [&](int node) {
    const CallNode* call = graph.OpAt(node) == nullptr ? nullptr : As<CallNode>(graph.node(node).expr);
    return call == nullptr || toolchain.SupportsCall(*call).ok();
  });
}

}  // namespace

std::vector<CandidatePartition> HandOver(const DataflowGraph& graph, const std::vector<CandidatePartition>& base,
                                         const std::vector<const Toolchain*>& choice) {
  COLLAGE_CHECK(base.size() == choice.size()) << choice.size() << " choices for " << base.size() << " partitions";
  std::vector<CandidatePartition> partitions = base;
  std::vector<char> may_merge(base.size());
  for (size_t i = 0; i < base.size(); ++i) {
    if (choice[i] != nullptr && choice[i] != base[i].toolchain) {
      partitions[i].sub_graph.nested.clear();
      partitions[i].toolchain = choice[i];
      partitions[i].rule_name = "graph-level";
    }
    may_merge[i] = std::find(choice.begin(), choice.end(), partitions[i].toolchain) != choice.end() ? 1 : 0;
  }
  return Merger(graph, std::move(partitions), std::move(may_merge)).Run();
}

GraphLevelResult EvolveGraphLevel(const DataflowGraph& graph, const std::vector<CandidatePartition>& base,
                                  const std::vector<const Toolchain*>& toolchains, const EvolutionOptions& options,
                                  const std::function<double(const std::vector<CandidatePartition>&)>& measure) {
  std::vector<std::vector<const Toolchain*>> alleles;
  std::vector<int> num_alleles;
  for (const CandidatePartition& partition : base) {
    alleles.push_back({nullptr});
    for (const Toolchain* toolchain : toolchains) {
      if (toolchain == partition.toolchain || !SupportsAll(graph, *toolchain, partition.sub_graph)) continue;
      alleles.back().push_back(toolchain);
    }
    num_alleles.push_back(static_cast<int>(alleles.back().size()));
  }
  const auto realise = [&](const Genome& genome) {
    std::vector<const Toolchain*> choice;
    for (size_t i = 0; i < genome.size(); ++i) choice.push_back(alleles[i][static_cast<size_t>(genome[i])]);
    return HandOver(graph, base, choice);
  };
  std::vector<Genome> seeds;  // all that a toolchain supports
  for (const Toolchain* toolchain : toolchains) {
    Genome& genome = seeds.emplace_back();
    for (const auto& of_gene : alleles) {
      const auto it = std::find(of_gene.begin(), of_gene.end(), toolchain);
      genome.push_back(it == of_gene.end() ? 0 : static_cast<int>(it - of_gene.begin()));
    }
  }
  const EvolutionResult evolved =
      Evolve(num_alleles, std::move(seeds), options, [&](const Genome& genome) { return measure(realise(genome)); });
  return {realise(evolved.best), evolved.fitness, evolved.num_evaluations};
}

}  // namespace collage
