// dynamic_partition.cc: a function with numbers in place of its dynamic sizes (Emitter::Symbolic), and its stage.
#include "backends/native/compiler/driver/dynamic_partition.h"

#include <fmt/format.h>

#include <map>

#include "backends/native/compiler/driver/codegen.h"
#include "backends/native/compiler/driver/operator_table.h"
#include "backends/native/compiler/stages/elements.h"
#include "backends/native/compiler/stages/epilogue.h"
#include "collage/ir/dynamic_sizes.h"
#include "collage/ir/visitor.h"
#include "collage/support/error.h"

namespace collage::native {
namespace {

/// The function again, every type with a number for each of its sizes.
class WithNumbers {
 public:
  WithNumbers(const Function& function, Emitter& emitter) : sizes_(FindDynamicSizes(function, &exprs_)), e_(emitter) {
    for (size_t value = 0; value < exprs_.size(); ++value) Add(static_cast<int>(value));
    for (const Var& param : function->params()) params.push_back(made_.at(param.get()));
    body = made_.at(function->body().get());
  }

  std::vector<Expr> params;
  Expr body;

 private:
  void Add(int value) {
    const Expr& expr = exprs_[static_cast<size_t>(value)];
    std::vector<Expr> children = Children(expr);
    Expr copy = expr;
    if (expr->kind() == ExprKind::kVar) {
      copy = MakeVar(static_cast<const VarNode&>(*expr).name(), nullptr);
    } else if (!children.empty()) {
      for (Expr& child : children) {
        if (const auto made = made_.find(child.get()); made != made_.end()) child = made->second;
      }
      copy = WithChildren(expr, children);
    }
    made_[expr.get()] = copy;
    if (copy != expr) copy->set_checked_type(Numbered(value, expr->checked_type()));
  }

  Type Numbered(int value, const Type& type) {
    const TupleTypeNode* tuple = AsTupleType(type);
    if (tuple == nullptr) return NumberedTensor(value, 0, type);
    std::vector<Type> fields;
    for (const Type& field : tuple->fields()) {
      fields.push_back(NumberedTensor(value, static_cast<int>(fields.size()), field));
    }
    return TupleType(std::move(fields));
  }

  Type NumberedTensor(int value, int field, const Type& type) {
    const TensorTypeNode* tensor = AsTensorType(type);
    if (tensor == nullptr) throw Error(ErrorCategory::kUnsupported, "a value that is no tensor");
    Shape shape;
    for (int dim = 0; dim < tensor->rank(); ++dim) {
      const Dim& size = tensor->shape()[static_cast<size_t>(dim)];
      const int variable = size.is_any() ? sizes_.VariableAt({value, field, dim}) : -1;
      const int64_t known = variable < 0 ? size.size() : sizes_.variables[static_cast<size_t>(variable)].known;
      shape.push_back(known >= 0 ? known : e_.Symbolic(variable));
    }
    return TensorType(shape, tensor->dtype());
  }

  std::vector<Expr> exprs_;
  DynamicSizes sizes_;
  Emitter& e_;
  std::unordered_map<const ExprNode*, Expr> made_;
};

/// The one operator in `body` that needs loops of its own; null where there is none.
Expr AnchorOf(const Expr& body) {
  Expr anchor;
  PostOrder(body, [&](const Expr& expr) {
    const CallNode* call = As<CallNode>(expr);
    if (call == nullptr || FindStage(call->op()->name) == nullptr) return;
    if (anchor != nullptr) throw Error(ErrorCategory::kUnsupported, "several stages of dynamic shapes in one kernel");
    anchor = expr;
  });
  return anchor;
}

void EmitResult(PartitionState& state, const Expr& body, const Buffer& buffer) {
  const Expr anchor = AnchorOf(body);
  if (anchor == nullptr) return EmitPointwise(state, body, buffer);
  const CallNode& call = *As<CallNode>(anchor);
  const OperatorRow& row = *FindStage(call.op()->name);
  if (anchor != body && (!row.fuses_epilogue || !IsEpilogue(body, anchor))) {
    throw Error(ErrorCategory::kUnsupported, "what is behind a stage of dynamic shapes is not made in its place");
  }
  (row.dynamic_stage != nullptr ? row.dynamic_stage : row.stage)(state, call, {anchor, body, buffer});
}

}  // namespace

LoweredPartition LowerDynamicPartition(const PartitionRequest& request, const NativeOptions& options) {
  PartitionState state(TargetOf(options), request.num_threads, options);
  Emitter& e = state.emitter;
  const WithNumbers function(request.function, e);
  const auto place = [&](BufferRef ref, const Type& type) {
    const TensorTypeNode& tensor = *AsTensorType(type);
    const Shape shape = tensor.static_shape();
    return Buffer{ref, 0, tensor.dtype(), shape, e.Strides(shape)};
  };
  for (const Expr& param : function.params) {
    state.expressions.SetBuffer(param, place(InputRef(state.num_inputs++), param->checked_type()));
  }
  e.SetSizes(InputRef(state.num_inputs++));
  int outputs = 0;
  const Expr& body = function.body;
  const TupleTypeNode* tuple = AsTupleType(body->checked_type());
  if (tuple == nullptr) EmitResult(state, body, place(OutputRef(outputs++), body->checked_type()));
  for (size_t i = 0; tuple != nullptr && i < tuple->fields().size(); ++i) {
    const TupleNode* written = As<TupleNode>(body);
    const Expr field = written != nullptr ? written->fields()[i] : MakeTupleGetItem(body, static_cast<int>(i));
    field->set_checked_type(tuple->fields()[i]);
    state.synthetic.push_back(field);
    EmitResult(state, field, place(OutputRef(outputs++), tuple->fields()[i]));
  }
  return {state.Module(outputs), state.constants, /*workspace_bytes=*/0};
}

}  // namespace collage::native
