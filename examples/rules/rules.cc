// rules.cc: a predicate, a base rule and a combiner, each of a few lines (docs/write-a-rule.md).
#include <collage/ir/visitor.h>
#include <collage/partition_rules.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace acme {
namespace {

using namespace collage;

constexpr int64_t kTileElements = 4096;

/// A predicate: the result of a match fits the tile of Acme's device.
Result<void> FitsInTile(const Function& match) {
  const TensorTypeNode* result = AsTensorType(match->body()->checked_type());
  if (result == nullptr || !result->is_static()) return Reason{"its result is no tensor of known shape", "acme"};
  int64_t elements = 1;
  for (const int64_t size : result->static_shape()) elements *= size;
  if (elements <= kTileElements) return {};
  return Reason{"its result has " + std::to_string(elements) + " elements, a tile has 4096", "acme"};
}

/// A base rule: every call of an operator with the call that it reads first.
std::vector<RuleCandidate> Pairs(const RuleRequest& request) {
  std::vector<RuleCandidate> pairs;
  PostOrder(request.function->body(), [&](const Expr& expr) {
    const CallNode* call = As<CallNode>(expr);
    if (call == nullptr || call->op() == nullptr || call->args().empty()) return;
    const CallNode* first = As<CallNode>(call->args()[0]);
    if (first != nullptr && first->op() != nullptr) pairs.push_back({{call->args()[0], expr}, "acme.pair"});
  });
  return pairs;
}

/// All that a candidate reads from outside of it, constants aside.
std::set<const ExprNode*> InputsOf(const RuleCandidate& candidate) {
  std::set<const ExprNode*> inputs;
  for (const Expr& expr : candidate.inside) {
    for (const Expr& child : Children(expr)) {
      const bool is_value = child->kind() != ExprKind::kOp && child->kind() != ExprKind::kConstant;
      if (is_value && std::ranges::find(candidate.inside, child) == candidate.inside.end()) inputs.insert(child.get());
    }
  }
  return inputs;
}

bool Overlap(const RuleCandidate& a, const RuleCandidate& b) {
  return std::ranges::any_of(a.inside,
                             [&](const Expr& expr) { return std::ranges::find(b.inside, expr) != b.inside.end(); });
}

/// A combiner: two candidates that read the same values become one, with two results.
std::vector<RuleCandidate> SameInputs(const RuleRequest& request) {
  std::vector<RuleCandidate> unions;
  for (size_t i = request.first_new; i < request.candidates.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const RuleCandidate &a = request.candidates[i], &b = request.candidates[j];
      if (Overlap(a, b) || InputsOf(a) != InputsOf(b)) continue;
      RuleCandidate both{a.inside, "acme.siblings", {i, j}};
      both.inside.insert(both.inside.end(), b.inside.begin(), b.inside.end());
      unions.push_back(both);
    }
  }
  return unions;
}

PartitionRuleFunctions MakeFunctions() {
  return {.rules = {{"acme.pairs", Pairs}, {"acme.same_inputs", SameInputs}},
          .predicates = {{"acme.fits_in_tile", FitsInTile}}};
}

}  // namespace
}  // namespace acme

COLLAGE_RULES_MODULE(acme::MakeFunctions)
