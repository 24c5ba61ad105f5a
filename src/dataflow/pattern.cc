// pattern.cc: finding all matches of a pattern by backtracking with continuations.
#include "dataflow/pattern.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "collage/ir/visitor.h"
#include "ir/attr_visitor.h"
#include "support/sort_unique.h"

namespace collage {
namespace {

/// Whether the attribute's value is what `wanted` says: 1, 0.5, True, None, name, "name", [1, 2].
struct ValueMatcher {
  std::string_view wanted;

  bool None() const { return wanted == "None"; }
  bool Bool(bool flag) const { return wanted == (flag ? "True" : "False") || wanted == (flag ? "1" : "0"); }
  bool Int(int64_t number) const { return wanted == std::to_string(number); }
  bool Double(double number) const {
    double value = 0;
    const auto [end, code] = std::from_chars(wanted.data(), wanted.data() + wanted.size(), value);
    return code == std::errc() && end == wanted.data() + wanted.size() && number == value;
  }
  bool Text(const std::string& text) const { return text == wanted || '"' + text + '"' == wanted; }
  bool List(const AttrValue::List& list) const {
    if (!wanted.starts_with('[') || !wanted.ends_with(']')) return false;
    std::string_view rest = wanted.substr(1, wanted.size() - 2);
    for (size_t i = 0; i < list.size(); ++i) {
      size_t end = 0;
      for (int depth = 0; end < rest.size() && (depth > 0 || rest[end] != ','); ++end) {
        depth += rest[end] == '[' ? 1 : rest[end] == ']' ? -1 : 0;
      }
      if (!VisitAttr(list[i], ValueMatcher{rest.substr(0, end)})) return false;
      const bool is_last = i + 1 == list.size();
      if (is_last != (end == rest.size())) return false;
      rest.remove_prefix(is_last ? end : end + 1);
    }
    return rest.empty();
  }
};

bool HasType(const Type& type, const DFPattern& pattern) {
  const TensorTypeNode* tensor = AsTensorType(type);
  if (tensor == nullptr) return false;
  if (!pattern.dtype.empty() && tensor->dtype().ToString() != pattern.dtype) return false;
  if (pattern.any_shape) return true;
  const auto fits = [](int64_t wanted, const Dim& dim) {
    return wanted < 0 || (!dim.is_any() && dim.size() == wanted);
  };
  return std::equal(pattern.shape.begin(), pattern.shape.end(), tensor->shape().begin(), tensor->shape().end(), fits);
}

/// One search for all matches at a root. Depth of recursion is the pattern's depth, not the graph's.
class Search {
 public:
  Search(const DataflowGraph& graph, std::vector<int>& dominators,
         const std::function<void(const std::vector<int>&)>& found)
      : graph_(graph), dominators_(dominators), found_(found) {}

  void Run(const DFPattern& pattern, int root) {
    root_ = &pattern;
    Match(pattern, root, [this] {
      std::vector<int> inside = inside_;
      SortUnique(inside);
      if (!inside.empty() && reported_.insert(inside).second) found_(inside);
    });
  }

 private:
  using Next = std::function<void()>;

  /// A pattern that is bound to a node already stands for that one.
  void Match(const DFPattern& pattern, int index, const Next& next) {
    const auto [bound, is_new] = bound_.try_emplace(&pattern, index);
    if (!is_new && bound->second != index) return;
    MatchNode(pattern, index, next);
    if (is_new) bound_.erase(&pattern);
  }

