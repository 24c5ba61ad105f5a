// dynamic_to_static.cc: operators whose shapes are computed become static ones as soon as what they are computed from
// is known. Each makes more shapes known, and folding makes more values known, so that rounds go on until nothing
// changes.
#include "collage/ir/infer_type.h"
#include "ir/ops/dynamic.h"
#include "transform/passes.h"
#include "transform/rewriting.h"

namespace collage {
namespace {

using Ints = std::vector<int64_t>;

Expr IntConstant(const Ints& values, Shape shape, DataType dtype, const ExprNode& origin) {
  const Tensor tensor = Tensor::Empty(std::move(shape), dtype);
  for (size_t i = 0; i < values.size(); ++i) tensor.Set(static_cast<int64_t>(i), static_cast<double>(values[i]));
  const Expr constant = MakeConstant(tensor);
  constant->share_span(origin);
  InferType(constant);
  return constant;
}

/// The result of shape_of or ndarray_size where the argument's type gives it; null where it does not.
Expr KnownShape(const CallNode& call) {
  const bool is_shape = call.op()->name == "shape_of";
  if (!is_shape && call.op()->name != "ndarray_size") return nullptr;
  const TensorTypeNode* type = AsTensorType(InferType(call.args()[0]));
  if (type == nullptr || !type->is_static()) return nullptr;
  const Shape shape = type->static_shape();
  const DataType dtype = call.attrs().Type("dtype");
  if (!is_shape) return IntConstant({NumElements(shape)}, {}, dtype, call);
  return IntConstant(shape, {static_cast<int64_t>(shape.size())}, dtype, call);
}

/// The static operator for a dynamic one whose values are constants; null when one is not.
Expr MakeStatic(const CallNode& call, const DynamicOp& op) {
  std::vector<Tensor> values;
  for (const Expr& value : ValuesOf<Expr>(op, call.args())) {
    const ConstantNode* constant = As<ConstantNode>(value);
    if (constant == nullptr) return nullptr;
    values.push_back(constant->value());
  }
  const Expr result = MakeCall(op.static_name, DataOf<Expr>(op, call.args()), StaticAttrs(op, call.attrs(), values));
  result->share_span(call);
  return result;
}

Function Round(const Function& function) {
  return AsShared<FunctionNode>(
      RewriteNodes(function, IsOrdinary, [](const Expr&, const Expr& expr, const Rewritten&) -> Expr {
        const OpDef* op = CalledOp(expr);
        if (op == nullptr) return expr;
        const CallNode& call = *As<CallNode>(expr);
        const DynamicOp* dynamic = FindDynamicOp(op->name);
        const Expr result = dynamic != nullptr ? MakeStatic(call, *dynamic) : KnownShape(call);
        return result ? result : expr;
      }));
}

}  // namespace

Function DynamicToStatic(const Function& function, const IRModule& module, const PassContext&) {
  Function result = function;
  for (Function before; before != result;) {
    before = result;
    // Sizes that were annotated as dynamic may be known now.
    result = Round(FoldConstant(result));
    if (result != before && result->result_type()) {
      const Function open =
          MakeFunction(result->params(), result->body(), nullptr, result->attrs(), result->type_params());
      open->share_span(*result);
      result = open;
    }
    InferType(result, module);
  }
  return result;
}

}  // namespace collage
