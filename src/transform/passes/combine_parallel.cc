// combine_parallel.cc: branches are found on the original function, then made in one rewriting.
#include "transform/passes/combine_parallel.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "collage/ir/infer_type.h"
#include "collage/ir/visitor.h"

namespace collage {
namespace {

struct Group {
  std::vector<Branch> branches;
  size_t depth = 1;  ///< operators of each branch that are combined
};

class Combiner {
 public:
  Combiner(const Function& function, const ParallelAnchor& anchor, int64_t min_branches)
      : function_(function), anchor_(anchor), min_branches_(static_cast<size_t>(std::max<int64_t>(min_branches, 2))) {}

  Function Run() {
    FindUses();
    FindGroups();
    if (groups_.empty()) return function_;
    return AsShared<FunctionNode>(
        RewriteNodes(function_, IsOrdinary, [&](const Expr& original, const Expr& expr, const Rewritten& done) {
          auto it = group_of_.find(original.get());
          return it == group_of_.end() ? expr : Replace(original, it->second, done);
        }));
  }

 private:
  const OpDef* AnchorOp(const Expr& expr) const {
    const OpDef* op = CalledOp(expr);
    return op != nullptr && op->name == anchor_.op ? op : nullptr;
  }

  void FindUses() {
    PostOrderInScope(function_->body(), [&](const Expr& expr) {
      bool behind = AnchorOp(expr) != nullptr;
      behind = behind || (expr->kind() == ExprKind::kVar && !IsParam(expr));
      for (const Expr& child : Children(expr)) {
        users_[child.get()].push_back(expr);
        behind = behind || behind_anchor_.contains(child.get());
      }
      if (behind) behind_anchor_.insert(expr.get());
      if (AnchorOp(expr) != nullptr) anchors_.push_back(expr);
    });
    users_[function_->body().get()].push_back(function_);
  }

  bool IsParam(const Expr& expr) const {
    const std::vector<Var>& params = function_->params();
    return std::find(params.begin(), params.end(), expr) != params.end();
  }

  /// Other inputs of a branch must not come from an anchor, which could be another branch. Nor from a let: it could be
  /// bound behind the first branch.
  bool IsIndependent(const Expr& expr) const { return !behind_anchor_.contains(expr.get()); }

  static Attrs Without(Attrs attrs, const std::vector<std::string>& names) {
    for (const std::string& name : names) attrs.Erase(name);
    return attrs;
  }

  void FindGroups() {
    std::vector<Group> candidates;
    std::unordered_map<const ExprNode*, std::vector<size_t>> by_data;
    for (const Expr& expr : anchors_) {
      const CallNode& call = *As<CallNode>(expr);
      if (!std::all_of(call.args().begin() + 1, call.args().end(),
                       [&](const Expr& arg) { return IsIndependent(arg); })) {
        continue;
      }
      bool found = false;
      for (size_t index : by_data[call.args()[0].get()]) {
        const CallNode& first = *As<CallNode>(candidates[index].branches[0][0]);
        if (Without(first.attrs(), anchor_.free_attrs) != Without(call.attrs(), anchor_.free_attrs)) continue;
        if (!anchor_.fits(first, call)) continue;
        candidates[index].branches.push_back({expr});
        found = true;
        break;
      }
      if (found) continue;
      by_data[call.args()[0].get()].push_back(candidates.size());
      candidates.push_back({{{expr}}, 1});
    }
    for (Group& group : candidates) {
      if (group.branches.size() < min_branches_) continue;
      if (!anchor_.part) Extend(group);
      for (const Branch& branch : group.branches) {
        for (const Expr& expr : branch) group_of_[expr.get()] = groups_.size();
      }
      groups_.push_back(std::move(group));
    }
  }

