// regions.cc: basic blocks cut into levels, each level a region.
#include "program/regions.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "collage/ir/infer_type.h"
#include "collage/ir/strings.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"
#include "collage/transform/passes.h"
#include "dataflow/needs.h"
#include "ir/ops/random/random.h"
#include "partition/rewrite.h"
#include "program/batch_analysis.h"
#include "program/dynamic_fusion.h"
#include "target/annotations.h"

namespace collage {
namespace {

constexpr const char* kRegionName = "collage_region";
constexpr const char* kDynamicName = "collage_shaped";

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
    std::vector<int> kinds;
    for (int index = 0; index < Size(); ++index) {
      const bool is_inside = !graph_.node(index).is_in_primitive && (IsOperator(index) || IsGlue(index));
      kinds.push_back(is_inside ? 0 : -1);
    }
    return Run(std::move(kinds), [&](const std::vector<int>& members) { return IsWorthwhile(members); });
  }

  /// Returns the worthwhile regions of nodes of one kind each; nodes of a negative kind are in none. No node may read
  /// one of another kind.
  std::vector<std::vector<int>> Run(std::vector<int> kinds,
                                    const std::function<bool(const std::vector<int>& members)>& is_worthwhile) {
    kinds_ = std::move(kinds);
    for (const int kind : kinds_) is_inside_.push_back(kind >= 0);
    std::vector<std::vector<int>> regions;
    do {
      FindLevels();
      regions = Group();
    } while (TrimAll(regions));
    std::erase_if(regions, [&](const std::vector<int>& members) { return !is_worthwhile(members); });
    return regions;
  }

 private:
  static size_t At(int index) { return static_cast<size_t>(index); }
  int Size() const { return static_cast<int>(graph_.size()); }

