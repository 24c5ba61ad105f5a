// cover_problem.cc: positions, readers and format uses of a dataflow graph; the cost of a cover by definition.
#include "search/cover_problem.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "collage/support/error.h"
#include "dataflow/needs.h"
#include "search/partition_order.h"
#include "support/sort_unique.h"

namespace collage {
namespace {

class ProblemBuilder {
 public:
  ProblemBuilder(const DataflowGraph& graph, const std::vector<bool>& eligible)
      : graph_(graph), eligible_(eligible), position_(graph.size(), kNone) {
    for (int index = 0; index < static_cast<int>(graph.size()); ++index) {
      if (!MustBeCovered(graph, index)) continue;
      position_[index] = problem_.nodes.next();
      problem_.nodes.push_back(index);
    }
    problem_.num_positions = static_cast<int>(problem_.nodes.size());
    FindReaders();
  }

  CoverProblem Build(const CandidateList& candidates, const VariantList& variants) {
    CandidateIndex boundary_of(-1);
    Boundary boundary;
    bool any_members = false;
    std::map<const Toolchain*, int> numbers;
    for (const CandidateVariant& variant : variants) {
      const CandidatePartition& candidate = candidates[variant.candidate];
      if (variant.candidate != boundary_of && HasFormats()) boundary = BoundaryOf(graph_, candidate.sub_graph);
      boundary_of = variant.candidate;
      CoverVariant made = VariantOf(candidate.sub_graph);
      if (HasFormats()) AddUses(boundary, variant.layouts, candidate.sub_graph, made);
      made.priority = candidate.toolchain->priority();
      made.toolchain = numbers.emplace(candidate.toolchain, static_cast<int>(numbers.size())).first->second;
      any_members = any_members || !made.members.empty();
      problem_.variants.push_back(std::move(made));
    }
    if (any_members) {
      for (int index = 0; index < static_cast<int>(graph_.size()); ++index) {
        problem_.node_inputs.push_back(NeedsOf(graph_, index));
      }
    }
    return std::move(problem_);
  }

 private:
  static constexpr Position kNone{-1};  ///< of a node that needs no cover

  Position PositionOf(int node) const { return position_[node]; }
  bool MustCover(int node) const { return position_[node] != kNone; }
  bool IsEligible(int node) const { return eligible_[node]; }
  bool HasFormats() const { return !problem_.values.empty(); }

  void FindReaders() {
    for (int value = 0; value < static_cast<int>(graph_.size()); ++value) {
      if (!IsEligible(value) || !MustCover(value)) continue;
      std::vector<Position>& readers = problem_.values[value].readers;
      problem_.values[value].maker = PositionOf(value);
      std::vector<int> work{value};
      for (size_t i = 0; i < work.size(); ++i) {
        for (int user : graph_.node(work[i]).outputs) {
          if (MustCover(user)) {
            readers.push_back(PositionOf(user));
          } else if (graph_.node(user).is_external) {
            problem_.returned.push_back({value, 0});
          } else if (std::find(work.begin(), work.end(), user) == work.end()) {
            work.push_back(user);
          }
        }
      }
      SortUnique(readers);
    }
    SortUnique(problem_.returned);
  }

  /// The value whose format counts when `node` is read: looks through what the host does. -1 when it is plain anyway.
  int SourceOf(int node) const {
    for (;;) {
      if (MustCover(node)) return IsEligible(node) ? node : -1;
      const OpDef* op = graph_.OpAt(node);
      if (op == nullptr) return -1;        // a parameter, or a field of something: plain
      node = graph_.node(node).inputs[1];  // a reshape's data; [0] is the operator
    }
  }

  CoverVariant VariantOf(const SubGraph& sub_graph) const {
    CoverVariant variant;
    for (int node : sub_graph.members()) {
      if (MustCover(node)) variant.covers.push_back(PositionOf(node));
    }
    if (sub_graph.exit().size() > 1) {
      std::copy_if(sub_graph.members().begin(), sub_graph.members().end(), std::back_inserter(variant.members),
                   [&](int node) { return !graph_.IsCopied(node); });
    }
    return variant;
  }

