// value.h: what Relay expressions evaluate to: tensors, tuples, data (constructors with fields), references, functions.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/ir/module.h"
#include "collage/ir/type.h"
#include "collage/runtime/tensor.h"
#include "collage/support/result.h"

namespace collage {

/// A run-time value. A handle: copies share; only references can change. Lists may have a million cells: nothing
/// recurses once per value, destruction included. Accessors throw kInternal when asked of another kind.
class Value {
 public:
  enum class Kind : uint8_t { kNone, kTensor, kTuple, kData, kReference, kFunction };

  Value() = default;
  Value(Tensor tensor);  // NOLINT: implicit, so that argument lists read as lists of tensors
  static Value Tuple(std::vector<Value> fields);
  /// A value of an algebraic data type.
  static Value Data(Constructor constructor, std::vector<Value> fields);
  /// A new cell, equal to no other.
  static Value Reference(Value content);
  /// A function and what it captured. The engine that made the value defines `code` (a function, a constructor, or
  /// null) and `index`, and only it can call the value.
  static Value Function(Expr code, int index, std::vector<Value> captured);

  Kind kind() const;
  bool defined() const { return node_ != nullptr; }
  const Tensor& tensor() const;
  /// The fields of a tuple or of data, what a function captured.
  const std::vector<Value>& fields() const;
  const Constructor& constructor() const;
  const Value& content() const;           ///< a reference's content
  void set_content(Value content) const;  ///< sets a reference's content
  const Expr& code() const;
  int index() const;

  /// Whether both are the same object: the meaning of equality for references.
  bool Is(const Value& other) const { return node_ == other.node_; }

  struct Node;

 private:
  friend class ReferencePool;
  explicit Value(std::shared_ptr<Node> node) : node_(std::move(node)) {}
  const Node& Get(Kind kind, const char* what) const;

  std::shared_ptr<Node> node_;
};

/// Keeps track of the references that an engine creates, since a reference may hold a function that captured it: when
/// the engine is done, cells that its results do not reach are emptied, which frees such cycles.
class ReferencePool {
 public:
  Value Create(Value content);
  void EmptyAllBut(const Value& reachable);

 private:
  std::vector<std::weak_ptr<Value::Node>> cells_;
  size_t sweep_at_ = 1024;
};

/// The tensors in `value`, tuples flattened in order. Throws kUnsupported for functions, references and data.
std::vector<Tensor> FlattenTensors(const Value& value);
/// The inverse: `next` gives the tensors in order.
Value UnflattenTensors(const Type& type, const std::function<Tensor()>& next);
/// The type of a tensor or of a tuple of such; null for other values.
Type TypeOf(const Value& value);

/// Whether `value` may be bound to a parameter of `type`; the reason says where it may not. Functions fit every
/// function type, fields of data are not looked into.
Result<void> CheckFits(const Value& value, const Type& type);

/// Whether two values are equal: tensors of equal dtype and shape whose elements differ by no more than
/// `tolerance * max(1, |element|)`; NaN equals NaN. Cells are equal if their contents are, functions always.
bool ValuesEqual(const Value& a, const Value& b, double tolerance = 0);

/// "Cons(1f, Nil)", "(True, fn)"; tensors of more than eight elements by their type. Cut off behind 400 characters.
std::string ToString(const Value& value);

}  // namespace collage
