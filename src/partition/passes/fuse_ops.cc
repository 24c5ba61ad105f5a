// fuse_ops.cc: operators go into primitive functions, one kernel each, by their kinds: TVM's FuseOps, whose rules RFC
// 0.81 ("Phase 1") restates. A value and everything on its way to its post-dominator are fused, if the kinds on the way
// allow it: then no inner value is needed elsewhere, and the function has one result.
#include <algorithm>
#include <functional>
#include <numeric>

#include "collage/ir/infer_type.h"
#include "collage/ir/visitor.h"
#include "dataflow/dataflow_graph.h"
#include "ir/ops/annotation.h"
#include "partition/fusion_groups.h"
#include "partition/passes.h"
#include "support/sort_unique.h"
#include "transform/rewriting.h"

namespace collage {
namespace {

using Kind = OpPatternKind;

/// Nodes that become one function: a set of nodes under its last one. The kind is the last one's, or an anchor's.
struct Group {
  int parent = -1;  ///< towards the representative; itself at the top
  Kind kind = Kind::kOpaque;
  int calls = 0;
  bool has_anchor = false;
};

class Fuser {
 public:
  Fuser(const DataflowGraph& graph, int64_t max_depth) : graph_(graph), max_depth_(max_depth) {
    const size_t size = graph.size();
    groups_.resize(size);
    for (size_t i = 0; i < size; ++i) {
      const int index = static_cast<int>(i);
      const Kind kind = KindOf(index);
      groups_[i] = {index, kind, graph.OpAt(index) != nullptr ? 1 : 0, kind == Kind::kOutEWiseFusable};
    }
  }

  /// Anchors and element-wise operators first, then what only moves elements, then what feeds tuples that were fused.
  void Run() {
    dominators_ = DominatorParents(graph_);
    for (int phase = 0; phase < 3; ++phase) {
      for (int index = 0; index < static_cast<int>(graph_.size()); ++index) Visit(index, phase);
    }
  }

  int Representative(int index) {
    int top = index;
    while (groups_[top].parent != top) top = groups_[top].parent;
    while (index != top) index = std::exchange(groups_[index].parent, top);
    return top;
  }
  bool CallsOperators(int representative) const { return groups_[representative].calls > 0; }
  /// Nodes by their representative, ascending.
  std::vector<std::vector<int>> Members() {
    std::vector<std::vector<int>> members(graph_.size());
    for (int i = 0; i < static_cast<int>(graph_.size()); ++i) members[Representative(i)].push_back(i);
    return members;
  }

 private:
  /// Fusion kind of a node on its own; everything but calls of operators, tuples of tensors and projections is opaque.
  Kind KindOf(int index) const {
    const DataflowGraph::Node& node = graph_.node(index);
    if (node.is_external || node.is_in_primitive) return Kind::kOpaque;
    switch (node.expr->kind()) {
      case ExprKind::kTuple: return graph_.KindAt(index) == Kind::kOpaque ? Kind::kOpaque : Kind::kTuple;
      case ExprKind::kCall:
      case ExprKind::kTupleGetItem: return graph_.KindAt(index);
      default: return Kind::kOpaque;
    }
  }

  /// How `user` depends on `value`: as its kind says, but broadcasting keeps an argument of the result's shape as it
  /// is.
  Kind EdgeKind(int value, int user) const {
    const Kind kind = KindOf(user);
    if (kind != Kind::kBroadcast) return kind;
    const TensorTypeNode* from = AsTensorType(graph_.node(value).expr->checked_type());
    const TensorTypeNode* to = AsTensorType(graph_.node(user).expr->checked_type());
    return from != nullptr && to != nullptr && from->shape() == to->shape() ? Kind::kElemWise : Kind::kBroadcast;
  }

  void Visit(int index, int phase) {
    const Group group = groups_[Representative(index)];
    const Kind own = groups_[index].kind;
    const int sink = dominators_[index];
    if (own == Kind::kOpaque || group.kind == Kind::kOpaque || sink < 0) return;
    if (KindOf(sink) == Kind::kOpaque || Representative(index) == Representative(sink)) return;
    const Kind sink_kind = groups_[Representative(sink)].kind;
    const auto injective = [](Kind kind, bool) { return kind <= Kind::kInjective; };
    if (phase == 2) {
      const bool is_fused_tuple = KindOf(sink) == Kind::kTuple && sink_kind <= Kind::kInjective;
      if (group.kind <= Kind::kInjective && is_fused_tuple) Fuse(index, sink, Kind::kTuple, InjectiveOrTuple);
      return;
    }
    if (sink_kind == Kind::kTuple) return;
    if (group.kind == Kind::kOutEWiseFusable) {
      if (phase == 0) {
        Fuse(index, sink, Kind::kElemWise, [](Kind kind, bool) { return kind <= Kind::kBroadcast; });
      }
    } else if (group.kind <= Kind::kBroadcast) {
      Fuse(index, sink, Kind::kCommReduce, [](Kind kind, bool is_sink) {
        return kind <= Kind::kInjective || (is_sink && kind <= Kind::kOutEWiseFusable);
      });
    } else if (group.kind == Kind::kInjective || group.kind == Kind::kTuple) {
      if (phase == 1) Fuse(index, sink, Kind::kInjective, injective);
    }
  }

  static bool InjectiveOrTuple(Kind kind, bool) { return kind <= Kind::kInjective || kind == Kind::kTuple; }

