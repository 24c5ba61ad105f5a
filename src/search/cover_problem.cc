// cover_problem.cc: positions, readers and layout uses.
#include "search/cover_problem.h"

#include <algorithm>

#include "collage/support/error.h"

namespace collage {
namespace {

void SortUnique(std::vector<LayoutUse>& uses) {
  std::sort(uses.begin(), uses.end());
  uses.erase(std::unique(uses.begin(), uses.end()), uses.end());
}

}  // namespace

CoverProblem::CoverProblem(const DataflowGraph& graph, const std::vector<CandidatePartition>& candidates,
                           const std::vector<CandidateVariant>& variants, const std::vector<bool>& eligible)
    : graph_(graph), eligible_(eligible), position_(graph.size(), -1) {
  for (int index = 0; index < static_cast<int>(graph.size()); ++index) {
    const OpDef* op = graph.OpAt(index);
    if (op == nullptr || op->is_reshape || graph.node(index).is_in_primitive) continue;
    position_[static_cast<size_t>(index)] = static_cast<int>(nodes_.size());
    nodes_.push_back(index);
  }
  FindReaders();
  starting_at_.resize(nodes_.size());
  int boundary_of = -1;
  Boundary boundary;
  for (const CandidateVariant& variant : variants) {
    const SubGraph& sub_graph = candidates[static_cast<size_t>(variant.candidate)].sub_graph;
    if (variant.candidate != boundary_of) boundary = BoundaryOf(graph, sub_graph);
    boundary_of = variant.candidate;
    variants_.push_back(FactsOf(sub_graph, boundary, variant.layouts));
    variants_.back().priority = candidates[static_cast<size_t>(variant.candidate)].toolchain->priority();
    if (variants_.back().covers.empty()) continue;
    starting_at_[static_cast<size_t>(variants_.back().covers.front())].push_back(static_cast<int>(variants_.size()) -
                                                                                 1);
  }
}

void CoverProblem::FindReaders() {
  for (int value = 0; value < static_cast<int>(graph_.size()); ++value) {
    if (!eligible_[static_cast<size_t>(value)] || position_[static_cast<size_t>(value)] < 0) continue;
    std::vector<int>& readers = readers_[value];
    std::vector<int> work{value};
    for (size_t i = 0; i < work.size(); ++i) {
      for (int user : graph_.node(work[i]).outputs) {
        if (position_[static_cast<size_t>(user)] >= 0) {
          readers.push_back(position_[static_cast<size_t>(user)]);
        } else if (graph_.node(user).is_external) {
          returned_.push_back({value, Layout::kPlain});
        } else if (std::find(work.begin(), work.end(), user) == work.end()) {
          work.push_back(user);
        }
      }
    }
    std::sort(readers.begin(), readers.end());
  }
  SortUnique(returned_);
}

int CoverProblem::SourceOf(int node) const {
  for (;;) {
    if (position_[static_cast<size_t>(node)] >= 0) return eligible_[static_cast<size_t>(node)] ? node : -1;
    const OpDef* op = graph_.OpAt(node);
    if (op == nullptr) return -1;        // a parameter, or a field of something: plain
    node = graph_.node(node).inputs[1];  // a reshape's data; [0] is the operator
  }
}

VariantFacts CoverProblem::FactsOf(const SubGraph& sub_graph, const Boundary& boundary,
                                   const BoundaryLayouts& layouts) const {
  COLLAGE_CHECK(boundary.inputs.size() == layouts.inputs.size() && boundary.outputs.size() == layouts.outputs.size())
      << "layouts do not fit the boundary of " << sub_graph.inside().ToString();
  VariantFacts facts;
  for (int node : sub_graph.members()) {
    if (position_[static_cast<size_t>(node)] >= 0) facts.covers.push_back(position_[static_cast<size_t>(node)]);
  }
  for (size_t i = 0; i < boundary.inputs.size(); ++i) {
    const BoundaryValue& input = boundary.inputs[i];
    const int source = input.field < 0 ? SourceOf(input.node) : -1;
    // What the host does with a value, it does with the plain one.
    if (source >= 0) facts.wants.push_back({source, source == input.node ? layouts.inputs[i] : Layout::kPlain});
  }
  SortUnique(facts.wants);
  for (size_t i = 0; i < boundary.outputs.size(); ++i) {
    const BoundaryValue& output = boundary.outputs[i];
    if (output.field >= 0 || !eligible_[static_cast<size_t>(output.node)]) continue;
    if (position_[static_cast<size_t>(output.node)] >= 0) facts.makes.push_back({output.node, layouts.outputs[i]});
  }
  return facts;
}

}  // namespace collage
