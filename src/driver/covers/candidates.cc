// candidates.cc: asks rules for candidates and toolchains for layouts, and numbers what comes of it.
#include "driver/covers/candidates.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "collage/ir/structural.h"
#include "driver/covers/layout_analysis.h"
#include "partition/extract.h"

namespace collage {

Candidates::Candidates(const Function& function, const std::vector<PartitionSpec>& specs, int num_threads,
                       Boundaries boundaries)
    : graph_(function, boundaries),
      specs_(specs),
      eligible_(boundaries == Boundaries::kExact ? std::vector<bool>(graph_.size()) : ChannelsLastEligible(graph_)),
      num_threads_(num_threads) {
  for (const PartitionSpec& spec : specs) AddCandidates(spec);
  MarkPrimary();
}

std::pair<PartitionRequest, const Toolchain*> Candidates::Find(CandidateHandle handle) const {
  const CandidateVariant& v = variants_.at(VariantIndex(handle.number));
  const CandidatePartition& candidate = at(v.candidate);
  return {{Extract(graph_, candidate.sub_graph).function, v.layouts, num_threads_}, candidate.toolchain};
}

std::pair<const DataflowGraph&, const SubGraph&> Candidates::FindSubGraph(CandidateHandle handle) const {
  return {graph_, CandidateOf(VariantIndex(handle.number)).sub_graph};
}

const std::vector<VariantIndex>& Candidates::SameWorkAs(VariantIndex variant) const {
  return by_work_.at({OperatorsOf(CandidateOf(variant)), this->variant(variant).layouts});
}

/// The operators that a candidate computes. Some toolchains' candidates hold constants, others leave them outside.
std::vector<int> Candidates::OperatorsOf(const CandidatePartition& candidate) const {
  std::vector<int> operators;
  for (int member : candidate.sub_graph.members()) {
    if (graph_.OpAt(member) != nullptr) operators.push_back(member);
  }
  return operators;
}

void Candidates::MarkPrimary() {
  std::unordered_map<int, std::vector<CandidateIndex>> holding;  // operator node → candidates that hold it
  for (CandidateIndex i : candidates_.indices()) {
    for (int member : candidates_[i].sub_graph.members()) holding[member].push_back(i);
  }
  for (const CandidatePartition& candidate : candidates_) {
    const SubGraph& own = candidate.sub_graph;
    const bool is_single = own.depth() == 1;
    const std::vector<CandidateIndex>& others = holding[own.first()];
    const bool is_inside = std::any_of(others.begin(), others.end(), [&](CandidateIndex other) {
      const CandidatePartition& larger = at(other);
      return larger.toolchain == candidate.toolchain && larger.rule_name != "maximal" &&
             larger.sub_graph.members().size() > own.members().size() &&
             own.inside().IsSubset(larger.sub_graph.inside());
    });
    is_primary_.push_back(is_single || !is_inside);
  }
}

void Candidates::AddCandidates(const PartitionSpec& spec) {
  RuleLog log;
  log.on_refusal = [&](const std::string& label, const Reason& reason) {
    refusals_.emplace(std::pair(spec.name, label), reason.text);
  };
  for (CandidatePartition& candidate : spec.AllCandidates(graph_, log)) {
    if (!taken_.emplace(spec.name, KeyOf(candidate.sub_graph)).second) continue;
    if (graph_.boundaries() == Boundaries::kExact) {
      AddVariants(std::move(candidate));
      continue;
    }
    candidate.sub_graph.nested = WithoutPrimitives(std::move(candidate.sub_graph.nested));
    const bool computes = std::ranges::any_of(candidate.sub_graph.members(), [&](int index) {
      return graph_.OpAt(index) != nullptr && !graph_.node(index).is_in_primitive;
    });
    if (computes) AddVariants(std::move(candidate));
  }
  if (log.candidates_capped) capped_.push_back(spec.name);
}

std::vector<BoundaryLayouts> Candidates::LayoutsOf(const CandidatePartition& candidate,
                                                   const ExtractedFunction& extracted) const {
  const auto eligible = [&](const std::vector<BoundaryValue>& values) {
    std::vector<bool> result;
    for (const BoundaryValue& value : values) {
      result.push_back(value.field < 0 && eligible_[static_cast<size_t>(value.node)]);
    }
    return result;
  };
  std::vector<BoundaryLayouts> layouts = candidate.toolchain->Layouts(
      extracted.function, eligible(extracted.boundary.inputs), eligible(extracted.boundary.outputs));
  std::erase_if(layouts, [&](const BoundaryLayouts& choice) {
    for (size_t i = 0; i < choice.outputs.size(); ++i) {
      if (!FitsPlannedMemory(extracted.boundary.outputs[i].node, MemoryOf(choice.outputs[i]))) return true;
    }
    return false;
  });
  return layouts;
}

/// Whether the value of `node` may be made in `memory`: it is planned for no scope, or for that one.
bool Candidates::FitsPlannedMemory(int node, Memory memory) const {
  const VirtualDevice& planned = graph_.node(node).expr->virtual_device();
  if (planned.memory_scope.empty() || planned.device_type == 0) return true;
  return MemoryOf(planned.device_type, planned.memory_scope) == memory;
}

void Candidates::AddVariants(CandidatePartition candidate) {
  std::vector<BoundaryLayouts> choices{{}};
  std::optional<ExtractedFunction> extracted;
  if (graph_.boundaries() == Boundaries::kTensors) {
    extracted = Extract(graph_, candidate.sub_graph);
    choices = LayoutsOf(candidate, *extracted);
  }
  if (choices.empty()) return;  // calls that it supports one by one, but not as this partition
  if (std::ranges::find(toolchains_, candidate.toolchain) == toolchains_.end()) {
    toolchains_.push_back(candidate.toolchain);
  }
  const std::string workload = extracted ? StructuralHash(extracted->function, {.constants_by_shape = true})
                                         : std::to_string(candidates_.next().number());
  for (const BoundaryLayouts& layouts : choices) {
    const auto [number, is_new] =
        class_numbers_.emplace(std::tuple(workload, layouts, candidate.spec->name), static_cast<int>(classes_.size()));
    if (is_new) {
      classes_.push_back({workload, extracted ? WorkOf(extracted->function, layouts) : Work{}, variants_.next()});
    }
    class_of_.push_back(number->second);
    by_work_[{OperatorsOf(candidate), layouts}].push_back(variants_.next());
    variants_.push_back({candidates_.next(), layouts});
  }
  candidates_.push_back(std::move(candidate));
}

}  // namespace collage