  /// Follows the branches as long as the next operators are alike.
  void Extend(Group& group) {
    while (true) {
      std::vector<Expr> next;
      for (const Branch& branch : group.branches) {
        const std::vector<Expr>& users = users_[branch.back().get()];
        if (users.size() != 1 || CalledOp(users[0]) == nullptr) return;
        next.push_back(users[0]);
      }
      for (const Expr& expr : next) {
        if (!IsAlike(next[0], group.branches[0].back(), expr, group.branches[&expr - next.data()].back())) return;
      }
      for (size_t i = 0; i < next.size(); ++i) group.branches[i].push_back(next[i]);
      ++group.depth;
    }
  }

  /// Whether `a`, which reads `from_a`, does with its branch what `b` does with its own.
  bool IsAlike(const Expr& a, const Expr& from_a, const Expr& b, const Expr& from_b) const {
    const CallNode& x = *As<CallNode>(a);
    const CallNode& y = *As<CallNode>(b);
    if (x.op() != y.op() || x.attrs() != y.attrs() || x.op()->pattern > OpPatternKind::kBroadcast) return false;
    if (x.args().size() != y.args().size()) return false;
    if (!SameShapeAs(b, from_b)) return false;
    for (size_t i = 0; i < x.args().size(); ++i) {
      if ((x.args()[i] == from_a) != (y.args()[i] == from_b)) return false;
      if (x.args()[i] == from_a) continue;
      if (!IsIndependent(x.args()[i]) || !IsIndependent(y.args()[i])) return false;
      if (!CanJoin(x.args()[i], y.args()[i], from_a, from_b)) return false;
    }
    return true;
  }

  /// Broadcasting must not make the result larger than the branch.
  static bool SameShapeAs(const Expr& expr, const Expr& branch) {
    const TensorTypeNode* a = AsTensorType(InferType(expr));
    const TensorTypeNode* b = AsTensorType(InferType(branch));
    return a != nullptr && b != nullptr && a->shape() == b->shape();
  }

  /// Dimension of `arg` that lies along the result axis of a branch of `rank`; -1 when it has none or size 1 there.
  int AlignedAxis(const Expr& arg, int rank) const {
    const TensorTypeNode* type = AsTensorType(InferType(arg));
    const int axis = type->rank() - rank + anchor_.result_axis;
    return axis < 0 || type->shape()[axis] == Dim(1) ? -1 : axis;
  }

  /// Whether extra arguments of two branches can serve both: the same one without extent along the axis, or two to be
  /// concatenated, each with all of its branch's extent.
  bool CanJoin(const Expr& a, const Expr& b, const Expr& from_a, const Expr& from_b) const {
    const TensorTypeNode* x = AsTensorType(InferType(a));
    const TensorTypeNode* y = AsTensorType(InferType(b));
    if (x == nullptr || y == nullptr || x->rank() != y->rank() || x->dtype() != y->dtype()) return false;
    const int rank = AsTensorType(InferType(from_a))->rank();
    const int axis = AlignedAxis(a, rank);
    if (axis < 0) return a == b || IsSameScalar(a, b);
    if (AlignedAxis(b, rank) != axis) return false;
    for (int i = 0; i < x->rank(); ++i) {
      const auto d = static_cast<size_t>(i);
      if (i != axis && x->shape()[d] != y->shape()[d]) return false;
    }
    return HasExtentOf(*x, axis, from_a) && HasExtentOf(*y, axis, from_b);
  }

  bool HasExtentOf(const TensorTypeNode& type, int axis, const Expr& branch) const {
    return type.shape()[axis] == AsTensorType(InferType(branch))->shape()[anchor_.result_axis];
  }

  static bool IsSameScalar(const Expr& a, const Expr& b) {
    const ConstantNode* x = As<ConstantNode>(a);
    const ConstantNode* y = As<ConstantNode>(b);
    return x != nullptr && y != nullptr && x->value().num_elements() == 1 && BitEqual(x->value(), y->value());
  }

