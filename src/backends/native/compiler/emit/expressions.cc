// expressions.cc: from an expression and an index to a vector, through registers, memory, or the operator's row.
#include "backends/native/compiler/emit/expressions.h"

#include <algorithm>

#include "collage/support/error.h"

namespace collage::native {

size_t AxisAttr(const CallNode& call, const char* name, size_t rank) {
  const int64_t axis = call.attrs().Int(name);
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}

const Buffer* Expressions::FindBuffer(const Expr& expr) const {
  auto it = buffers_.find({expr.get(), 0});
  if (it == buffers_.end()) {
    const TupleGetItemNode* item = As<TupleGetItemNode>(expr);
    if (item != nullptr) it = buffers_.find({item->tuple().get(), item->index() + 1});
  }
  return it == buffers_.end() ? nullptr : &it->second;
}

Value Expressions::Constant(const Tensor& value) {
  if (value.dtype().is_floating()) return math_.Number(value.At(0), KindOf(value.dtype()));
  const int64_t number = value.ToInts()[0];
  return value.dtype().is_bool() ? math_.Bool(number != 0) : math_.Integer(number);
}

Value Expressions::At(const Expr& expr, const Indices& indices) {
  if (auto it = registers_.find(expr.get()); it != registers_.end()) return it->second;
  std::string key = e_.mask().name();
  for (const Index& index : indices) key += fmt::format("|{},{},{}", index.base, index.step, index.lanes);
  const std::pair<const ExprNode*, std::string> place{expr.get(), std::move(key)};
  if (auto it = known_.find(place); it != known_.end()) return it->second;
  ++depth_;
  const Value value = Compute(expr, indices);
  known_[place] = value;
  if (--depth_ == 0) known_.clear();
  return value;
}

void Expressions::Inside(const std::function<void()>& body) {
  const auto known = known_;
  e_.Unobserved(body);
  known_ = known;
}

Value Expressions::Compute(const Expr& expr, const Indices& indices) {
  const ConstantNode* constant = As<ConstantNode>(expr);
  if (constant != nullptr && constant->value().num_elements() == 1) return Constant(constant->value());
  if (const Buffer* buffer = FindBuffer(expr)) return e_.Load(*buffer, indices);
  if (constant != nullptr) {
    SetBuffer(expr, place_constant_(constant->value()));
    return e_.Load(*FindBuffer(expr), indices);
  }
  if (const TupleGetItemNode* item = As<TupleGetItemNode>(expr)) return Field(*item, indices);
  const CallNode* call = As<CallNode>(expr);
  if (call == nullptr || call->op() == nullptr) {
    throw Error(ErrorCategory::kUnsupported, "native kernels compute operators only");
  }
  if (const std::optional<Value> gated = LookedUp(expr, indices)) return *gated;
  if (const InPlaceFn* row = FindInPlace(call->op()->name)) return (*row)(*this, *call, indices);
  throw Error(ErrorCategory::kUnsupported, fmt::format("'{}' is not computed in place", call->op()->name));
}

std::optional<Value> Expressions::LookedUp(const Expr& expr, const Indices& indices) {
  if (!math_.IsAvx512()) return {};
  const auto is_given = [&](const Expr& part) {
    return registers_.contains(part.get()) || FindBuffer(part) != nullptr;
  };
  const std::optional<ActivationLookup> gate = gates_.Find(expr, is_given);
  if (!gate) return {};
  return math_.ReluAnd(*gate->pieces, At(gate->argument, indices));
}

/// A field of a tuple that is written out, or of an operator whose fields are computed in place.
Value Expressions::Field(const TupleGetItemNode& item, const Indices& indices) {
  if (const TupleNode* tuple = As<TupleNode>(item.tuple())) {
    return At(tuple->fields()[static_cast<size_t>(item.index())], indices);
  }
  const CallNode* call = As<CallNode>(item.tuple());
  const std::string name = call == nullptr || call->op() == nullptr ? "" : call->op()->name;
  if (const FieldInPlaceFn field = FindFieldInPlace(name)) return field(*this, *call, item.index(), indices);
  throw Error(ErrorCategory::kUnsupported, fmt::format("a field of '{}' is not computed in place", name));
}

const Buffer& Expressions::Table(const CallNode& call, int slot, const std::function<Tensor()>& make) {
  auto it = tables_.find({&call, slot});
  if (it == tables_.end()) it = tables_.emplace(std::pair(&call, slot), place_constant_(make())).first;
  return it->second;
}

const std::vector<ResizeTaps>& Expressions::TapsOf(const CallNode& resize) {
  auto it = resize_taps_.find(&resize);
  if (it == resize_taps_.end()) it = resize_taps_.emplace(&resize, FindResizeTaps(resize)).first;
  return it->second;
}

// An operand's dimensions are the result's last; one of size 1 is read at index 0.
Value Expressions::Operand(const CallNode& call, size_t i, const Indices& indices) {
  const Expr& operand = call.args()[i];
  const Shape shape = ShapeOf(operand);
  Indices own(indices.end() - static_cast<int64_t>(shape.size()), indices.end());
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) own[d] = e_.Zero();
  }
  return At(operand, own);
}

}  // namespace collage::native
