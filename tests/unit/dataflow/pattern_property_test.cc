// pattern_property_test.cc: the matcher against a matcher by definition, which lists all assignments of nodes to
// patterns, with random patterns on random graphs. Seeds are printed on failure.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "collage/ir/visitor.h"
#include "dataflow/pattern_builder.h"
#include "unit/partition/graphs.h"

namespace collage {
namespace {

using namespace testing_graphs;
using Kind = DFPattern::Kind;
using Inside = std::set<int>;

/// Nodes inside so far, and which node each pattern object stands for.
struct Assignment {
  Inside inside;
  std::map<const DFPattern*, int> nodes;
  auto operator<=>(const Assignment&) const = default;
};
using Assignments = std::set<Assignment>;

/// Everything by its definition, as lists of all possibilities.
class Definition {
 public:
  Definition(const DataflowGraph& graph, const DFPattern& root) : graph_(graph), num_uses_(CountUses(root)) {}

  Assignments Match(const DFPattern& pattern, int node, Assignment before) {
    const auto it = before.nodes.find(&pattern);
    if (it != before.nodes.end() && it->second != node) return {};
    before.nodes[&pattern] = node;
    return MatchNew(pattern, node, before);
  }

 private:
  Assignments MatchNew(const DFPattern& pattern, int node, const Assignment& before) {
    const Expr& expr = graph_.node(node).expr;
    Assignments found;
    switch (pattern.kind) {
      case Kind::kWildcard: return {before};
      case Kind::kConstant: return graph_.IsConstant(node) ? Assignments{With(before, {node})} : Assignments{};
      case Kind::kVar: return expr->kind() == ExprKind::kVar ? Assignments{before} : Assignments{};
      case Kind::kOp:
        return As<OpNode>(expr) && As<OpNode>(expr)->name() == pattern.op ? Assignments{before} : Assignments{};
      case Kind::kAlternative:
        for (const DFPatternPtr& choice : pattern.args) found.merge(Match(*choice, node, before));
        return found;
      case Kind::kTuple:
        if (expr->kind() != ExprKind::kTuple) return {};
        return All(pattern.args, Children(expr), With(before, {node}));
      case Kind::kProjection: {
        const auto* item = As<TupleGetItemNode>(expr);
        if (item == nullptr || (pattern.index >= 0 && item->index() != pattern.index)) return {};
        return Match(*pattern.args[0], graph_.IndexOf(item->tuple()), With(before, {node}));
      }
      case Kind::kTyped: {
        const TensorTypeNode* type = AsTensorType(expr->checked_type());
        if (type == nullptr || type->shape().size() != pattern.shape.size()) return {};
        for (size_t i = 0; i < pattern.shape.size(); ++i) {
          if (pattern.shape[i] >= 0 && pattern.shape[i] != type->shape()[i].size()) return {};
        }
        return Match(*pattern.args[0], node, before);
      }
      case Kind::kCall: return MatchCall(pattern, node, before);
      case Kind::kDominates: return MatchDominates(pattern, node, before);
      default: ADD_FAILURE() << "no such pattern is made"; return {};
    }
  }

  Assignments MatchCall(const DFPattern& pattern, int node, const Assignment& before) {
    Assignments found;
    for (const DFPatternPtr& written : SameValue(pattern)) found.merge(MatchAsWritten(*written, node, before));
    return found;
  }

  Assignments MatchAsWritten(const DFPattern& pattern, int node, const Assignment& before) {
    const CallNode* call = As<CallNode>(graph_.node(node).expr);
    if (call == nullptr || call->op() == nullptr) return {};
    if (pattern.op.empty()) {
      Assignments found;
      for (const Assignment& callee : Match(*pattern.args[0], graph_.IndexOf(call->callee()), before)) {
        found.merge(MatchArgs({pattern.args.begin() + 1, pattern.args.end()}, false, *call, With(callee, {node})));
      }
      return found;
    }
    if (call->op()->name != pattern.op) return {};
    return MatchArgs(pattern.args, pattern.any_args, *call, With(before, {node}));
  }

