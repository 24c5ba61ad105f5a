// canonicalise.cc: rewriting partitions before loops are made of them.
#include "backends/native/canonicalise.h"

#include "backends/native/operators.h"
#include "backends/native/parallel_products.h"
#include "collage/ir/infer_type.h"
#include "transform/rewriting.h"

namespace collage::native {
namespace {

/// Whether arguments `i` of both are constants of one element, the same.
bool HaveEqual(const CallNode& a, const CallNode& b, size_t i) {
  const ConstantNode* x = As<ConstantNode>(a.args()[i]);
  const ConstantNode* y = As<ConstantNode>(b.args()[i]);
  return x != nullptr && y != nullptr && x->value().num_elements() == 1 && y->value().num_elements() == 1 &&
         x->value().At(0) == y->value().At(0);
}

bool IsMaxPool(const std::string& name) {
  return name.find("max_pool") != std::string::npos && !name.ends_with("_indices");
}

/// qnn.quantize(max_pool(qnn.dequantize(x))) with one scale and zero point: max_pool(x). Integers are in the order of
/// the numbers that they stand for, and of nothing but padding the largest is the least that there is for both.
Expr LargestIntegers(const Expr& expr) {
  const CallNode* quantize = AsCallOf(expr, "qnn.quantize");
  const CallNode* pool = quantize == nullptr ? nullptr : As<CallNode>(quantize->args()[0]);
  if (pool == nullptr || pool->op() == nullptr || !IsMaxPool(pool->op()->name)) return expr;
  const CallNode* dequantize = AsCallOf(pool->args()[0], "qnn.dequantize");
  if (dequantize == nullptr || !HaveEqual(*quantize, *dequantize, 1) || !HaveEqual(*quantize, *dequantize, 2))
    return expr;
  const Expr& data = dequantize->args()[0];
  const bool is_positive = As<ConstantNode>(quantize->args()[1])->value().At(0) > 0;
  if (!is_positive || AsTensorType(InferType(data))->dtype() != quantize->attrs().Type("out_dtype")) return expr;
  return TypedCall(pool->op()->name, {data}, *pool, pool->attrs());
}

/// `function` with what its Composite functions hold in place of their calls: loops are made of operators, whatever a
/// rule calls them, but for those that a library computes.
Function WithoutComposites(const Function& function, const std::function<bool(const Expr& call)>& is_kept) {
  bool has_any = false;
  const Function plain =
      AsShared<FunctionNode>(RewriteNodes(function, [&](const Expr&, const Expr& expr, const Rewritten&) -> Expr {
        const CallNode* call = As<CallNode>(expr);
        const Function callee = call == nullptr ? nullptr : AsShared<FunctionNode>(call->callee());
        if (!callee || !callee->attrs().Has("Composite") || is_kept(expr)) return expr;
        has_any = true;
        return InlinedCall(callee, call->args());
      }));
  if (!has_any) return function;
  InferType(plain);
  return plain;
}

}  // namespace

Function Canonicalise(const Function& function, const std::function<bool(const Expr& call)>& is_kept) {
  const Function plain = JoinParallelProducts(WithoutDialect(WithoutComposites(function, is_kept)));
  const Function result = AsShared<FunctionNode>(RewriteNodes(
      plain, [](const FunctionNode& inner) { return !inner.attrs().Has("Composite"); },
      [](const Expr&, const Expr& rewritten, const Rewritten&) { return LargestIntegers(rewritten); }));
  InferType(result);
  return result;
}

}  // namespace collage::native