  void MatchNode(const DFPattern& pattern, int index, const Next& next) {
    const Expr& expr = graph_.node(index).expr;
    switch (pattern.kind) {
      case DFPattern::Kind::kWildcard: return next();
      case DFPattern::Kind::kVar: {
        const VarNode* var = As<VarNode>(expr);
        if (var != nullptr && (pattern.op.empty() || var->name() == pattern.op)) next();
        return;
      }
      case DFPattern::Kind::kExpr:
        if (expr == pattern.expr) MatchInside(index, {}, {}, next);
        return;
      case DFPattern::Kind::kOp:
        if (const OpNode* op = As<OpNode>(expr); op != nullptr && op->name() == pattern.op) next();
        return;
      case DFPattern::Kind::kConstant:
        if (graph_.IsConstant(index)) MatchInside(index, {}, {}, next);
        return;
      case DFPattern::Kind::kAlternative:
        for (const DFPatternPtr& choice : pattern.args) Match(*choice, index, next);
        return;
      case DFPattern::Kind::kTuple:
        if (expr->kind() == ExprKind::kTuple) MatchInside(index, pattern.args, Indices(Children(expr)), next);
        return;
      case DFPattern::Kind::kProjection: {
        const TupleGetItemNode* item = As<TupleGetItemNode>(expr);
        if (item == nullptr || (pattern.index >= 0 && item->index() != pattern.index)) return;
        return MatchInside(index, pattern.args, {graph_.IndexOf(item->tuple())}, next);
      }
      case DFPattern::Kind::kTyped:
        if (HasType(expr->checked_type(), pattern)) Match(*pattern.args[0], index, next);
        return;
      case DFPattern::Kind::kCall: return MatchCall(pattern, index, next);
      case DFPattern::Kind::kFunction: return MatchFunction(pattern, index, next);
      case DFPattern::Kind::kLet: {
        const LetNode* let = As<LetNode>(expr);
        if (let == nullptr) return;
        return MatchInside(index, pattern.args, Indices({let->var(), let->value(), let->body()}), next);
      }
      case DFPattern::Kind::kIf:
        if (expr->kind() == ExprKind::kIf) MatchInside(index, pattern.args, Indices(Children(expr)), next);
        return;
      case DFPattern::Kind::kDominates: return MatchDominates(pattern, index, next);
    }
  }

  std::vector<int> Indices(const std::vector<Expr>& exprs) const {
    std::vector<int> indices;
    for (const Expr& expr : exprs) indices.push_back(graph_.IndexOf(expr));
    return indices;
  }

  static bool HaveValues(const Attrs& attrs, const DFPattern& pattern) {
    return std::all_of(pattern.attrs.begin(), pattern.attrs.end(), [&](const auto& wanted) {
      const AttrValue* value = attrs.Find(wanted.first);
      return value != nullptr && VisitAttr(*value, ValueMatcher{wanted.second});
    });
  }

  void MatchCall(const DFPattern& pattern, int index, const Next& next) {
    const CallNode* call = As<CallNode>(graph_.node(index).expr);
    if (call == nullptr) return;
    const OpDef* op = call->op();
    const bool has_op = pattern.op.empty() || (op != nullptr && op->name == pattern.op);
    if (!has_op && !(op != nullptr && IsProduct(pattern) && IsProduct(op->name))) return;
    if (!HaveValues(call->attrs(), pattern)) return;
    if (IsProduct(pattern)) return MatchProduct(pattern, *call, index, next);
    if (!pattern.op.empty()) return MatchArgs(pattern.args, pattern.any_args, *call, index, next);
    const std::vector<DFPatternPtr> args(pattern.args.begin() + 1, pattern.args.end());
    Match(*pattern.args[0], graph_.IndexOf(call->callee()),
          [&] { MatchArgs(args, pattern.any_args, *call, index, next); });
  }

  void MatchArgs(const std::vector<DFPatternPtr>& patterns, bool any_args, const CallNode& call, int index,
                 const Next& next) {
    if (any_args) return MatchInside(index, {}, {}, next);
    std::vector<int> args = Indices(call.args());
    if (args.size() != patterns.size()) return;
    MatchInside(index, patterns, args, next);
    const OpDef* op = call.op();
    if (args.size() != 2 || args[0] == args[1] || op == nullptr) return;
    if (op->name != "add" && op->name != "multiply") return;
    std::swap(args[0], args[1]);
    MatchInside(index, patterns, args, next);
  }

  // ---- chains of multiply and divide ----

  static bool IsProduct(std::string_view op) { return op == "multiply" || op == "divide"; }
  static bool IsProduct(const DFPattern& pattern) {
    return pattern.kind == DFPattern::Kind::kCall && IsProduct(pattern.op) && pattern.args.size() == 2 &&
           !pattern.any_args && pattern.attrs.empty();
  }