  bool IsOperator(int index) const {
    if (graph_.OpAt(index) == nullptr || DrawsNumbers(*graph_.OpAt(index))) return false;
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

  /// How often a path to a node leaves what may be in regions at most. Nodes of one level, branch and binding let have
  /// no path between them that leaves their region: to leave a branch, or a let's body, is to leave what may be in
  /// regions.
  void FindLevels() {
    level_.assign(graph_.size(), 0);
    for (int index = 0; index < Size(); ++index) {
      ForEachNeed(graph_, index, [&](int input) {
        const bool leaves = is_inside_[At(input)] && !is_inside_[At(index)];
        level_[At(index)] = std::max(level_[At(index)], level_[At(input)] + (leaves ? 1 : 0));
      });
    }
  }

  std::vector<std::vector<int>> Group() const {
    std::map<std::tuple<int, int, int, int, int>, std::vector<int>> by_place;
    for (int index = 0; index < Size(); ++index) {
      const DataflowGraph::Node& node = graph_.node(index);
      if (!is_inside_[At(index)]) continue;
      by_place[{node.basic_block, node.scope, node.bound_in, level_[At(index)], kinds_[At(index)]}].push_back(index);
    }
    std::vector<std::vector<int>> regions;
    for (auto& [_, members] : by_place) regions.push_back(std::move(members));
    return regions;
  }

  bool TrimAll(std::vector<std::vector<int>>& regions) {
    bool any = false;
    for (std::vector<int>& members : regions) any = Trim(members) || any;
    return any;
  }

  /// Leaves out tuples and projections at the edge, since tensors cross it one by one; whether there was any: then the
  /// levels are others.
  bool Trim(std::vector<int>& members) {
    const size_t before = members.size();
    for (size_t last = 0; last != members.size();) {
      last = members.size();
      std::vector<int> kept;
      for (int index : members) {
        if (graph_.OpAt(index) == nullptr) is_inside_[At(index)] = IsWithin(index, members);
        if (is_inside_[At(index)]) kept.push_back(index);
      }
      members = std::move(kept);
    }
    return members.size() != before;
  }

  /// Whether a tuple or projection is made of what is in a region, and a tuple is read there only.
  bool IsWithin(int index, const std::vector<int>& members) const {
    const auto is_member = [&](int node) { return std::binary_search(members.begin(), members.end(), node); };
    const DataflowGraph::Node& node = graph_.node(index);
    return std::all_of(node.inputs.begin(), node.inputs.end(), is_member) &&
           (As<TupleGetItemNode>(node.expr) != nullptr ||
            std::all_of(node.outputs.begin(), node.outputs.end(), is_member));
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
  std::vector<int> kinds_;
  std::vector<bool> is_inside_;
};

}  // namespace

namespace {

/// Regions of what computes each row of a batch by itself, where some of it is nothing that `dynamic` takes as it is,
/// or convolutions: kernels of images whose size is known are faster.
std::vector<std::vector<int>> RowRegions(const DataflowGraph& graph, const DynamicShapes& dynamic) {
  if (!dynamic.takes_one_row) return {};
  return RegionFinder(graph, 0).Run(FindBatchParallel(graph, dynamic.takes_one_row),
                                    [&](const std::vector<int>& members) {
                                      return std::ranges::any_of(members, [&](int index) {
                                        const OpDef* op = graph.OpAt(index);
                                        if (op == nullptr || op->is_reshape) return false;
                                        return op->FindAttr("kernel_layout") != nullptr ||
                                               !dynamic.takes(static_cast<const CallNode&>(*graph.node(index).expr));
                                      });
                                    });
}

}  // namespace

bool IsDynamicFusion(const FunctionNode& function) {
  return function.attrs().StringOr("global_symbol", "").starts_with(kDynamicName);
}

bool IsProgram(const IRModule& module) {
  int num_functions = 0;
  for (const auto& [_, function] : module.functions()) num_functions += IsPartition(function) ? 0 : 1;
  if (num_functions > 1 || !StringTensors(module.main()->attrs()).empty()) return true;
  bool is_program = !IsStaticTensors(module.main()->body()->checked_type());
  PostOrder(module.main()->body(), [&](const Expr& expr) {
    switch (expr->kind()) {
      case ExprKind::kCall: {
        const auto& call = static_cast<const CallNode&>(*expr);
        const FunctionNode* callee = As<FunctionNode>(call.callee());
        const bool is_plain = call.op() != nullptr || (callee != nullptr && callee->attrs().IntOr("Primitive", 0) != 0);
        const bool draws = call.op() != nullptr && DrawsNumbers(*call.op());
        is_program = is_program || !is_plain || draws || !IsStaticTensors(call.checked_type());
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

ProgramRegions FindRegions(IRModule module, int64_t few_elements, const DynamicShapes& dynamic) {
  module = RunPasses({"ToGraphNormalForm"}, std::move(module));
  ProgramRegions result{module, {}, {}};
  int number = 0;
  int shaped = 0;
  for (const auto& [name, function] : module.functions()) {
    if (IsPartition(function)) continue;
    const DataflowGraph graph(function);
    std::vector<CandidatePartition> found;
    for (std::vector<int>& members : RegionFinder(graph, few_elements).Run()) {
      Attrs attrs{{"Primitive", 1}, {"global_symbol", fmt::format("{}{}", kRegionName, number++)}};
      found.push_back({"region", SubGraph(graph, std::move(members)).Wrapped(std::move(attrs)), nullptr});
    }
    const auto add_dynamic = [&](std::vector<int> members, bool is_by_rows) {
      Attrs attrs{{"Primitive", 1}, {"global_symbol", fmt::format("{}{}", kDynamicName, shaped++)}};
      if (is_by_rows) attrs.Set(kAttrRows, 1);
      found.push_back({"shaped", SubGraph(graph, std::move(members)).Wrapped(std::move(attrs)), nullptr});
    };
    std::vector<bool> is_by_rows(graph.size());
    for (std::vector<int>& members : dynamic.takes ? RowRegions(graph, dynamic) : std::vector<std::vector<int>>{}) {
      // Each kind of region is in order by itself; together they may wait for each other.
      const SubGraph region(graph, members);
      std::vector<const SubGraph*> all{&region};
      for (const CandidatePartition& one : found) all.push_back(&one.sub_graph);
      if (!CanBeOrdered(graph, all)) continue;
      for (const int index : members) is_by_rows[index] = true;
      add_dynamic(std::move(members), true);
    }
    if (dynamic.takes) {
      for (std::vector<int>& members : FindDynamicFusions(graph, dynamic.takes, is_by_rows)) {
        add_dynamic(std::move(members), false);
      }
    }
    if (found.empty()) continue;
    const std::optional<Function> rewritten = RewriteNested(graph, found);
    COLLAGE_CHECK(rewritten.has_value()) << "regions of @" << name << " depend on each other in a circle";
    result.module.Set(name, *rewritten);
  }
  result.module = InferTypes(std::move(result.module));
  for (const auto& [name, function] : result.module.functions()) {
    PostOrder(function, [&, &name = name](const Expr& expr) {
      const Function inner = AsShared<FunctionNode>(expr);
      if (!inner || !inner->attrs().StringOr("global_symbol", "").starts_with(kRegionName)) return;
      result.regions.push_back(inner);
      result.functions.push_back(name);
    });
  }
  return result;
}

}  // namespace collage
