// expr.cc: construction of expressions, and their destruction without recursion.
#include "collage/ir/expr.h"

#include "collage/ir/op.h"
#include "collage/support/error.h"

namespace collage {

const Span ExprNode::kNoSpan;
const VirtualDevice ExprNode::kNoDevice;

namespace {

/// Children of nodes that are being destroyed on this thread, while the outermost destructor empties it in a loop, so
/// that a chain of any depth is freed with constant stack. A pointer, since expressions in static storage are destroyed
/// after the thread's own objects.
thread_local std::vector<Expr>* pending = nullptr;

void Drain(std::vector<Expr> nodes) {
  pending = &nodes;
  while (!nodes.empty()) {
    Expr node = std::move(nodes.back());
    nodes.pop_back();
    node.reset();
  }
  pending = nullptr;
}

}  // namespace

void ExprNode::Release(Expr child) {
  if (!child || child.use_count() > 1) return;
  if (pending != nullptr) {
    pending->push_back(std::move(child));
    return;
  }
  std::vector<Expr> nodes;
  nodes.push_back(std::move(child));
  Drain(std::move(nodes));
}

void ExprNode::ReleaseAll(std::vector<Expr>& children) {
  std::vector<Expr> nodes;
  std::vector<Expr>& last_owned = pending != nullptr ? *pending : nodes;
  for (Expr& child : children) {
    if (child.use_count() == 1) {
      last_owned.push_back(std::move(child));
    } else {
      child.reset();  // now, since the same node may come again
    }
  }
  children.clear();
  if (!nodes.empty()) Drain(std::move(nodes));
}

ConstantNode::ConstantNode(Tensor value) : ExprNode(kKind), value_(std::move(value)) {
  set_checked_type(TensorType(value_.shape(), value_.dtype()));
}

const std::string& OpNode::name() const { return def_->name; }

const OpDef* CallNode::op() const {
  const OpNode* op = As<OpNode>(callee_);
  return op == nullptr ? nullptr : &op->def();
}

Var MakeVar(std::string name, Type type) { return std::make_shared<VarNode>(std::move(name), std::move(type)); }

Constant MakeConstant(Tensor value) { return std::make_shared<ConstantNode>(std::move(value)); }

Constant MakeScalar(double value, DataType dtype) {
  Tensor tensor = Tensor::Empty({}, dtype);
  tensor.Set(0, value);
  return MakeConstant(std::move(tensor));
}

Expr MakeTuple(std::vector<Expr> fields) { return std::make_shared<TupleNode>(std::move(fields)); }

Expr MakeTupleGetItem(Expr tuple, int index) { return std::make_shared<TupleGetItemNode>(std::move(tuple), index); }

Expr MakeCall(Expr callee, std::vector<Expr> args, Attrs attrs, std::vector<Type> type_args) {
  return std::make_shared<CallNode>(std::move(callee), std::move(args), std::move(attrs), std::move(type_args));
}

Expr MakeCall(std::string_view op_name, std::vector<Expr> args, Attrs attrs) {
  Op op = GetOp(op_name);
  attrs = CompleteAttrs(op->def(), std::move(attrs));
  return MakeCall(Expr(std::move(op)), std::move(args), std::move(attrs));
}

Function MakeFunction(std::vector<Var> params, Expr body, Type result_type, Attrs attrs,
                      std::vector<TypeVar> type_params) {
  return std::make_shared<FunctionNode>(std::move(params), std::move(body), std::move(result_type),
                                        std::move(type_params), std::move(attrs));
}

Function WithAttr(const Function& function, std::string name, AttrValue value) {
  Attrs attrs = function->attrs();
  attrs.Set(std::move(name), std::move(value));
  Function result = MakeFunction(function->params(), function->body(), function->result_type(), std::move(attrs),
                                 function->type_params());
  result->set_checked_type(function->checked_type());
  result->share_span(*function);
  return result;
}

}  // namespace collage