  Assignments MatchArgs(const std::vector<DFPatternPtr>& patterns, bool any, const CallNode& call,
                        const Assignment& before) {
    if (any) return {before};
    Assignments found = All(patterns, call.args(), before);
    const bool commutes = call.op()->name == "add" || call.op()->name == "multiply";
    if (commutes) found.merge(All(patterns, {call.args()[1], call.args()[0]}, before));
    return found;
  }

  Assignments All(const std::vector<DFPatternPtr>& patterns, const std::vector<Expr>& exprs, const Assignment& before) {
    if (patterns.size() != exprs.size()) return {};
    Assignments all{before};
    for (size_t i = 0; i < patterns.size(); ++i) {
      Assignments next;
      for (const Assignment& one : all) next.merge(Match(*patterns[i], graph_.IndexOf(exprs[i]), one));
      all = std::move(next);
    }
    return all;
  }

  // ---- products ----

  static bool IsProduct(const DFPattern& p, const char* op) {
    return p.kind == Kind::kCall && p.op == op && !p.any_args && p.attrs.empty() && p.args.size() == 2;
  }
  bool IsOwn(const DFPattern& p) const { return num_uses_.contains(&p) && num_uses_.at(&p) == 1; }

  /// Takes a chain apart: (A × B) / C and so on, as long as nobody else needs what is in between.
  void TakeApart(const DFPatternPtr& p, bool is_own, std::vector<DFPatternPtr>& factors,
                 std::vector<DFPatternPtr>& divisors) const {
    if (is_own && IsProduct(*p, "multiply")) {
      for (const DFPatternPtr& arg : p->args) TakeApart(arg, IsOwn(*arg), factors, divisors);
    } else if (is_own && IsProduct(*p, "divide")) {
      TakeApart(p->args[0], IsOwn(*p->args[0]), factors, divisors);
      divisors.push_back(p->args[1]);
    } else {
      factors.push_back(p);
    }
  }

  /// All patterns with the same value as a chain of products and quotients, each written once; else itself.
  const std::vector<DFPatternPtr>& SameValue(const DFPattern& pattern) {
    std::vector<DFPatternPtr>& result = same_value_[&pattern];
    if (!result.empty()) return result;
    if (!IsProduct(pattern, "multiply") && !IsProduct(pattern, "divide")) {
      return result = {std::make_shared<DFPattern>(pattern)};
    }
    std::vector<DFPatternPtr> factors, divisors;
    TakeApart(std::make_shared<DFPattern>(pattern), true, factors, divisors);
    if (factors.size() < 2 || divisors.empty()) return result = {std::make_shared<DFPattern>(pattern)};
    return result = Trees(factors, divisors);
  }

  static std::vector<DFPatternPtr> Trees(const std::vector<DFPatternPtr>& factors,
                                         const std::vector<DFPatternPtr>& divisors) {
    if (factors.size() == 1 && divisors.empty()) return factors;
    std::vector<DFPatternPtr> trees;
    for (size_t i = 0; i < divisors.size(); ++i) {
      std::vector<DFPatternPtr> rest = divisors;
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
      for (const DFPatternPtr& left : Trees(factors, rest)) trees.push_back(CallPattern("divide", {left, divisors[i]}));
    }
    const size_t num = factors.size() + divisors.size();
    for (size_t mask = 0; mask < size_t{1} << num; ++mask) {
      std::vector<DFPatternPtr> f[2], d[2];
      for (size_t i = 0; i < factors.size(); ++i) f[mask >> i & 1].push_back(factors[i]);
      for (size_t i = 0; i < divisors.size(); ++i) d[mask >> (i + factors.size()) & 1].push_back(divisors[i]);
      if (f[0].empty() || f[1].empty()) continue;
      for (const DFPatternPtr& left : Trees(f[0], d[0])) {
        for (const DFPatternPtr& right : Trees(f[1], d[1])) trees.push_back(CallPattern("multiply", {left, right}));
      }
    }
    return trees;
  }

  // ---- dominators ----

  /// Whether `to` can be reached from `from` without `without`.
  bool Reaches(int from, int to, int without) const {
    if (from == to) return true;
    for (int output : graph_.node(from).outputs) {
      if (output != without && Reaches(output, to, without)) return true;
    }
    return false;
  }