  /// Factors and divisors of a product. Only patterns that occur once are taken apart: a shared one stands for a node,
  /// which must exist.
  struct Product {
    std::vector<const DFPattern*> factors, divisors;
  };

  void AddFactors(const DFPattern& pattern, Product& product) {
    if (pattern.op == "divide") {
      AddFactor(*pattern.args[0], product);
      product.divisors.push_back(pattern.args[1].get());
    } else {
      for (const DFPatternPtr& arg : pattern.args) AddFactor(*arg, product);
    }
  }
  void AddFactor(const DFPattern& pattern, Product& product) {
    if (IsProduct(pattern) && NumUses(pattern) == 1) return AddFactors(pattern, product);
    product.factors.push_back(&pattern);
  }

  int NumUses(const DFPattern& pattern) {
    if (num_uses_.empty()) num_uses_ = CountUses(*root_);
    return num_uses_.at(&pattern);
  }

  /// A product without divisors, or a quotient without products, is matched as it is written; anything else in each
  /// order and with all brackets that have the same value.
  void MatchProduct(const DFPattern& pattern, const CallNode& call, int index, const Next& next) {
    Product product;
    AddFactors(pattern, product);
    const bool is_mixed = product.factors.size() > 1 && !product.divisors.empty();
    if (is_mixed && product.factors.size() + product.divisors.size() <= kMaxProduct) {
      const Mask factors = (Mask{1} << product.factors.size()) - 1, divisors = (Mask{1} << product.divisors.size()) - 1;
      return MatchPart(product, factors, divisors, index, next);
    }
    if (call.op()->name == pattern.op) MatchArgs(pattern.args, false, call, index, next);
  }

  using Mask = uint32_t;
  static constexpr size_t kMaxProduct = 8;

  /// The part of a product with the given factors, one at least, and divisors.
  void MatchPart(const Product& product, Mask factors, Mask divisors, int index, const Next& next) {
    if (std::has_single_bit(factors) && divisors == 0) {
      return Match(*product.factors[std::countr_zero(factors)], index, next);
    }
    const CallNode* call = As<CallNode>(graph_.node(index).expr);
    if (call == nullptr || call->op() == nullptr || call->args().size() != 2) return;
    const int left = graph_.IndexOf(call->args()[0]), right = graph_.IndexOf(call->args()[1]);
    inside_.push_back(index);
    if (call->op()->name == "divide") {
      for (Mask rest = divisors; rest != 0; rest &= rest - 1) {
        const Mask one = rest & ~(rest - 1);
        const DFPattern& divisor = *product.divisors[std::countr_zero(one)];
        MatchPart(product, factors, divisors ^ one, left, [&] { Match(divisor, right, next); });
      }
    } else if (call->op()->name == "multiply") {
      // Each split of factors into two parts that are not empty, and any split of divisors.
      for (Mask f = (factors - 1) & factors; f != 0; f = (f - 1) & factors) {
        for (Mask d = divisors;; d = (d - 1) & divisors) {
          MatchPart(product, f, d, left, [&] { MatchPart(product, factors ^ f, divisors ^ d, right, next); });
          if (d == 0) break;
        }
      }
    }
    inside_.pop_back();
  }

  void MatchFunction(const DFPattern& pattern, int index, const Next& next) {
    const FunctionNode* function = As<FunctionNode>(graph_.node(index).expr);
    if (function == nullptr || !HaveValues(function->attrs(), pattern)) return;
    std::vector<int> nodes;
    if (!pattern.any_args) nodes = Indices({function->params().begin(), function->params().end()});
    nodes.push_back(graph_.IndexOf(function->body()));
    MatchInside(index, pattern.args, nodes, next);
  }

  /// `index` is inside, unless it can be inlined, and `patterns` match `nodes`.
  void MatchInside(int index, const std::vector<DFPatternPtr>& patterns, const std::vector<int>& nodes,
                   const Next& next) {
    if (patterns.size() != nodes.size()) return;
    const bool is_inside = !graph_.CanInline(index);
    if (is_inside) inside_.push_back(index);
    MatchAll(patterns, nodes, 0, next);
    if (is_inside) inside_.pop_back();
  }

