// regions.cc: basic blocks cut into levels, each level a region.
#include "search/regions.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "collage/ir/infer_type.h"
#include "collage/ir/visitor.h"
#include "collage/rewrite.h"
#include "collage/support/error.h"
#include "collage/transform/passes.h"

namespace collage {
namespace {

constexpr const char* kRegionName = "collage_region";

bool IsStaticTensors(const Type& type) {
  if (!type) return false;
  if (const TensorTypeNode* tensor = AsTensorType(type)) return tensor->is_static();
  const TupleTypeNode* tuple = AsTupleType(type);
  return tuple != nullptr && !tuple->fields().empty() &&
         std::all_of(tuple->fields().begin(), tuple->fields().end(), [](const Type& field) {
           return AsTensorType(field) != nullptr && AsTensorType(field)->is_static();
         });
}

bool IsPartition(const Function& function) {
  return function->attrs().IntOr("Primitive", 0) != 0 || function->attrs().Has("Compiler");
}

/// The regions of one function.
class RegionFinder {
 public:
  RegionFinder(const DataflowGraph& graph, int64_t few_elements) : graph_(graph), few_elements_(few_elements) {}

  std::vector<std::vector<int>> Run() {
    FindLevels();
    std::map<std::pair<int, int>, std::vector<int>> by_place;
    for (int index = 0; index < Size(); ++index) {
      if (is_inside_[At(index)]) by_place[{graph_.node(index).basic_block, level_[At(index)]}].push_back(index);
    }
    std::vector<std::vector<int>> regions;
    for (auto& [_, members] : by_place) {
      Trim(members);
      if (IsWorthwhile(members)) regions.push_back(std::move(members));
    }
    return regions;
  }

 private:
  static size_t At(int index) { return static_cast<size_t>(index); }
  int Size() const { return static_cast<int>(graph_.size()); }

  bool IsOperator(int index) const {
    if (graph_.OpAt(index) == nullptr) return false;
    const auto& call = static_cast<const CallNode&>(*graph_.node(index).expr);
    return IsStaticTensors(call.checked_type()) &&
           std::all_of(call.args().begin(), call.args().end(),
                       [](const Expr& arg) { return IsStaticTensors(arg->checked_type()); });
  }

  bool IsGlue(int index) const {
    const Expr& expr = graph_.node(index).expr;
    if (const TupleNode* tuple = As<TupleNode>(expr)) return IsStaticTensors(tuple->checked_type());
    const TupleGetItemNode* projection = As<TupleGetItemNode>(expr);
    return projection != nullptr && IsStaticTensors(projection->tuple()->checked_type());
  }

  /// How often a path to a node leaves what may be in regions at most: nodes of one level and block have no path
  /// between them that leaves their region.
  void FindLevels() {
    level_.assign(graph_.size(), 0);
    is_inside_.assign(graph_.size(), false);
    for (int index = 0; index < Size(); ++index) {
      const DataflowGraph::Node& node = graph_.node(index);
      is_inside_[At(index)] = !node.is_in_primitive && (IsOperator(index) || IsGlue(index));
      for (int input : node.inputs) {
        if (graph_.IsInlinedInPartitions(input)) continue;
        const bool leaves = is_inside_[At(input)] && !is_inside_[At(index)];
        level_[At(index)] = std::max(level_[At(index)], level_[At(input)] + (leaves ? 1 : 0));
      }
    }
  }

  /// Leaves out tuples and projections at the edge: tensors cross it one by one.
  void Trim(std::vector<int>& members) const {
    const auto is_member = [&](int index) { return std::binary_search(members.begin(), members.end(), index); };
    for (size_t before = 0; before != members.size();) {
      before = members.size();
      std::erase_if(members, [&](int index) {
        if (graph_.OpAt(index) != nullptr) return false;
        const DataflowGraph::Node& node = graph_.node(index);
        const bool is_within = std::all_of(node.inputs.begin(), node.inputs.end(), is_member) &&
                               std::all_of(node.outputs.begin(), node.outputs.end(), is_member) &&
                               !node.outputs.empty();
        const bool is_projection = As<TupleGetItemNode>(node.expr) != nullptr;
        return !is_within && !(is_projection && std::all_of(node.inputs.begin(), node.inputs.end(), is_member));
      });
    }
  }

  bool IsWorthwhile(const std::vector<int>& members) const {
    return std::any_of(members.begin(), members.end(), [&](int index) {
      if (graph_.OpAt(index) == nullptr || graph_.OpAt(index)->is_reshape) return false;
      int64_t elements = 0;
      for (const Type& type : FlattenTensorTypes(graph_.node(index).expr->checked_type())) {
        elements = std::max(elements, NumElements(AsTensorType(type)->static_shape()));
      }
      return elements > few_elements_;
    });
  }

  const DataflowGraph& graph_;
  int64_t few_elements_;
  std::vector<int> level_;
  std::vector<bool> is_inside_;
};

}  // namespace

bool IsProgram(const IRModule& module) {
  int num_functions = 0;
  for (const auto& [_, function] : module.functions()) num_functions += IsPartition(function) ? 0 : 1;
  if (num_functions > 1) return true;
  bool is_program = !IsStaticTensors(module.main()->body()->checked_type());
  PostOrder(module.main()->body(), [&](const Expr& expr) {
    switch (expr->kind()) {
      case ExprKind::kCall: {
        const auto& call = static_cast<const CallNode&>(*expr);
        const FunctionNode* callee = As<FunctionNode>(call.callee());
        const bool is_plain = call.op() != nullptr || (callee != nullptr && callee->attrs().IntOr("Primitive", 0) != 0);
        is_program = is_program || !is_plain || !IsStaticTensors(call.checked_type());
        break;
      }
      case ExprKind::kVar: is_program = is_program || !IsStaticTensors(expr->checked_type()); break;
      case ExprKind::kConstant:
      case ExprKind::kTuple:
      case ExprKind::kTupleGetItem:
      case ExprKind::kOp:
      case ExprKind::kFunction: break;  // a function that is not called is a closure, whose variables show
      default: is_program = true;
    }
  });
  return is_program;
}

ProgramRegions FindRegions(IRModule module, int64_t few_elements) {
  module = RunPasses({"ToGraphNormalForm"}, std::move(module));
  ProgramRegions result{module, {}};
  int number = 0;
  for (const auto& [name, function] : module.functions()) {
    if (IsPartition(function)) continue;
    const DataflowGraph graph(function);
    std::vector<CandidatePartition> found;
    for (std::vector<int>& members : RegionFinder(graph, few_elements).Run()) {
      Attrs attrs{{"Primitive", 1}, {"global_symbol", fmt::format("{}{}", kRegionName, number++)}};
      found.push_back({"region", SubGraph(graph, std::move(members)).Wrapped(std::move(attrs)), nullptr});
    }
    if (found.empty()) continue;
    const std::optional<Function> rewritten = RewriteNested(graph, found);
    COLLAGE_CHECK(rewritten.has_value()) << "regions of @" << name << " depend on each other in a circle";
    result.module.Set(name, *rewritten);
  }
  result.module = InferTypes(std::move(result.module));
  for (const auto& [_, function] : result.module.functions()) {
    PostOrder(function, [&](const Expr& expr) {
      const Function inner = AsShared<FunctionNode>(expr);
      if (inner && inner->attrs().StringOr("global_symbol", "").starts_with(kRegionName))
        result.regions.push_back(inner);
    });
  }
  return result;
}

}  // namespace collage
