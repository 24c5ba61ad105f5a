// cover_problem.cc: positions, readers and format uses of a dataflow graph; the cost of a cover by definition.
#include "search/cover_problem.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "collage/support/error.h"
#include "dataflow/needs.h"
#include "ir/ops/annotation.h"
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
    problem_.num_nodes = static_cast<int>(graph.size());
  }

  CoverProblem Build(const CandidateList& candidates, const VariantList& variants) {
    has_memories_ = std::ranges::any_of(variants, [](const CandidateVariant& variant) {
      const auto is_elsewhere = [](Layout layout) { return MemoryOf(layout) != Memory::kHost; };
      return std::ranges::any_of(variant.layouts.inputs, is_elsewhere) ||
             std::ranges::any_of(variant.layouts.outputs, is_elsewhere);
    });
    FindValues();
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
    ForgetPlainValues();
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
  bool HasFormats() const { return !problem_.values.empty(); }

  void FindValues() {
    for (int node = 0; node < problem_.num_nodes; ++node) {
      const Expr& expr = graph_.node(node).expr;
      const bool is_tensor = AsTensorType(expr->checked_type()) != nullptr;
      if (MustCover(node)) {
        if (eligible_[node] || (has_memories_ && is_tensor)) {
          AddValue(node, {node}, PositionOf(node));
        } else if (const TupleTypeNode* tuple = has_memories_ ? AsTupleType(expr->checked_type()) : nullptr) {
          for (int field = 0; field < static_cast<int>(tuple->fields().size()); ++field) {
            problem_.fields.push_back({node, field});
            AddValue(problem_.num_nodes + static_cast<int>(problem_.fields.size()) - 1, {node, field},
                     PositionOf(node));
          }
        }
      } else if (has_memories_ && is_tensor && node < std::ssize(graph_.function()->params())) {
        AddValue(node, {node}, FormattedValue::kGiven);
      }
    }
    SortUnique(problem_.returned);
  }

  /// Adds a value with its readers.
  void AddValue(int number, const BoundaryValue& value, Position maker) {
    FormattedValue& added = problem_.values[number];
    added.maker = maker;
    std::vector<int> work{value.node};
    for (size_t i = 0; i < work.size(); ++i) {
      for (int user : graph_.node(work[i]).outputs) {
        const TupleGetItemNode* projection = As<TupleGetItemNode>(graph_.node(user).expr);
        const bool is_other = i == 0 && value.field >= 0 && projection != nullptr && projection->index() != value.field;
        if (is_other) continue;
        if (MustCover(user)) {
          added.readers.push_back(PositionOf(user));
        } else if (graph_.node(user).is_external) {
          problem_.returned.push_back({number, 0});
        } else if (std::find(work.begin(), work.end(), user) == work.end()) {
          work.push_back(user);
        }
      }
    }
    SortUnique(added.readers);
  }

  /// A value that a partition reads, and whether the host reshapes it before.
  struct Source {
    int value = -1;  ///< -1: one that is always plain, in the host's memory
    bool is_reshaped = false;
  };

  /// The value whose format counts when `read` is read: looks through what the host does.
  Source SourceOf(BoundaryValue read) const {
    for (Source source;;) {
      const auto& inputs = graph_.node(read.node).inputs;
      const ExprKind kind = graph_.node(read.node).expr->kind();
      if (MustCover(read.node) || kind == ExprKind::kVar) {
        source.value = NumberOf(read);
        return source;
      }
      if (kind == ExprKind::kTuple && read.field >= 0) {
        read = {inputs[static_cast<size_t>(read.field)]};
      } else if (kind == ExprKind::kTupleGetItem && read.field < 0) {
        read = {inputs[0], As<TupleGetItemNode>(graph_.node(read.node).expr)->index()};
      } else if (const OpDef* op = graph_.OpAt(read.node)) {
        source.is_reshaped = source.is_reshaped || op->is_reshape;
        read = {inputs[1], read.field};  // what it reads; [0] is the operator
      } else {
        return source;
      }
    }
  }

  /// -1 for a value without formats.
  int NumberOf(const BoundaryValue& value) const {
    if (value.field < 0) return problem_.values.contains(value.node) ? value.node : -1;
    const auto field = std::ranges::lower_bound(problem_.fields, value);  // they were found in this order
    const bool is_known = field != problem_.fields.end() && *field == value;
    return is_known ? problem_.num_nodes + static_cast<int>(field - problem_.fields.begin()) : -1;
  }

  /// Values that nobody reads or makes but in the host's format need no memory of a search: most of them, where only a
  /// few operators may run elsewhere.
  void ForgetPlainValues() {
    if (!has_memories_) return;
    std::set<int> used;
    for (const CoverVariant& variant : problem_.variants) {
      for (const std::vector<FormatUse>* uses : {&variant.wants, &variant.makes}) {
        for (const FormatUse& use : *uses) {
          if (use.format != 0) used.insert(use.value);
        }
      }
    }
    const auto is_plain = [&](const FormatUse& use) { return !used.contains(use.value); };
    std::erase_if(problem_.values, [&](const auto& value) { return !used.contains(value.first); });
    for (CoverVariant& variant : problem_.variants) {
      std::erase_if(variant.wants, is_plain);
      std::erase_if(variant.makes, is_plain);
    }
    std::erase_if(problem_.returned, is_plain);
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
      const Source source = SourceOf(boundary.inputs[i]);
      if (source.value < 0) continue;
      // A value is reshaped in plain order, where it is read.
      const Layout read = layouts.inputs[i];
      const Layout layout = source.is_reshaped ? In(MemoryOf(read), Layout::kPlain) : read;
      variant.wants.push_back({source.value, static_cast<Format>(layout)});
    }
    SortUnique(variant.wants);
    for (size_t i = 0; i < boundary.outputs.size(); ++i) {
      const BoundaryValue& output = boundary.outputs[i];
      const int value = MustCover(output.node) ? NumberOf(output) : -1;
      if (value >= 0) variant.makes.push_back({value, static_cast<Format>(layouts.outputs[i])});
    }
  }

  const DataflowGraph& graph_;
  const std::vector<bool>& eligible_;
  bool has_memories_ = false;       ///< whether any variant reads or makes values in another memory than the host's
  std::vector<Position> position_;  ///< by node
  CoverProblem problem_;
};

}  // namespace