  Assignments MatchDominates(const DFPattern& pattern, int node, const Assignment& before) {
    Assignments found;
    const int end = static_cast<int>(graph_.size()) - 1;
    for (const Assignment& child : Match(*pattern.args[2], node, before)) {
      for (int parent = 0; parent < node; ++parent) {
        if (!Reaches(parent, node, -1) || graph_.IsInlinedInPartitions(parent)) continue;
        if (node != end && Reaches(parent, end, node)) continue;
        for (const Assignment& one : Match(*pattern.args[0], parent, child)) {
          Inside path;
          bool fits = true;
          for (int between = parent + 1; between < node; ++between) {
            if (!Reaches(parent, between, -1) || !Reaches(between, node, -1)) continue;
            fits = fits && !Match(*pattern.args[1], between, one).empty();
            path.insert(between);
          }
          if (fits) found.insert(With(one, path));
        }
      }
    }
    return found;
  }

  Assignment With(Assignment assignment, const Inside& more) const {
    for (int node : more) {
      if (!graph_.CanInline(node)) assignment.inside.insert(node);
    }
    return assignment;
  }

  const DataflowGraph& graph_;
  std::unordered_map<const DFPattern*, int> num_uses_;
  std::map<const DFPattern*, std::vector<DFPatternPtr>> same_value_;
};

/// Chains of products, quotients, sums, activations, tuples; values are used up to three times.
Function RandomArithmetic(int count, std::mt19937& random) {
  const Var x = Param("x", {4}), y = Param("y", {4});
  std::vector<Expr> values{x, y, Weights({4})};
  const auto any = [&] { return values[values.size() - 1 - random() % std::min<size_t>(values.size(), 4)]; };
  for (int i = 0; i < count; ++i) {
    switch (random() % 9) {
      case 0: values.push_back(MakeCall("add", {values.back(), any()})); break;
      case 1:
      case 2: values.push_back(MakeCall("multiply", {any(), values.back()})); break;
      case 3:
      case 4: values.push_back(MakeCall("divide", {values.back(), any()})); break;
      case 5: values.push_back(MakeCall("sigmoid", {any()})); break;
      case 6: values.push_back(MakeCall("subtract", {any(), values.back()})); break;
      case 7: {
        const Expr halves = MakeCall("split", {values.back()}, {{"indices_or_sections", 2}, {"axis", 0}});
        values.push_back(MakeCall(
            "concatenate", {MakeTuple({MakeTupleGetItem(halves, 1), MakeTupleGetItem(halves, 0)})}, {{"axis", 0}}));
        break;
      }
      default: values.push_back(MakeCall("multiply", {any(), Scalar(0.5)}));
    }
  }
  return Typed({x, y}, MakeTuple({values.back(), any()}));
}

/// Patterns made from what stands in a graph, changed here and there, so that many match.
class PatternMaker {
 public:
  PatternMaker(const DataflowGraph& graph, std::mt19937& random) : graph_(graph), random_(random) {}

  DFPatternPtr Make(int node, int depth) {
    if (made_.contains(node) && OneIn(2)) return made_[node];
    DFPatternPtr pattern = MakeNew(node, depth);
    if (OneIn(12)) pattern = WithShape(pattern, {OneIn(2) ? -1 : 4});
    if (OneIn(10)) pattern = AlternativePattern({pattern, Make(AnyNode(), 1)});
    return made_[node] = pattern;
  }

 private:
  bool OneIn(uint32_t n) { return random_() % n == 0; }
  int AnyNode() { return static_cast<int>(random_() % graph_.size()); }

