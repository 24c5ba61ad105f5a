// match_reader.cc: parameters and constants behind a composite's own parameters.
#include "backends/fused_matches/match_reader.h"

#include <algorithm>
#include <utility>

#include "backends/fused_matches/activation.h"
#include "collage/ir/op.h"
#include "collage/ir/visitor.h"

namespace collage::matches {

const TensorTypeNode& TensorOf(const Expr& expr) {
  const TensorTypeNode* type = AsTensorType(expr->checked_type());
  if (type == nullptr || !type->is_static()) throw Refusal{"takes tensors of static shape only"};
  if (NumElements(type->static_shape()) == 0) throw Refusal{"takes no empty tensors"};
  return *type;
}

bool IsBias(const CallNode& call, const Operand& operand, int64_t channels, int64_t axis, int64_t rank) {
  if (operand.input >= 0 || NumElements(operand.shape) != channels) return false;
  if (call.op()->name == "nn.bias_add") {
    const int64_t told = call.attrs().Int("axis");
    return (told < 0 ? told + rank : told) == axis;
  }
  // Dimensions are counted from the last one.
  const auto own_rank = static_cast<int64_t>(operand.shape.size());
  const int64_t at = axis - (rank - own_rank);
  return channels == 1 || (at >= 0 && own_rank <= rank && operand.shape[static_cast<size_t>(at)] == channels);
}

Shape AsImage(Shape shape) {
  if (shape.size() == 3) shape.insert(shape.begin() + 2, 1);
  return shape;
}

MatchReader::MatchReader(const Function& function, const BoundaryLayouts& layouts)
    : layouts_(layouts), body_(function) {
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

Operand MatchReader::OperandOf(const Expr& expr) const {
  const TensorTypeNode& type = TensorOf(expr);
  Operand operand;
  operand.shape = type.static_shape();
  operand.dtype = type.dtype();
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

Follower MatchReader::FollowerOf(const Call& current) const {
  Call reader;
  // The last first: functions that are written out contain others.
  for (size_t i = calls_.size(); i-- > 0 && calls_[i] != current;) {
    if (const auto function = MatchActivation(calls_[i], current)) return {calls_[i], function};
    if (std::ranges::find(calls_[i]->args(), current) != calls_[i]->args().end()) reader = calls_[i];
  }
  if (reader == nullptr) throw Refusal{"its operators form no chain"};
  return {reader, std::nullopt};
}

}  // namespace collage::matches