  Expr Replace(const Expr& original, size_t index, const Rewritten& done) {
    Group& group = groups_[index];
    std::vector<Expr>& slices = slices_[index];
    if (slices.empty()) slices = Make(group, done);
    for (size_t i = 0; i < group.branches.size(); ++i) {
      const auto at = std::find(group.branches[i].begin(), group.branches[i].end(), original);
      if (at == group.branches[i].end()) continue;
      // Operators before the last are used inside their branch only; the slice is as good as anything.
      return slices[i];
    }
    return original;
  }

  /// The combined branches, one slice of the result for each.
  std::vector<Expr> Make(const Group& group, const Rewritten& done) const {
    std::vector<const CallNode*> anchors;
    for (const Branch& branch : group.branches) anchors.push_back(As<CallNode>(branch[0]));
    Expr wide = anchor_.combine(done.at(anchors[0]->args()[0].get()), anchors);
    for (size_t level = 1; level < group.depth; ++level) {
      const CallNode& first = *As<CallNode>(group.branches[0][level]);
      std::vector<Expr> args;
      for (size_t i = 0; i < first.args().size(); ++i) {
        args.push_back(first.args()[i] == group.branches[0][level - 1] ? wide : JoinArgument(group, level, i));
      }
      wide = TypedCall(first.op()->name, std::move(args), first, first.attrs());
    }
    std::vector<Expr> slices;
    int64_t begin = 0;
    for (const Branch& branch : group.branches) {
      const int64_t size = AsTensorType(InferType(branch[0]))->shape()[anchor_.result_axis].size();
      if (anchor_.part) {
        slices.push_back(anchor_.part(wide, static_cast<int64_t>(slices.size()), *branch.back()));
        continue;
      }
      slices.push_back(TypedCall("strided_slice", {wide}, *branch.back(),
                                 {{"begin", std::vector<int64_t>{begin}},
                                  {"end", std::vector<int64_t>{begin + size}},
                                  {"axes", std::vector<int64_t>{anchor_.result_axis}}}));
      begin += size;
    }
    return slices;
  }

  Expr JoinArgument(const Group& group, size_t level, size_t index) const {
    std::vector<Expr> parts;
    for (const Branch& branch : group.branches) parts.push_back(As<CallNode>(branch[level])->args()[index]);
    const int axis = AlignedAxis(parts[0], AsTensorType(InferType(group.branches[0][0]))->rank());
    if (axis < 0) return parts[0];
    const Expr tuple = MakeTuple(parts);
    InferType(tuple);
    return TypedCall("concatenate", {tuple}, *group.branches[0][level], {{"axis", axis}});
  }

  const Function& function_;
  const ParallelAnchor& anchor_;
  size_t min_branches_;
  std::unordered_map<const ExprNode*, std::vector<Expr>> users_;
  std::unordered_set<const ExprNode*> behind_anchor_;
  std::vector<Expr> anchors_;
  std::vector<Group> groups_;
  std::unordered_map<const ExprNode*, size_t> group_of_;
  std::map<size_t, std::vector<Expr>> slices_;
};

}  // namespace

Expr ConcatenatedWeights(const std::vector<const CallNode*>& anchors, int axis) {
  std::vector<Expr> weights;
  for (const CallNode* anchor : anchors) weights.push_back(anchor->args()[1]);
  const Expr tuple = MakeTuple(std::move(weights));
  InferType(tuple);
  return TypedCall("concatenate", {tuple}, *anchors[0], {{"axis", axis}});
}

bool WeightsFit(const CallNode& a, const CallNode& b, int axis) {
  const TensorTypeNode* x = AsTensorType(InferType(a.args()[1]));
  const TensorTypeNode* y = AsTensorType(InferType(b.args()[1]));
  if (x->dtype() != y->dtype() || x->rank() != y->rank() || !x->is_static() || !y->is_static()) return false;
  for (int i = 0; i < x->rank(); ++i) {
    const auto d = static_cast<size_t>(i);
    if (i != axis && x->shape()[d] != y->shape()[d]) return false;
  }
  return true;
}

Function CombineParallel(const Function& function, const ParallelAnchor& anchor, int64_t min_branches) {
  return Combiner(function, anchor, min_branches).Run();
}

}  // namespace collage
