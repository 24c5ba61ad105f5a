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
#include "ir/ops/dynamic.h"
#include "ir/ops/random/random.h"
#include "ir/tensor_types.h"
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

bool IsOfTensors(const Type& type) { return type != nullptr && HasTensorsOnly(type); }

bool IsOpen(const Type& type) { return !HasStaticTensorsOnly(type); }

/// Whether `expr` only makes a tuple, or takes a value out of one, of types that `are_inside`.
bool IsGlueOf(const Expr& expr, const std::function<bool(const Type&)>& are_inside) {
  if (const TupleNode* tuple = As<TupleNode>(expr)) return are_inside(tuple->checked_type());
  const TupleGetItemNode* projection = As<TupleGetItemNode>(expr);
  return projection != nullptr && are_inside(projection->tuple()->checked_type());
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

  bool IsGlue(int index) const { return IsGlueOf(graph_.node(index).expr, IsStaticTensors); }

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

  /// Whether a projection is made of what is in a region, or a tuple of that, constants and parameters, and is read
  /// there only.
  bool IsWithin(int index, const std::vector<int>& members) const {
    const auto is_member = [&](int node) { return std::binary_search(members.begin(), members.end(), node); };
    const DataflowGraph::Node& node = graph_.node(index);
    const bool is_tuple = As<TupleNode>(node.expr) != nullptr;
    const auto is_own = [&](int input) {
      const Expr& expr = graph_.node(input).expr;
      const bool is_leaf = As<ConstantNode>(expr) != nullptr || As<VarNode>(expr) != nullptr;
      return is_member(input) || (is_tuple && is_leaf);
    };
    return std::all_of(node.inputs.begin(), node.inputs.end(), is_own) &&
           (!is_tuple || std::all_of(node.outputs.begin(), node.outputs.end(), is_member));
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

bool OnlyReshapes(const OpDef& op) {
  const DynamicOp* dynamic = FindDynamicOp(op.name);
  return op.is_reshape || (dynamic != nullptr && GetOp(dynamic->static_name)->def().is_reshape);
}

/// Whether `call` may be in a region of `symbolic`.
bool IsSymbolic(const CallNode& call, const SymbolicSizes& symbolic) {
  const auto is_tensors = [](const Expr& arg) { return IsOfTensors(arg->checked_type()); };
  const auto is_open = [](const Expr& arg) { return IsOpen(arg->checked_type()); };
  if (!IsOfTensors(call.checked_type()) || !std::ranges::all_of(call.args(), is_tensors)) return false;
  const bool has_open = IsOpen(call.checked_type()) || std::ranges::any_of(call.args(), is_open);
  if (!has_open) return symbolic.takes_static && !DrawsNumbers(*call.op()) && symbolic.takes_static(call);
  const bool is_of_sizes =
      FindDynamicOp(call.op()->name) != nullptr || ReadsShapeAlone(*call.op()) || MakesSizesOfValues(call);
  return (symbolic.takes_static || !is_of_sizes) && symbolic.takes(call);
}

/// The largest regions of calls that a toolchain for symbolic sizes takes, if some of it computes elements of dynamic
/// shapes. Nodes that are `is_elsewhere` are in none.
std::vector<std::vector<int>> SymbolicRegions(const DataflowGraph& graph, const SymbolicSizes& symbolic,
                                              const std::vector<bool>& is_elsewhere) {
  if (symbolic.toolchain.empty()) return {};
  std::vector<int> kinds;
  for (int index = 0; index < static_cast<int>(graph.size()); ++index) {
    const DataflowGraph::Node& node = graph.node(index);
    bool is_inside = IsGlueOf(node.expr, IsOfTensors);
    if (graph.OpAt(index) != nullptr) is_inside = IsSymbolic(static_cast<const CallNode&>(*node.expr), symbolic);
    kinds.push_back(is_inside && !node.is_in_primitive && !is_elsewhere[static_cast<size_t>(index)] ? 0 : -1);
  }
  return RegionFinder(graph, 0).Run(std::move(kinds), [&](const std::vector<int>& members) {
    return std::ranges::any_of(members, [&](int index) {
      const OpDef* op = graph.OpAt(index);
      return op != nullptr && !OnlyReshapes(*op) && !ReadsShapeAlone(*op) &&
             IsOpen(graph.node(index).expr->checked_type());
    });
  });
}

/// Finds what becomes Primitive functions in the functions of a module, and numbers them.
class PartFinder {
 public:
  PartFinder(int64_t few_elements, const DynamicShapes& dynamic) : few_elements_(few_elements), dynamic_(dynamic) {}

  /// The parts of `graph`, which can be run one after the other.
  std::vector<CandidatePartition> Run(const DataflowGraph& graph) {
    found_.clear();
    is_taken_.assign(graph.size(), false);
    std::vector<bool> is_in_region(graph.size());
    for (std::vector<int>& members : RegionFinder(graph, few_elements_).Run()) {
      for (const int index : members) is_in_region[At(index)] = true;
      Attrs attrs{{"Primitive", 1}, {"global_symbol", fmt::format("{}{}", kRegionName, num_regions_++)}};
      found_.push_back({"region", SubGraph(graph, std::move(members)).Wrapped(std::move(attrs)), nullptr});
    }
    // Each kind of region is in order by itself; together they may wait for each other.
    for (std::vector<int>& members : SymbolicRegions(graph, dynamic_.symbolic, is_in_region)) {
      if (Fits(graph, members)) Add(graph, std::move(members), {{kAttrCompiler, dynamic_.symbolic.toolchain}});
    }
    if (!dynamic_.takes) return std::move(found_);
    for (std::vector<int>& members : RowRegions(graph, dynamic_)) {
      const bool is_free = std::ranges::none_of(members, [&](int index) { return is_taken_[At(index)]; });
      if (is_free && Fits(graph, members)) Add(graph, std::move(members), {{kAttrRows, 1}});
    }
    const bool has_symbolic = !dynamic_.symbolic.toolchain.empty();
    for (std::vector<int>& members : FindDynamicFusions(graph, dynamic_.takes, is_taken_)) {
      if (!has_symbolic || Fits(graph, members)) {
        Add(graph, std::move(members), {});
      } else {
        AddOneByOne(graph, members);
      }
    }
    return std::move(found_);
  }

 private:
  static size_t At(int index) { return static_cast<size_t>(index); }

  /// Operators of a fusion that would wait for a part that waits for it.
  void AddOneByOne(const DataflowGraph& graph, const std::vector<int>& fusion) {
    for (const int index : fusion) {
      std::vector<bool> is_elsewhere(graph.size(), true);
      is_elsewhere[At(index)] = false;
      for (std::vector<int>& members : FindDynamicFusions(graph, dynamic_.takes, is_elsewhere)) {
        if (Fits(graph, members)) Add(graph, std::move(members), {});
      }
    }
  }

  bool Fits(const DataflowGraph& graph, const std::vector<int>& members) const {
    const SubGraph region(graph, members);
    std::vector<const SubGraph*> all{&region};
    for (const CandidatePartition& one : found_) all.push_back(&one.sub_graph);
    return CanBeOrdered(graph, all);
  }

  void Add(const DataflowGraph& graph, std::vector<int> members, Attrs attrs) {
    attrs.Set("Primitive", 1);
    attrs.Set("global_symbol", fmt::format("{}{}", kDynamicName, num_dynamic_++));
    for (const int index : members) is_taken_[At(index)] = true;
    found_.push_back({"shaped", SubGraph(graph, std::move(members)).Wrapped(std::move(attrs)), nullptr});
  }

  int64_t few_elements_;
  const DynamicShapes& dynamic_;
  std::vector<CandidatePartition> found_;
  std::vector<bool> is_taken_;  ///< by node: whether a dynamic part has it
  int num_regions_ = 0;
  int num_dynamic_ = 0;
};

}  // namespace

bool IsDynamicFusion(const FunctionNode& function) {
  return function.attrs().StringOr("global_symbol", "").starts_with(kDynamicName);
}

bool IsProgram(const IRModule& module) {
  int num_functions = 0;
  for (const auto& [_, function] : module.functions()) num_functions += IsPartition(function) ? 0 : 1;
  if (num_functions > 1 || !StringTensors(module.main()->attrs()).empty()) return true;
  bool is_program = !IsStaticTensors(module.main()->body()->checked_type());
  // Nothing need read a parameter whose sizes a run decides.
  for (const Var& param : module.main()->params()) is_program = is_program || !IsStaticTensors(param->checked_type());
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
  PartFinder finder(few_elements, dynamic);
  for (const auto& [name, function] : module.functions()) {
    if (IsPartition(function)) continue;
    const DataflowGraph graph(function);
    const std::vector<CandidatePartition> found = finder.Run(graph);
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
