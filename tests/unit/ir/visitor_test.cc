#include "collage/ir/visitor.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "collage/ir/op.h"
#include "collage/ir/structural.h"
#include "collage/ir/text.h"
#include "unit/ir/deep.h"

namespace collage {
namespace {

const Type kVector = TensorType(Shape{4}, kFloat32);

TEST(VisitorTest, SharedNodesAreVisitedOnceChildrenFirst) {
  const Var x = MakeVar("x", kVector);
  const Expr shared = MakeCall("exp", {x});
  const Expr root = MakeCall("add", {shared, shared});
  std::vector<Expr> order;
  PostOrder(root, [&](const Expr& expr) { order.push_back(expr); });
  const std::vector<Expr> wanted{FindOp("add"), FindOp("exp"), x, shared, root};
  EXPECT_EQ(order, wanted);
}

TEST(VisitorTest, ScopedOrderLeavesInnerFunctionsClosed) {
  const Var x = MakeVar("x", kVector);
  const Var p = MakeVar("p", kVector);
  const Function inner = MakeFunction({p}, MakeCall("exp", {p}));
  const Expr root = MakeCall(inner, {x});
  bool saw_param = false;
  PostOrderInScope(root, [&](const Expr& expr) { saw_param = saw_param || expr == p; });
  EXPECT_FALSE(saw_param);
  EXPECT_EQ(CountNodes(root), 6u);
}

TEST(VisitorTest, LimitsSayWhatIsVisitedAndWhatEntered) {
  const Var x = MakeVar("x", kVector);
  const Expr left = MakeCall("exp", {x});
  const Expr right = MakeCall("nn.relu", {x});
  const Expr root = MakeCall("add", {left, right});
  std::vector<Expr> order;
  const auto visit = [&](const Expr& expr) { order.push_back(expr); };
  const auto no_op = [](const Expr& child) { return child->kind() != ExprKind::kOp; };
  PostOrder(root, {.visits = no_op, .enters = nullptr}, visit);
  EXPECT_EQ(order, (std::vector<Expr>{x, left, right, root}));
  order.clear();
  PostOrder(root, {.visits = no_op, .enters = [&](const Expr& expr) { return expr != left; }}, visit);
  EXPECT_EQ(order, (std::vector<Expr>{left, x, right, root}));
  order.clear();
  PostOrder(root, {.visits = nullptr, .enters = [](const Expr&) { return false; }}, visit);
  EXPECT_EQ(order, std::vector<Expr>{root});
}

TEST(VisitorTest, RewriteKeepsWhatDoesNotChange) {
  const Var x = MakeVar("x", kVector);
  const Expr kept = MakeCall("exp", {x});
  kept->set_span({"model.onnx", 0, 0});
  const Expr changed = MakeCall("nn.relu", {x});
  changed->set_span({"relu1", 0, 0});
  const Expr root = MakeCall("add", {kept, changed});
  root->set_span({"add1", 0, 0});
  const Expr result = Rewrite(root, [&](const Expr& expr) { return expr == changed ? MakeCall("tanh", {x}) : expr; });
  ASSERT_NE(result, root);
  EXPECT_EQ(As<CallNode>(result)->args()[0], kept);
  EXPECT_EQ(As<CallNode>(As<CallNode>(result)->args()[1])->op()->name, "tanh");
  EXPECT_EQ(result->span().source, "add1");
  EXPECT_EQ(Rewrite(root, [](const Expr& expr) { return expr; }), root);
}

TEST(VisitorTest, EveryKindIsRebuiltWithItsChildren) {
  ParseOptions options;
  options.infer_types = false;
  const IRModule module = ParseModule(R"(
    type List[A] { Cons(A, List[A]), Nil, }
    def @main(%x: float32, %c: bool, %l: List[float32]) {
      let %r = ref(%x);
      let %w = ref_write(%r, 2f);
      let %f = fn (%a: float32) { add(%a, 1f) };
      let %t = (%f(ref_read(%r)), %x);
      if (%c) { match (%l) { Cons(%h, _) => { add(%h, %t.0) }, Nil => { @main(%x, %c, Nil) }, } } else { %t.1 }
    })",
                                      "all.relay", options);
  const Expr function = module.main();
  std::vector<bool> seen(static_cast<size_t>(ExprKind::kRefWrite) + 1, false);
  PostOrder(function, [&](const Expr& expr) {
    seen[static_cast<size_t>(expr->kind())] = true;
    const std::vector<Expr> children = Children(expr);
    if (children.empty()) return;
    const Expr copy = WithChildren(expr, children);
    EXPECT_NE(copy, expr);
    EXPECT_EQ(copy->kind(), expr->kind());
    EXPECT_EQ(Children(copy), children);
  });
  EXPECT_EQ(std::count(seen.begin(), seen.end(), false), 0) << "the text above must hold every kind of expression";
  const Expr copy = Rewrite(
      function, [](const Expr& expr) { return Children(expr).empty() ? expr : WithChildren(expr, Children(expr)); });
  EXPECT_TRUE(StructuralEqual(copy, function));
}

TEST(VisitorTest, SubstituteReplacesByIdentity) {
  const Var x = MakeVar("x", kVector);
  const Var other = MakeVar("x", kVector);
  const Expr root = MakeCall("add", {x, other});
  const Constant one = MakeScalar(1, kFloat32);
  const Expr result = Substitute(root, {{x.get(), one}});
  EXPECT_EQ(As<CallNode>(result)->args()[0], Expr(one));
  EXPECT_EQ(As<CallNode>(result)->args()[1], Expr(other));
}

TEST(VisitorTest, FreeVarsAreThoseNothingBinds) {
  const Var x = MakeVar("x", kVector);
  const Var y = MakeVar("y", kVector);
  const Var p = MakeVar("p", kVector);
  const Var l = MakeVar("l");
  const Function function = MakeFunction({p}, MakeCall("add", {p, y}));
  const Expr root = std::make_shared<LetNode>(l, MakeCall(function, {x}), MakeCall("add", {l, x}));
  EXPECT_EQ(FreeVars(root), (std::vector<Var>{y, x}));
}

TEST(VisitorTest, DepthIsNoLimit) {
  const Function chain = DeepChain();
  EXPECT_EQ(CountNodes(chain), static_cast<size_t>(kDeep) + 3);
  const Var x = chain->params()[0];
  const Expr rewritten = Substitute(chain->body(), {{x.get(), MakeVar("y", kVector)}});
  EXPECT_EQ(CountNodes(rewritten), static_cast<size_t>(kDeep) + 2);
}

}  // namespace
}  // namespace collage