  void AddUses(const Boundary& boundary, const BoundaryLayouts& layouts, const SubGraph& sub_graph,
               CoverVariant& variant) const {
    COLLAGE_CHECK(boundary.inputs.size() == layouts.inputs.size() && boundary.outputs.size() == layouts.outputs.size())
        << "layouts do not fit the boundary of " << sub_graph.inside().ToString();
    for (size_t i = 0; i < boundary.inputs.size(); ++i) {
      const BoundaryValue& input = boundary.inputs[i];
      const int source = input.field < 0 ? SourceOf(input.node) : -1;
      if (source < 0) continue;
      // The host always uses the plain format of a value.
      const Layout layout = source == input.node ? layouts.inputs[i] : Layout::kPlain;
      variant.wants.push_back({source, static_cast<Format>(layout)});
    }
    SortUnique(variant.wants);
    for (size_t i = 0; i < boundary.outputs.size(); ++i) {
      const BoundaryValue& output = boundary.outputs[i];
      if (output.field >= 0 || !IsEligible(output.node) || !MustCover(output.node)) continue;
      variant.makes.push_back({output.node, static_cast<Format>(layouts.outputs[i])});
    }
  }

  const DataflowGraph& graph_;
  const std::vector<bool>& eligible_;
  std::vector<Position> position_;  ///< by node
  CoverProblem problem_;
};

}  // namespace

bool MustBeCovered(const DataflowGraph& graph, int index) {
  if (graph.node(index).is_in_primitive) return false;
  if (graph.boundaries() == Boundaries::kExact) return graph.LabelAt(index) != "call_prim";
  const OpDef* op = graph.OpAt(index);
  return op != nullptr && !op->is_reshape;
}

std::vector<int> CoverProblem::NodesAt(const std::vector<Position>& at) const {
  std::vector<int> result;
  for (Position position : at) result.push_back(nodes.empty() ? position.number() : nodes[position]);
  return result;
}

IndexedVector<Position, std::vector<VariantIndex>> CoverProblem::StartingAt() const {
  IndexedVector<Position, std::vector<VariantIndex>> starting(num_positions);
  for (VariantIndex v : variants.indices()) {
    if (variants[v].covers.empty()) continue;
    starting[variants[v].covers.front()].push_back(v);
  }
  return starting;
}

CoverProblem CoverProblem::Of(const OriginalVariants& selected) const {
  CoverProblem part{num_positions, {}, values, returned, node_inputs, nodes};
  part.variants.reserve(selected.size());
  for (VariantIndex v : selected) part.variants.push_back(variants[v]);
  return part;
}

CoverProblem CoverProblem::Reversed() const {
  CoverProblem reversed = *this;
  const auto mirror = [&](std::vector<Position>& positions) {
    for (Position& position : positions) position = Mirrored(position);
    std::reverse(positions.begin(), positions.end());
  };
  for (CoverVariant& variant : reversed.variants) mirror(variant.covers);
  for (auto& [id, value] : reversed.values) {
    value.maker = Mirrored(value.maker);
    mirror(value.readers);
  }
  return reversed;
}

CoverProblem MakeCoverProblem(const DataflowGraph& graph, const CandidateList& candidates, const VariantList& variants,
                              const std::vector<bool>& eligible) {
  return ProblemBuilder(graph, eligible).Build(candidates, variants);
}

double CoverSeconds(const CoverProblem& problem, const std::vector<VariantIndex>& variants,
                    const IndexedVector<VariantIndex, double>& exact, CoverCosts& costs) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  IndexedVector<Position, char> covered(problem.num_positions);
  std::unordered_map<int, Format> made;  // value → format
  std::set<FormatUse> wanted(problem.returned.begin(), problem.returned.end()), converted;
  PartitionOrder order(problem);
  std::vector<VariantIndex> ordered;
  double seconds = 0;
  int num_covered = 0;
  std::optional<VariantIndex> previous;
  for (VariantIndex v : variants) {
    const CoverVariant& variant = problem.variants[v];
    if (!order.CanJoin(ordered, v)) return kInfinity;
    if (order.IsRisky(v)) ordered.push_back(v);
    double penalty = costs.Transition(v);
    if (previous) penalty += costs.SwitchPenalty(costs.PlaceOf(*previous), costs.PlaceOf(v));
    previous = v;
    for (const FormatUse& want : variant.wants) {
      wanted.insert(want);
      const auto maker = made.find(want.value);
      if (maker == made.end() || maker->second == want.format || !converted.insert(want).second) continue;
      penalty += costs.Convert(want.value, maker->second, want.format);
    }
    for (const FormatUse& make : variant.makes) {
      made[make.value] = make.format;
      for (auto it = wanted.lower_bound({make.value, 0}); it != wanted.end() && it->value == make.value; ++it) {
        if (it->format == make.format || !converted.insert(*it).second) continue;
        penalty += costs.Convert(make.value, make.format, it->format);
      }
    }
    seconds += exact[v] + penalty;
    for (Position position : variant.covers) {
      if (covered[position]++ != 0) return kInfinity;
      ++num_covered;
    }
  }
  return num_covered == problem.num_positions ? seconds : kInfinity;
}

}  // namespace collage