bool MustBeCovered(const DataflowGraph& graph, int index) {
  if (graph.node(index).is_in_primitive) return false;
  if (graph.boundaries() == Boundaries::kExact) return graph.LabelAt(index) != "call_prim";
  const OpDef* op = graph.OpAt(index);
  return op != nullptr && !op->is_reshape && !SaysWhere(*op);
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
  CoverProblem part{num_positions, {}, values, num_nodes, fields, returned, node_inputs, nodes};
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
    if (value.maker != FormattedValue::kGiven) value.maker = Mirrored(value.maker);
    mirror(value.readers);
  }
  return reversed;
}

CoverProblem MakeCoverProblem(const DataflowGraph& graph, const CandidateList& candidates, const VariantList& variants,
                              const std::vector<bool>& eligible) {
  return ProblemBuilder(graph, eligible).Build(candidates, variants);
}

std::optional<std::vector<CoverPenalties>> PenaltiesOf(const CoverProblem& problem,
                                                       const std::vector<VariantIndex>& variants, CoverCosts& costs) {
  IndexedVector<Position, char> covered(problem.num_positions);
  std::unordered_map<int, Format> made;  // value → format
  std::set<FormatUse> wanted(problem.returned.begin(), problem.returned.end()), converted;
  PartitionOrder order(problem);
  std::vector<VariantIndex> ordered;
  std::vector<CoverPenalties> all;
  int num_covered = 0;
  std::optional<VariantIndex> previous;
  for (VariantIndex v : variants) {
    const CoverVariant& variant = problem.variants[v];
    if (!order.CanJoin(ordered, v)) return std::nullopt;
    if (order.IsRisky(v)) ordered.push_back(v);
    CoverPenalties& penalties = all.emplace_back();
    penalties.transition = costs.Transition(v);
    if (previous) penalties.toolchain_switch = costs.SwitchPenalty(costs.PlaceOf(*previous), costs.PlaceOf(v));
    previous = v;
    const auto convert = [&](int value, Format from, Format to) {
      penalties.conversions.push_back({value, from, to, costs.Convert(value, from, to)});
    };
    for (const FormatUse& want : variant.wants) {
      wanted.insert(want);
      if (problem.values.at(want.value).maker == FormattedValue::kGiven) made.emplace(want.value, 0);
      const auto maker = made.find(want.value);
      if (maker == made.end() || maker->second == want.format || !converted.insert(want).second) continue;
      convert(want.value, maker->second, want.format);
    }
    for (const FormatUse& make : variant.makes) {
      made[make.value] = make.format;
      for (auto it = wanted.lower_bound({make.value, 0}); it != wanted.end() && it->value == make.value; ++it) {
        if (it->format == make.format || !converted.insert(*it).second) continue;
        convert(make.value, make.format, it->format);
      }
    }
    for (Position position : variant.covers) {
      if (covered[position]++ != 0) return std::nullopt;
      ++num_covered;
    }
  }
  if (num_covered != problem.num_positions) return std::nullopt;
  return all;
}

double CoverSeconds(const CoverProblem& problem, const std::vector<VariantIndex>& variants,
                    const IndexedVector<VariantIndex, double>& exact, CoverCosts& costs) {
  const std::optional<std::vector<CoverPenalties>> penalties = PenaltiesOf(problem, variants, costs);
  if (!penalties) return std::numeric_limits<double>::infinity();
  double seconds = 0;
  for (size_t i = 0; i < variants.size(); ++i) {
    const CoverPenalties& own = (*penalties)[i];
    double penalty = own.transition + own.toolchain_switch;
    for (const CoverConversion& conversion : own.conversions) penalty += conversion.seconds;
    seconds += exact[variants[i]] + penalty;
  }
  return seconds;
}

}  // namespace collage