  DFPatternPtr MakeNew(int node, int depth) {
    const Expr& expr = graph_.node(node).expr;
    if (depth == 0 || OneIn(8)) return Leaf(node);
    if (const auto* item = As<TupleGetItemNode>(expr)) {
      return ProjectionPattern(Make(graph_.IndexOf(item->tuple()), depth - 1), OneIn(2) ? -1 : item->index());
    }
    std::vector<DFPatternPtr> args;
    if (expr->kind() == ExprKind::kTuple) {
      for (const Expr& field : Children(expr)) args.push_back(Make(graph_.IndexOf(field), depth - 1));
      return TuplePattern(args);
    }
    const CallNode* call = As<CallNode>(expr);
    if (call == nullptr || call->op() == nullptr) return Leaf(node);
    const std::string op = OneIn(12) ? "multiply" : call->op()->name;
    if (OneIn(12)) return AnyCallPattern(op);
    for (const Expr& arg : call->args()) args.push_back(Make(graph_.IndexOf(arg), depth - 1));
    if (args.size() == 2 && OneIn(3)) std::swap(args[0], args[1]);
    if (args.size() == 2 && OneIn(8)) return Rotated(args, depth);
    if (OneIn(10))
      return OptionalPattern(args[0], [&](const DFPatternPtr& first) {
        args[0] = first;
        return CallPattern(op, args);
      });
    if (OneIn(10))
      return DominatorPattern(
          Make(AnyBefore(node), 1),
          OneIn(2) ? Wildcard()
                   : AlternativePattern({AnyCallPattern("multiply"), AnyCallPattern("divide"), AnyCallPattern("add")}),
          CallPattern(op, args));
    if (OneIn(10)) return CallPattern(AlternativePattern({OpPattern(op), OpPattern("add")}), args);
    return CallPattern(op, args);
  }

  /// A product or quotient around a quotient or product.
  DFPatternPtr Rotated(const std::vector<DFPatternPtr>& args, int depth) {
    const DFPatternPtr third = Make(AnyNode(), std::min(depth - 1, 1));
    return OneIn(2) ? CallPattern("divide", {CallPattern("multiply", {args[0], third}), args[1]})
                    : CallPattern("multiply", {CallPattern("divide", {args[0], third}), args[1]});
  }

  int AnyBefore(int node) { return static_cast<int>(random_() % static_cast<uint32_t>(node + 1)); }

  DFPatternPtr Leaf(int node) {
    if (graph_.IsConstant(node) && OneIn(2)) return ConstantPattern();
    if (As<VarNode>(graph_.node(node).expr) != nullptr && OneIn(2)) return VarPattern();
    return Wildcard();
  }

  const DataflowGraph& graph_;
  std::mt19937& random_;
  std::map<int, DFPatternPtr> made_;
};

TEST(PatternPropertyTest, FindsWhatTheDefinitionFinds) {
  size_t num_matches = 0, num_shared = 0, num_chains = 0;
  for (uint32_t seed = 0; seed < 6000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const DataflowGraph graph(RandomArithmetic(3 + static_cast<int>(random() % 5), random), Boundaries::kExact);
    const int from = static_cast<int>(random() % graph.size());
    const DFPatternPtr pattern = PatternMaker(graph, random).Make(from, 3);
    const std::string text = PatternText(*pattern);
    PatternMatcher matcher(graph);
    for (int root = 0; root < static_cast<int>(graph.size()); ++root) {
      std::set<Inside> expected;
      for (const Assignment& one : Definition(graph, *pattern).Match(*pattern, root, {})) {
        if (!one.inside.empty()) expected.insert(one.inside);
      }
      std::set<Inside> found;
      size_t times = 0;
      matcher.Match(*pattern, root, [&](const std::vector<int>& inside) {
        found.insert({inside.begin(), inside.end()});
        ++times;
      });
      ASSERT_EQ(found, expected) << text << " at " << root;
      ASSERT_EQ(times, found.size()) << text << ": each set once";
      num_matches += times;
      num_shared += times > 0 && text.find('$') != std::string::npos ? 1 : 0;
      num_chains += times > 0 && text.find("divide") != std::string::npos && text.find("multiply") != std::string::npos;
      if (pattern->kind == Kind::kOp) continue;
      const DFPatternPtr read = ParsePattern(text);
      std::set<Inside> again;
      PatternMatcher(graph).Match(*read, root, [&](const auto& inside) {
        again.insert({inside.begin(), inside.end()});
      });
      ASSERT_EQ(again, found) << text << " read back";
    }
  }
  EXPECT_GT(num_matches, 2500u);
  EXPECT_GT(num_shared, 100u);
  EXPECT_GT(num_chains, 300u);
}

}  // namespace
}  // namespace collage