  void MatchAll(const std::vector<DFPatternPtr>& patterns, const std::vector<int>& nodes, size_t from,
                const Next& next) {
    if (from == patterns.size()) return next();
    Match(*patterns[from], nodes[from], [&] { MatchAll(patterns, nodes, from + 1, next); });
  }

  /// args: parent, path, child.
  void MatchDominates(const DFPattern& pattern, int index, const Next& next) {
    Match(*pattern.args[2], index, [&] {
      for (int parent : ParentsOf(index)) {
        Match(*pattern.args[0], parent, [&] {
          const size_t before = inside_.size();
          if (AddPath(*pattern.args[1], parent, index)) next();
          inside_.resize(before);
        });
      }
    });
  }

  /// Nodes above `index` all of whose uses come together in it, nearest first.
  std::vector<int> ParentsOf(int index) {
    if (dominators_.empty()) dominators_ = DominatorParents(graph_);
    std::vector<int> parents;
    std::unordered_set<int> seen;
    std::vector<int> work{index};
    while (!work.empty()) {
      const int node = work.back();
      work.pop_back();
      for (int input : graph_.node(node).inputs) {
        if (graph_.IsInlinedInPartitions(input) || !seen.insert(input).second) continue;
        int dominator = dominators_[input];
        while (dominator >= 0 && dominator < index) dominator = dominators_[dominator];
        if (dominator == index) parents.push_back(input);
        work.push_back(input);
      }
    }
    std::sort(parents.rbegin(), parents.rend());
    return parents;
  }

  /// Puts the nodes between `parent` and `child` inside; false when one of them does not match.
  bool AddPath(const DFPattern& path, int parent, int child) {
    std::unordered_set<int> on_path;
    std::vector<int> work{parent};
    while (!work.empty()) {
      const int node = work.back();
      work.pop_back();
      for (int output : graph_.node(node).outputs) {
        if (output >= child || !on_path.insert(output).second) continue;
        if (!MatchesAt(path, output)) return false;
        work.push_back(output);
      }
    }
    inside_.insert(inside_.end(), on_path.begin(), on_path.end());
    return true;
  }

  /// Whether `pattern` matches at `index` in some way; nothing that it matches goes inside.
  bool MatchesAt(const DFPattern& pattern, int index) {
    bool matches = false;
    const std::vector<int> inside = inside_;
    const auto bound = bound_;
    Match(pattern, index, [&] { matches = true; });
    inside_ = inside;
    bound_ = bound;
    return matches;
  }

  const DataflowGraph& graph_;
  std::vector<int>& dominators_;
  const std::function<void(const std::vector<int>&)>& found_;
  const DFPattern* root_ = nullptr;
  std::vector<int> inside_;
  std::unordered_map<const DFPattern*, int> bound_;
  std::unordered_map<const DFPattern*, int> num_uses_;  ///< empty until needed
  std::set<std::vector<int>> reported_;
};

}  // namespace

std::unordered_map<const DFPattern*, int> CountUses(const DFPattern& pattern) {
  std::unordered_map<const DFPattern*, int> num_uses;
  std::vector<const DFPattern*> work{&pattern};
  while (!work.empty()) {
    const DFPattern* one = work.back();
    work.pop_back();
    for (const DFPatternPtr& arg : one->args) {
      if (IsOptional(*one) && arg == one->args[1]) continue;
      if (++num_uses[arg.get()] == 1) work.push_back(arg.get());
    }
  }
  return num_uses;
}

void PatternMatcher::Match(const DFPattern& pattern, int root,
                           const std::function<void(const std::vector<int>&)>& found) {
  Search(graph_, dominators_, found).Run(pattern, root);
}

void MatchPattern(const DataflowGraph& graph, const DFPattern& pattern, int root,
                  const std::function<void(const std::vector<int>&)>& found) {
  PatternMatcher(graph).Match(pattern, root, found);
}

}  // namespace collage