  /// Fuses `from`, all that lies between, and `sink`, when every edge on the way is at most of kind `edges`, every
  /// node's group satisfies `allows(kind, is sink)`, and the function does not become too large.
  void Fuse(int from, int sink, Kind edges, const std::function<bool(Kind, bool)>& allows) {
    std::vector<int> path{from};
    std::vector<int> stack{from};
    on_path_.resize(graph_.size());
    on_path_[from] = true;
    const auto forget = [&] {
      for (int index : path) on_path_[index] = false;
      on_path_[sink] = false;
    };
    while (!stack.empty()) {
      const int index = stack.back();
      stack.pop_back();
      for (int user : graph_.node(index).outputs) {
        const Kind kind = groups_[Representative(user)].kind;
        const Kind edge = EdgeKind(index, user);
        const bool fits = graph_.AreTogether(user, from) && edge <= edges;
        if (!fits || !allows(kind, user == sink)) return forget();
        if (user == sink || on_path_[user]) continue;
        on_path_[user] = true;
        path.push_back(user);
        stack.push_back(user);
      }
    }
    forget();
    Merge(path, sink);
  }

  void Merge(const std::vector<int>& path, int sink) {
    const int target = Representative(sink);
    std::vector<int> sources;
    for (int index : path) {
      const int source = Representative(index);
      if (source != target) sources.push_back(source);
    }
    SortUnique(sources);
    int64_t calls = groups_[target].calls;
    for (int source : sources) calls += groups_[source].calls;
    if (calls > max_depth_) return;
    for (int source : sources) {
      Group& from = groups_[source];
      Group& to = groups_[target];
      from.parent = target;
      to.calls += from.calls;
      if (!from.has_anchor) continue;
      to.has_anchor = true;
      to.kind = std::max(to.kind, from.kind);
    }
  }

  const DataflowGraph& graph_;
  int64_t max_depth_;
  std::vector<int> dominators_;
  std::vector<Group> groups_;
  std::vector<bool> on_path_;
};

/// Makes the functions.
class FunctionMaker {
 public:
  FunctionMaker(const DataflowGraph& graph, Fuser& fuser) : graph_(graph), fuser_(fuser), members_(fuser.Members()) {}

  Function Run() {
    const auto enters = [&](const FunctionNode& function) { return IsOrdinary(function); };
    return AsShared<FunctionNode>(RewriteNodes(
        graph_.function(), enters, [&](const Expr& original, const Expr& expr, const Rewritten& done) -> Expr {
          const int index = IndexOf(original);
          if (index < 0 || graph_.node(index).is_in_primitive || !IsFusible(original)) return expr;
          if (const OpDef* op = graph_.OpAt(index); op != nullptr && OnlyAnnotates(*op)) {
            return op->name == "annotation.stop_fusion" ? done.at(As<CallNode>(original)->args()[0].get()) : expr;
          }
          const int representative = fuser_.Representative(index);
          if (!fuser_.CallsOperators(representative)) return expr;
          // Values inside a function are used inside it only, so that what becomes of them does not matter.
          return index == members_[representative].back() ? Make(representative, done) : expr;
        }));
  }

 private:
  static bool IsFusible(const Expr& expr) {
    return CalledOp(expr) != nullptr || expr->kind() == ExprKind::kTuple || expr->kind() == ExprKind::kTupleGetItem;
  }

  int IndexOf(const Expr& expr) const { return graph_.IndexOf(expr); }

  Expr Make(int representative, const Rewritten& done) const {
    std::unordered_map<const ExprNode*, Expr> inside;
    std::vector<Var> params;
    std::vector<Expr> args;
    Expr body;
    const std::vector<int>& members = members_[representative];
    for (int index : members) inside[graph_.node(index).expr.get()] = nullptr;
    for (int index : members) {  // in post-dfs order, so that operands come first
      const Expr& expr = graph_.node(index).expr;
      std::vector<Expr> children = Children(expr);
      for (Expr& child : children) {
        auto it = inside.find(child.get());
        if (it == inside.end()) it = inside.emplace(child.get(), Outside(child, params, args, done)).first;
        child = it->second;
      }
      body = WithChildren(expr, children);
      inside[expr.get()] = body;
    }
    const Function function = MakeFunction(
        std::move(params), body, body ? graph_.node(members.back()).expr->checked_type() : nullptr, {{"Primitive", 1}});
    function->share_span(*body);
    const Expr call = MakeCall(function, std::move(args));
    call->share_span(*body);
    return call;
  }

  /// Returns the replacement, in a function, of a value from outside: the value if it is an operator or a scalar, else
  /// a parameter.
  static Expr Outside(const Expr& expr, std::vector<Var>& params, std::vector<Expr>& args, const Rewritten& done) {
    const ConstantNode* constant = As<ConstantNode>(expr);
    if (expr->kind() == ExprKind::kOp || (constant != nullptr && constant->is_scalar())) return expr;
    params.push_back(MakeVar("p" + std::to_string(params.size()), expr->checked_type()));
    args.push_back(done.at(expr.get()));
    return params.back();
  }

  const DataflowGraph& graph_;
  Fuser& fuser_;
  std::vector<std::vector<int>> members_;
};

}  // namespace

std::vector<std::vector<int>> FusionGroups(const DataflowGraph& graph, int64_t max_calls) {
  Fuser fuser(graph, max_calls);
  fuser.Run();
  std::vector<std::vector<int>> groups = fuser.Members();
  std::erase_if(groups, [&](const std::vector<int>& group) {
    return std::ranges::none_of(group, [&](int index) { return graph.OpAt(index) != nullptr; });
  });
  std::ranges::sort(groups);
  return groups;
}

Function FuseOps(const Function& function, const IRModule&, const PassContext& context) {
  const DataflowGraph graph(function);
  Fuser fuser(graph, context.ConfigInt("relay.FuseOps.max_depth"));
  if (context.opt_level > 0) fuser.Run();
  return FunctionMaker(graph, fuser).Run();
}

}  // namespace collage
