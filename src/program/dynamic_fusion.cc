// dynamic_fusion.cc: each operator joins the groups of those that it reads, where these are its own.
#include "program/dynamic_fusion.h"

#include <algorithm>
#include <map>
#include <span>

#include "ir/ops/dynamic.h"

namespace collage {
namespace {

bool IsOfTensors(const Type& type) {
  if (type == nullptr) return false;
  const TupleTypeNode* tuple = AsTupleType(type);
  if (tuple == nullptr) return AsTensorType(type) != nullptr;
  return std::ranges::all_of(tuple->fields(), [](const Type& field) { return AsTensorType(field) != nullptr; });
}

bool IsOpen(const Type& type) {
  return std::ranges::any_of(FlattenTensorTypes(type),
                             [](const Type& leaf) { return !AsTensorType(leaf)->is_static(); });
}

/// `op`, or the operator that takes as attributes the sizes that it takes as arguments.
const OpDef& WithoutValues(const OpDef& op) {
  const DynamicOp* dynamic = FindDynamicOp(op.name);
  return dynamic == nullptr ? op : GetOp(dynamic->static_name)->def();
}

/// Whether a result is computed wherever it is read.
bool IsInPlace(const OpDef& op) {
  return WithoutValues(op).pattern <= OpPatternKind::kInjective && op.name != "concatenate";
}

/// Arguments that a kernel computes where it reads them: sizes must be there before it is called.
std::vector<Expr> DataArgs(const CallNode& call) {
  const DynamicOp* dynamic = FindDynamicOp(call.op()->name);
  return dynamic == nullptr ? call.args() : DataOf(*dynamic, std::span<const Expr>(call.args()));
}

class GroupFinder {
 public:
  GroupFinder(const DataflowGraph& graph, const std::function<bool(const CallNode&)>& takes,
              const std::vector<bool>& is_elsewhere)
      : graph_(graph), takes_(takes), is_elsewhere_(is_elsewhere) {}

  std::vector<std::vector<int>> Run() {
    for (int index = 0; index < static_cast<int>(graph_.size()); ++index) {
      if (!is_elsewhere_[index] && IsTaken(index)) Add(index);
    }
    std::vector<std::vector<int>> groups;
    for (auto& [_, group] : groups_) {
      std::sort(group.members.begin(), group.members.end());
      groups.push_back(std::move(group.members));
    }
    return groups;
  }

 private:
  struct Group {
    std::vector<int> members;
    bool has_anchor = false;
    bool is_opaque = false;  ///< nothing is computed behind its anchor
  };
  static constexpr size_t kMostMembers = 40;

  bool IsTaken(int index) const {
    const DataflowGraph::Node& node = graph_.node(index);
    if (graph_.OpAt(index) == nullptr || node.is_in_primitive || !IsOfTensors(node.expr->checked_type())) return false;
    const auto& call = static_cast<const CallNode&>(*node.expr);
    bool is_open = IsOpen(call.checked_type());
    for (const Expr& arg : call.args()) {
      if (!IsOfTensors(arg->checked_type())) return false;
      is_open = is_open || IsOpen(arg->checked_type());
      // Tuples are made in the kernel that reads them.
      if (AsTensorType(arg->checked_type()) == nullptr && !IsOwnTuple(graph_.IndexOf(arg), index)) return false;
    }
    return is_open && takes_(call) && (AsTensorType(call.checked_type()) != nullptr || HasFieldsOnly(index));
  }

  bool IsOwnTuple(int tuple, int reader) const {
    const DataflowGraph::Node& node = graph_.node(tuple);
    return As<TupleNode>(node.expr) != nullptr && graph_.AreTogether(tuple, reader) &&
           std::ranges::all_of(node.outputs, [&](int output) { return output == reader; });
  }
  bool HasFieldsOnly(int index) const {
    return std::ranges::all_of(graph_.node(index).outputs, [&](int output) {
      return As<TupleGetItemNode>(graph_.node(output).expr) != nullptr && graph_.AreTogether(index, output);
    });
  }

