// expressions.h: the value of an expression at an index, computed in place: how element-wise, broadcasting and
// injective operators fuse into whatever loop needs their result.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <unordered_map>

#include "backends/native/compiler/emit/activation_lookup.h"
#include "backends/native/compiler/emit/emitter.h"
#include "backends/native/compiler/emit/resize_taps.h"
#include "backends/native/compiler/emit/vector_math.h"

namespace collage::native {

class Expressions;

/// Writes the value of `call` at `indices`.
using InPlaceFn = std::function<Value(Expressions& x, const CallNode& call, const Indices& indices)>;
/// Writes field `field` of the result of `call` at `indices`.
using FieldInPlaceFn = Value (*)(Expressions& x, const CallNode& call, int field, const Indices& indices);

/// Returns the function that computes operator `name` in place (operator_rows.inc); null if there is none.
const InPlaceFn* FindInPlace(std::string_view name);
FieldInPlaceFn FindFieldInPlace(std::string_view name);

class Expressions {
 public:
  explicit Expressions(Emitter& emitter) : e_(emitter), math_(emitter) {}

  /// Sets the place of the value of `expr` in memory.
  void SetBuffer(const Expr& expr, Buffer buffer) { buffers_[{expr.get(), 0}] = std::move(buffer); }
  /// Sets the place of field `index` of the tuple `expr` in memory.
  void SetFieldBuffer(const Expr& expr, int index, Buffer buffer) {
    buffers_[{expr.get(), index + 1}] = std::move(buffer);
  }
  const Buffer* FindBuffer(const Expr& expr) const;
  /// Adds a constant to the partition when one is read; set once.
  void SetConstantPlacer(std::function<Buffer(const Tensor&)> place) { place_constant_ = std::move(place); }
  /// While set, `expr` is a vector in a register, at whatever index it is asked for (epilogues).
  void SetRegister(const Expr& expr, Value value) { registers_[expr.get()] = std::move(value); }
  void ClearRegisters() { registers_.clear(); }

  /// Writes the value at `indices`, one per logical dimension. Throws kUnsupported if it cannot be computed in place.
  Value At(const Expr& expr, const Indices& indices);
  /// The value of argument `i` of a broadcasting operator at the result's `indices`.
  Value Operand(const CallNode& call, size_t i, const Indices& indices);
  /// Numbers that `call` looks up, as a constant: table `slot` of it, made by `make` the first time.
  const Buffer& Table(const CallNode& call, int slot, const std::function<Tensor()>& make);
  const std::vector<ResizeTaps>& TapsOf(const CallNode& resize);

  /// Runs `body`, which writes the inside of a loop: values that are computed there are not known behind it.
  void Inside(const std::function<void()>& body);

  Emitter& emitter() { return e_; }
  VectorMath& math() { return math_; }

 private:
  Value Compute(const Expr& expr, const Indices& indices);
  /// Returns the value by lookup, if `expr` is such an activation (activation_lookup.h) and vectors can look up tables.
  std::optional<Value> LookedUp(const Expr& expr, const Indices& indices);
  Value Field(const TupleGetItemNode& item, const Indices& indices);
  Value Constant(const Tensor& value);

  struct Place {
    const ExprNode* expr;
    int field;
    bool operator==(const Place&) const = default;
  };
  struct PlaceHash {
    size_t operator()(const Place& place) const {
      return std::hash<const void*>()(place.expr) ^ static_cast<size_t>(place.field);
    }
  };

  Emitter& e_;
  VectorMath math_;
  std::function<Buffer(const Tensor&)> place_constant_;
  std::unordered_map<Place, Buffer, PlaceHash> buffers_;
  std::unordered_map<const ExprNode*, Value> registers_;
  std::map<std::pair<const CallNode*, int>, Buffer> tables_;
  std::map<const CallNode*, std::vector<ResizeTaps>> resize_taps_;
  ActivationLookups gates_;
  /// Values within one outermost At, by expression and indices, so that a value that is used twice is computed once.
  std::map<std::pair<const ExprNode*, std::string>, Value> known_;
  int depth_ = 0;
};

inline const TensorTypeNode& TensorTypeOf(const Expr& expr) { return *AsTensorType(expr->checked_type()); }
inline Shape ShapeOf(const Expr& expr) { return TensorTypeOf(expr).static_shape(); }

/// Attribute `name` as an axis of a tensor of `rank` dimensions, counted from the front.
size_t AxisAttr(const CallNode& call, const char* name, size_t rank);

/// The indices, in a tensor of shape `from`, of the element at `indices` of its reshape to `to`.
Indices ReshapedIndices(Emitter& e, const Shape& from, const Shape& to, const Indices& indices);

}  // namespace collage::native
