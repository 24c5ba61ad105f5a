// expressions.h: the value of an expression at an index, computed in place: how element-wise, broadcasting and injective
// operators fuse into whatever loop needs their result.
#pragma once

#include <set>
#include <string>
#include <unordered_map>

#include "backends/native/compiler/emitter.h"

namespace collage::native {

/// Operators that `Expressions::At` computes in place.
bool IsInPlace(const OpDef& op);

class Expressions {
 public:
  explicit Expressions(Emitter& emitter) : e_(emitter) {}

  /// Where the value of `expr` lies in memory.
  void SetBuffer(const Expr& expr, Buffer buffer) { buffers_[expr.get()] = std::move(buffer); }
  const Buffer* FindBuffer(const Expr& expr) const {
    auto it = buffers_.find(expr.get());
    return it == buffers_.end() ? nullptr : &it->second;
  }
  /// While set, `expr` is a vector in a register, at whatever index it is asked for (epilogues).
  void SetRegister(const Expr& expr, Value value) { registers_[expr.get()] = std::move(value); }
  void ClearRegisters() { registers_.clear(); }

  /// The value at `indices`, one per logical dimension. Throws kUnsupported for what cannot be computed in place.
  Value At(const Expr& expr, const Indices& indices);


  // Vector mathematics, also for reductions.
  std::string Exp(const std::string& x);
  std::string Unary(const char* op, const std::string& x) { return e_.Def(fmt::format("{} {} : {}", op, x, e_.FloatVector())); }
  std::string Binary(const char* op, const std::string& a, const std::string& b) {
    return e_.Def(fmt::format("{} {}, {} : {}", op, a, b, e_.FloatVector()));
  }

 private:
  Value Call(const CallNode& call, const Indices& indices);
  Value Constant(const Tensor& value);
  Value Cast(const Value& value, DataType to);
  std::string Erf(const std::string& x);
  std::string Tanh(const std::string& x);
  std::string Sigmoid(const std::string& x);
  Value Arithmetic(const std::string& name, const Value& a, const Value& b, const CallNode& call);
  Value Power(const CallNode& call, const Value& base, const Indices& indices);
  Indices OperandIndices(const Expr& operand, const Indices& indices) const;

  Emitter& e_;
  std::unordered_map<const ExprNode*, Buffer> buffers_;
  std::unordered_map<const ExprNode*, Value> registers_;
};

}  // namespace collage::native