  void Add(int index) {
    const OpDef& op = *graph_.OpAt(index);
    Group group{{index}, !IsInPlace(op), WithoutValues(op).pattern == OpPatternKind::kOpaque};
    const auto& call = static_cast<const CallNode&>(*graph_.node(index).expr);
    for (const Expr& arg : call.args()) {
      if (As<TupleNode>(arg) != nullptr) group.members.push_back(graph_.IndexOf(arg));
    }
    if (AsTupleType(call.checked_type()) != nullptr) {
      const std::vector<int>& fields = graph_.node(index).outputs;
      group.members.insert(group.members.end(), fields.begin(), fields.end());
    }
    std::vector<Expr> read;
    for (const Expr& arg : DataArgs(call)) {
      const TupleNode* tuple = As<TupleNode>(arg);
      if (tuple == nullptr) read.push_back(arg);
      if (tuple != nullptr) read.insert(read.end(), tuple->fields().begin(), tuple->fields().end());
    }
    std::vector<int> joined;
    for (const Expr& arg : read) {
      const int producer = graph_.IndexOf(arg);
      const auto own = group_of_.find(producer);
      if (own == group_of_.end() || std::ranges::find(joined, own->second) != joined.end()) continue;
      const Group& other = groups_.at(own->second);
      if (!MayJoin(call, index, producer, other, group)) continue;
      joined.push_back(own->second);
      group.members.insert(group.members.end(), other.members.begin(), other.members.end());
      group.has_anchor = group.has_anchor || other.has_anchor;
    }
    for (const int one : joined) groups_.erase(one);
    for (const int member : group.members) group_of_[member] = index;
    groups_[index] = std::move(group);
  }

  /// Whether what `producer` gives can be made, with all of its group, in the group of `call`.
  bool MayJoin(const CallNode& call, int index, int producer, const Group& other, const Group& group) const {
    // All other readers of the group's values, fields of tuples included, must come behind `call`: then all that read
    // a group come behind all of it, and no two groups wait for each other.
    const auto is_own = [&](int reader) {
      return reader >= index || std::ranges::find(group.members, reader) != group.members.end() ||
             std::ranges::find(other.members, reader) != other.members.end();
    };
    for (const int member : other.members) {
      if (!std::ranges::all_of(graph_.node(member).outputs, is_own)) return false;
    }
    // A value that others read, too, is made in its own group.
    for (const int reader : graph_.node(producer).outputs) {
      if (reader != index && std::ranges::find(group.members, reader) == group.members.end()) return false;
    }
    if (!graph_.AreTogether(producer, index) || other.members.size() + group.members.size() > kMostMembers)
      return false;
    if (AsTensorType(graph_.node(producer).expr->checked_type()) == nullptr) return false;
    const OpDef& op = *call.op();
    if (other.has_anchor) return !group.has_anchor && !other.is_opaque && KeepsShape(call, producer);
    if (IsInPlace(op)) return true;
    const OpDef* made_by = graph_.OpAt(producer);  // null for a field of a tuple, which is no operator's own
    const bool is_elementwise = made_by != nullptr && made_by->elementwise;
    if (op.name == "concatenate") return is_elementwise;
    // Rows that are reduced are computed on the way; matrices are read again and again.
    const bool reduces_rows = op.pattern == OpPatternKind::kOutEWiseFusable && op.summed_over == SummedOver::kAxis;
    const bool is_reduction = op.pattern == OpPatternKind::kCommReduce || reduces_rows;
    return is_reduction && graph_.IndexOf(call.args()[0]) == producer && is_elementwise;
  }

  /// Whether each element of `call` is made of the one of `producer` in its place, whatever the sizes turn out to be.
  bool KeepsShape(const CallNode& call, int producer) const {
    const TensorTypeNode* result = AsTensorType(call.checked_type());
    const TensorTypeNode* from = AsTensorType(graph_.node(producer).expr->checked_type());
    if (result == nullptr || result->shape() != from->shape()) return false;
    if (call.op()->per_channel) return graph_.IndexOf(call.args()[0]) == producer;
    if (!call.op()->elementwise) return false;
    for (const Expr& arg : call.args()) {
      if (graph_.IndexOf(arg) == producer) continue;
      const TensorTypeNode* other = AsTensorType(arg->checked_type());
      for (int dim = 1; dim <= other->rank(); ++dim) {
        const Dim& own = other->shape()[other->rank() - dim];
        const Dim& wanted = result->shape()[result->rank() - dim];
        if (wanted.is_any() && (own.is_any() || own.size() != 1)) return false;
      }
    }
    return true;
  }

  const DataflowGraph& graph_;
  const std::function<bool(const CallNode&)>& takes_;
  const std::vector<bool>& is_elsewhere_;
  std::map<int, Group> groups_;  ///< by the node that others read
  std::map<int, int> group_of_;
};

}  // namespace

std::vector<std::vector<int>> FindDynamicFusions(const DataflowGraph& graph,
                                                 const std::function<bool(const CallNode&)>& takes,
                                                 const std::vector<bool>& is_elsewhere) {
  return GroupFinder(graph, takes, is_elsewhere).Run();
}

}  // namespace collage
