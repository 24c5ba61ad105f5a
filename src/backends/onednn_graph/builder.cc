// builder.cc: tensors, views and results of the graph; what operators become is in operators.cc.
#include "backends/onednn_graph/builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/onednn_graph/operators.h"
#include "collage/ir/op.h"
#include "collage/ir/type.h"
#include "collage/ir/visitor.h"

namespace collage::onednn_graph {

Shape AtLeastVector(Shape shape) { return shape.empty() ? Shape{1} : shape; }

namespace {

const TensorTypeNode& StaticTensor(const Type& type) {
  const TensorTypeNode* tensor = AsTensorType(type);
  if (tensor == nullptr || !tensor->is_static()) throw Refusal{"takes tensors of static shape only"};
  if (NumElements(tensor->static_shape()) == 0) throw Refusal{"takes no empty tensors"};
  return *tensor;
}

}  // namespace

Shape ShapeOf(const Expr& expr) { return StaticTensor(expr->checked_type()).static_shape(); }
DataType DTypeOf(const Expr& expr) { return StaticTensor(expr->checked_type()).dtype(); }

Builder::Builder(const Function* function) : function_(function) {
  if (function_ == nullptr) return;
  PostOrderInScope(*function_, [&](const Expr& expr) {
    for (const Expr& child : Children(expr)) users_[child.get()].push_back(expr);
  });
}

int Builder::NewTensor(const Shape& shape, DataType dtype) {
  spec_.tensors.push_back({.shape = AtLeastVector(shape), .dtype = dtype});
  return static_cast<int>(spec_.tensors.size()) - 1;
}

const Value& Builder::ValueOf(const Expr& expr, size_t index) {
  if (const auto known = values_.find(expr.get()); known != values_.end()) return known->second.at(index);
  std::vector<Value> values;
  if (const ConstantNode* constant = As<ConstantNode>(expr)) {
    const int tensor = NewTensor(constant->value().shape(), constant->value().dtype());
    spec_.tensors.back().constant = static_cast<int>(constants_.size());
    constants_.push_back(constant->value());
    values.push_back({tensor, constant->value().shape()});
  } else if (const TupleNode* tuple = As<TupleNode>(expr)) {
    for (const Expr& field : tuple->fields()) {
      const size_t count = FlattenTensorTypes(field->checked_type()).size();
      for (size_t i = 0; i < count; ++i) values.push_back(ValueOf(field, i));
    }
  } else {  // outside of what is read
    for (const Type& type : FlattenTensorTypes(expr->checked_type())) {
      const TensorTypeNode& tensor = StaticTensor(type);
      const int number = NewTensor(tensor.static_shape(), tensor.dtype());
      spec_.tensors.back().input = number;
      values.push_back({number, tensor.static_shape()});
    }
  }
  return values_.emplace(expr.get(), std::move(values)).first->second.at(index);
}

int Builder::View(const Value& value, const Shape& shape) {
  const Shape wanted = AtLeastVector(shape);
  const GraphTensor tensor = TensorOf(value);
  if (tensor.shape == wanted) return value.tensor;
  const bool is_given = tensor.constant >= 0 || (tensor.input >= 0 && tensor.layout == Layout::kPlain);
  if (!is_given) return -1;
  for (size_t i = 0; i < spec_.tensors.size(); ++i) {
    const GraphTensor& other = spec_.tensors[i];
    if (other.shape == wanted && other.input == tensor.input && other.constant == tensor.constant) {
      return static_cast<int>(i);
    }
  }
  const int view = NewTensor(wanted, tensor.dtype);
  spec_.tensors.back().input = tensor.input;
  spec_.tensors.back().constant = tensor.constant;
  return view;
}

bool Builder::IsTransposedProduct(int tensor) const {
  const auto transposition = producers_.find(tensor);
  if (transposition == producers_.end()) return false;
  const GraphOp& op = spec_.ops[static_cast<size_t>(transposition->second)];
  const auto product = op.kind == "StaticTranspose" ? producers_.find(op.inputs[0]) : producers_.end();
  return product != producers_.end() && spec_.ops[static_cast<size_t>(product->second)].kind == "MatMul";
}

int Builder::Reshaped(const Value& value, const Shape& shape) {
  const Shape wanted = AtLeastVector(shape);
  const DataType dtype = TensorOf(value).dtype;
  if (!IsTransposedProduct(value.tensor)) {
    if (TensorOf(value).input >= 0) throw Refusal{"reshapes nothing whose channels are innermost"};
    return Add(nullptr, kView, nlohmann::json::object(), {value.tensor}, wanted, dtype);
  }
  return Add(nullptr, "StaticReshape", {{"shape", wanted}, {"special_zero", false}}, {value.tensor}, wanted, dtype);
}

int Builder::Shaped(const Value& value, const Shape& shape) {
  const int view = View(value, shape);
  return view >= 0 ? view : Reshaped(value, shape);
}

int Builder::Add(const Call& call, std::string kind, nlohmann::json attrs, std::vector<int> inputs, const Shape& shape,
                 DataType dtype) {
  const int result = NewTensor(shape, dtype);
  producers_[result] = static_cast<int>(spec_.ops.size());
  spec_.ops.push_back({std::move(kind), std::move(attrs), std::move(inputs), {result}});
  calls_.push_back(call ? std::vector<Call>{call} : std::vector<Call>{});
  return result;
}

bool Builder::AddBias(const Call& call, const Expr& product, const Expr& bias, size_t axis) {
  const auto users = users_.find(product.get());
  if (users == users_.end() || users->second.size() != 1 || As<ConstantNode>(bias) == nullptr) return false;
  const Value made = ValueOf(product);
  const auto producer = producers_.find(made.tensor);
  if (producer == producers_.end()) return false;
  GraphOp& op = spec_.ops[static_cast<size_t>(producer->second)];
  const bool is_contraction = op.kind == "Convolution" || op.kind == "ConvTranspose" || op.kind == "MatMul";
  if (!is_contraction || op.inputs.size() != 2 || op.outputs[0] != made.tensor) return false;
  const Shape& own = TensorOf(made).shape;
  const Shape vector{own.at(axis)};
  if (NumElements(ValueOf(bias).shape) != vector[0] || TensorOf(ValueOf(bias)).dtype != TensorOf(made).dtype)
    return false;
  const int operand = View(ValueOf(bias), vector);
  spec_.ops[static_cast<size_t>(producer->second)].inputs.push_back(operand);
  calls_[static_cast<size_t>(producer->second)].push_back(call);
  Set(call, made);
  return true;
}

const CallNode* Builder::OnlyReshapeOf(const Expr& expr) const {
  const auto users = users_.find(expr.get());
  if (users == users_.end() || users->second.size() != 1) return nullptr;
  const CallNode* call = As<CallNode>(users->second.front());
  return call != nullptr && call->op() != nullptr && call->op()->is_reshape ? call : nullptr;
}

void Builder::ReadInputs(const BoundaryLayouts& layouts) {
  int number = 0;
  for (const Var& param : (*function_)->params()) {
    std::vector<Value> values;
    for (const Type& type :
         FlattenTensorTypes(param->checked_type() ? param->checked_type() : param->type_annotation())) {
      const TensorTypeNode& tensor = StaticTensor(type);
      values.push_back({NewTensor(tensor.static_shape(), tensor.dtype()), tensor.static_shape()});
      spec_.tensors.back().input = number;
      spec_.tensors.back().layout = layouts.inputs.at(static_cast<size_t>(number));
      ++number;
    }
    Set(param, std::move(values));
  }
}

void Builder::AddWildcard(const Call& call) {
  std::vector<int> inputs;
  for (const Expr& argument : call->args()) {
    const size_t count = FlattenTensorTypes(argument->checked_type()).size();
    for (size_t i = 0; i < count; ++i) inputs.push_back(ValueOf(argument, i).tensor);
  }
  std::vector<int> outputs;
  std::vector<Value> values;
  for (const Type& type : FlattenTensorTypes(call->checked_type())) {
    const TensorTypeNode& tensor = StaticTensor(type);
    outputs.push_back(NewTensor(tensor.static_shape(), tensor.dtype()));
    values.push_back({outputs.back(), tensor.static_shape()});
  }
  spec_.ops.push_back({"Wildcard", nlohmann::json::object(), std::move(inputs), std::move(outputs)});
  calls_.push_back({call});
  Set(call, std::move(values));
}

void Builder::ReadCall(const Call& call, bool wildcards) {
  if (!wildcards) return Translate(*this, call);
  try {
    Translate(*this, call);
  } catch (const Refusal&) {
    AddWildcard(call);
  }
}

int Builder::Result(const Value& value, Layout layout) {
  if (layout == Layout::kPlain && IsTransposedProduct(value.tensor)) {
    // The library's patterns end in a reshape. Where there is none, one that nobody notices is added.
    Shape shape = AtLeastVector(value.shape);
    if (shape == TensorOf(value).shape) {
      shape[shape.size() - 2] *= shape.back();
      shape.pop_back();
    }
    return Reshaped(value, shape);
  }
  const bool is_made = producers_.contains(value.tensor);
  const bool is_taken = std::ranges::find(spec_.outputs, value.tensor) != spec_.outputs.end();
  const bool fits = layout == Layout::kPlain || TensorOf(value).shape == AtLeastVector(value.shape);
  if (!is_made || is_taken) throw Refusal{"has no copy of a value"};
  const bool is_viewed = std::ranges::any_of(
      spec_.ops, [&](const GraphOp& op) { return op.kind == kView && op.inputs[0] == value.tensor; });
  if (!fits || (is_viewed && layout != Layout::kPlain)) throw Refusal{"reshapes nothing whose channels are innermost"};
  return value.tensor;
}

void Builder::NameResults(const BoundaryLayouts& layouts, bool wildcards) {
  const Expr& body = (*function_)->body();
  const size_t count = FlattenTensorTypes(body->checked_type()).size();
  for (size_t i = 0; i < count; ++i) {
    const Value value = ValueOf(body, i);
    const bool keeps_its_tensor = wildcards && !IsTransposedProduct(value.tensor);
    const int tensor = keeps_its_tensor ? value.tensor : Result(value, layouts.outputs.at(i));
    spec_.outputs.push_back(tensor);
    if (!wildcards) spec_.tensors[static_cast<size_t>(tensor)].layout = layouts.outputs.at(i);
    // A value that is read outside, too, must not vanish in a fusion.
    spec_.ops.push_back({"End", nlohmann::json::object(), {tensor}, {}});
    calls_.emplace_back();
  }
}

void Builder::ReadFunction(const BoundaryLayouts& layouts, bool wildcards) {
  ReadInputs(layouts);
  PostOrderInScope((*function_)->body(), [&](const Expr& expr) {
    switch (expr->kind()) {
      case ExprKind::kCall: {
        const Call call = AsShared<CallNode>(expr);
        if (call->op() == nullptr) throw Refusal{"calls no operator"};
        return ReadCall(call, wildcards);
      }
      case ExprKind::kTupleGetItem: {
        const TupleGetItemNode& item = *As<TupleGetItemNode>(expr);
        if (AsTensorType(expr->checked_type()) == nullptr) throw Refusal{"has no nested tuples"};
        return Set(expr, ValueOf(item.tuple(), static_cast<size_t>(item.index())));
      }
      case ExprKind::kOp:
      case ExprKind::kVar:
      case ExprKind::kConstant:
      case ExprKind::kTuple: return;
      default: throw Refusal{"computes dataflow only"};
    }
  });
  NameResults(layouts, wildcards);
}

}  // namespace collage::onednn_graph
