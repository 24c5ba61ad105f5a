// canonicalise.cc: rewriting partitions before loops are made of them.
#include "backends/native/canonicalise.h"

#include "backends/native/operators.h"
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

}  // namespace

Function Canonicalise(const Function& function) {
  const Function plain = WithoutDialect(function);
  const Function result = AsShared<FunctionNode>(RewriteNodes(
      plain, [](const Expr&, const Expr& rewritten, const Rewritten&) { return LargestIntegers(rewritten); }));
  InferType(result);
  return result;
}

}  // namespace collage::native
