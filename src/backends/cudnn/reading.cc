// reading.cc: parameters and constants as values of a graph.
#include "backends/cudnn/reading.h"

#include <fmt/format.h>

#include <utility>

#include "collage/ir/op.h"
#include "collage/ir/visitor.h"

namespace collage::cudnn {
namespace {

const TensorTypeNode& TensorOf(const Expr& expr) {
  const TensorTypeNode* type = AsTensorType(expr->checked_type());
  if (type == nullptr || !type->is_static()) throw Refusal{"takes tensors of static shape only"};
  const DataType dtype = type->dtype();
  if (dtype != kFloat32 && dtype != kFloat16 && dtype != kBFloat16) {
    throw Refusal{"computes float32, float16 and bfloat16, got " + dtype.ToString()};
  }
  if (NumElements(type->static_shape()) == 0) throw Refusal{"takes no empty tensors"};
  return *type;
}

}  // namespace

Shape ShapeOf(const Expr& expr) { return TensorOf(expr).static_shape(); }

DataType DTypeOf(const Expr& expr) { return TensorOf(expr).dtype(); }

Shape StridesOf(const Shape& dims, bool channels_last) {
  Shape strides(dims.size(), 1);
  int64_t next = channels_last ? dims[1] : 1;
  for (size_t i = dims.size(); i-- > 0;) {
    if (channels_last && i == 1) continue;
    strides[i] = next;
    next *= dims[i];
  }
  return strides;
}

Shape AsImage(Shape shape) {
  if (shape.size() == 3) shape.insert(shape.begin() + 2, 1);
  return shape;
}

Reading::Reading(const Function& function, const BoundaryLayouts& layouts) : layouts_(layouts), body_(function) {
  int64_t number = 0;
  for (const Var& param : function->params()) {
    parameters_[param.get()] = number;
    const Type& type = param->checked_type() ? param->checked_type() : param->type_annotation();
    number += static_cast<int64_t>(FlattenTensorTypes(type).size());
  }
  PostOrderInScope(root(), [&](const Expr& expr) {
    if (auto call = AsShared<CallNode>(expr)) {
      if (call->op() == nullptr) throw Refusal{"holds one composite only"};
      calls_.push_back(std::move(call));
    }
  });
}

Operand Reading::OperandOf(const Expr& expr) const {
  Operand operand;
  operand.shape = ShapeOf(expr);
  operand.dtype = DTypeOf(expr);
  const Expr source = body_.Outside(expr);
  if (const ConstantNode* constant = As<ConstantNode>(source)) {
    operand.constant = constant->value();
    return operand;
  }
  const auto parameter = parameters_.find(source.get());
  if (parameter == parameters_.end()) throw Refusal{"an operand is computed inside the match"};
  operand.input = parameter->second;
  operand.layout = layouts_.inputs.at(static_cast<size_t>(operand.input));
  return operand;
}

int Reading::Add(const Operand& operand, Shape dims, Shape strides) {
  if (operand.input < 0) return AddConstant(operand.constant, std::move(dims), std::move(strides));
  graph_.values.push_back({std::move(dims), std::move(strides), operand.dtype, Source::kInput, operand.input});
  return static_cast<int>(graph_.values.size()) - 1;
}

int Reading::AddConstant(Tensor tensor, Shape dims, Shape strides) {
  const auto number = static_cast<int64_t>(constants_.size());
  graph_.values.push_back({std::move(dims), std::move(strides), tensor.dtype(), Source::kConstant, number});
  constants_.push_back(std::move(tensor));
  return static_cast<int>(graph_.values.size()) - 1;
}

int Reading::AddInside(Shape dims, Shape strides) {
  graph_.values.push_back({std::move(dims), std::move(strides)});
  return static_cast<int>(graph_.values.size()) - 1;
}

int Reading::AddNumber(float value, size_t rank) {
  const Shape ones(rank, 1);
  graph_.values.push_back({ones, ones, kFloat32, Source::kNumber, 0, value});
  return static_cast<int>(graph_.values.size()) - 1;
}

}  // namespace collage::cudnn
