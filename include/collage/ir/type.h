// type.h: Relay's types (RFC 0.81 builds on the whole language): tensors with `Any` dimensions, tuples, functions,
// references, algebraic data types, type variables.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collage/ir/symbolic_size.h"
#include "collage/runtime/data_type.h"
#include "collage/runtime/tensor.h"

namespace collage {

/// A dimension of a tensor type: a known size, or `Any` (`?`), known at run time only.
///
/// `Any` may carry a symbolic size: its value in terms of others within one call of the function whose types name it.
/// Symbols are no part of the type: dimensions that differ in them only are equal, and text does not show them. Type
/// relations hand them on, so that a front end knows which sizes are the same; code that copies a dimension into
/// another type promises that both sizes are the same.
class Dim {
 public:
  Dim(int64_t size) : size_(size) {}  // NOLINT: implicit, so that shapes read as lists of numbers
  static Dim Any() { return Dim(kAnySize); }
  /// The number, or an `Any` that is `size`; plain `Any` where `size` is negative or has grown out of hand.
  static Dim Of(const SymbolicSize& size);

  bool is_any() const { return size_ == kAnySize; }
  /// The size; must not be asked of `Any`.
  int64_t size() const;
  /// The number or symbolic size; nothing for plain `Any`.
  std::optional<SymbolicSize> symbolic() const;
  std::string ToString() const;

  bool operator==(const Dim& other) const { return size_ == other.size_; }
  /// Whether both are the same size in every run, as far as is known.
  bool IsSame(const Dim& other) const;

  // Plain `Any` where an operand is.
  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);

 private:
  static constexpr int64_t kAnySize = -1;
  int64_t size_;
  std::shared_ptr<const SymbolicSize> symbolic_;  ///< null for numbers and plain `Any`
};

enum class TypeKind : uint8_t {
  kTensor,
  kTuple,
  kFunc,
  kRef,
  kTypeVar,
  kGlobalTypeVar,
  kTypeCall,
  kIncomplete,
};

class TypeNode;
/// Types are immutable and shared. A null `Type` means "not known yet".
using Type = std::shared_ptr<const TypeNode>;

class TypeNode {
 public:
  virtual ~TypeNode() = default;
  TypeKind kind() const { return kind_; }
  /// Whether there is an IncompleteTypeNode in it.
  bool has_holes() const { return has_holes_; }
  /// Whether it nests so deep, or spells out so long, that inference refuses it: types are walked by recursion.
  bool is_oversized() const { return depth_ > kDeepest || size_ > kLargest; }

 protected:
  explicit TypeNode(TypeKind kind, bool is_hole = false) : kind_(kind), has_holes_(is_hole) {}
  /// Every constructor tells what the type is made of.
  void Holds(const Type& part) {
    if (!part) return;
    has_holes_ = has_holes_ || part->has_holes_;
    depth_ = std::max(depth_, part->depth_ + 1);
    size_ = std::min(size_ + part->size_, kLargest + 1);
  }
  void Hold(const std::vector<Type>& parts) {
    for (const Type& part : parts) Holds(part);
  }

 private:
  static constexpr int kDeepest = 500;
  static constexpr int kLargest = 100000;

  TypeKind kind_;
  bool has_holes_;
  int depth_ = 1;
  int size_ = 1;
};

/// `Tensor[(1, ?, 28), float32]`; a rank-0 tensor prints as its dtype alone.
class TensorTypeNode : public TypeNode {
 public:
  TensorTypeNode(std::vector<Dim> shape, DataType dtype)
      : TypeNode(TypeKind::kTensor), shape_(std::move(shape)), dtype_(dtype) {}
  const std::vector<Dim>& shape() const { return shape_; }
  int rank() const { return static_cast<int>(shape_.size()); }
  DataType dtype() const { return dtype_; }
  bool is_static() const;
  /// The dimensions as numbers; all must be known.
  Shape static_shape() const;

 private:
  std::vector<Dim> shape_;
  DataType dtype_;
};

/// `(A, B)`; `()` is the empty tuple.
class TupleTypeNode : public TypeNode {
 public:
  explicit TupleTypeNode(std::vector<Type> fields) : TypeNode(TypeKind::kTuple), fields_(std::move(fields)) {
    Hold(fields_);
  }
  const std::vector<Type>& fields() const { return fields_; }

 private:
  std::vector<Type> fields_;
};

/// A type variable bound by a function or a type definition; identity is the node.
class TypeVarNode : public TypeNode {
 public:
  explicit TypeVarNode(std::string name) : TypeNode(TypeKind::kTypeVar), name_(std::move(name)) {}
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};
using TypeVar = std::shared_ptr<const TypeVarNode>;

/// `fn [A] (A, B) -> C`.
class FuncTypeNode : public TypeNode {
 public:
  FuncTypeNode(std::vector<Type> args, Type result, std::vector<TypeVar> type_params)
      : TypeNode(TypeKind::kFunc),
        args_(std::move(args)),
        result_(std::move(result)),
        type_params_(std::move(type_params)) {
    Hold(args_);
    Holds(result_);
  }
  const std::vector<Type>& args() const { return args_; }
  const Type& result() const { return result_; }
  const std::vector<TypeVar>& type_params() const { return type_params_; }

 private:
  std::vector<Type> args_;
  Type result_;
  std::vector<TypeVar> type_params_;
};

/// `ref(T)`, a mutable cell.
class RefTypeNode : public TypeNode {
 public:
  explicit RefTypeNode(Type value) : TypeNode(TypeKind::kRef), value_(std::move(value)) { Holds(value_); }
  const Type& value() const { return value_; }

 private:
  Type value_;
};

/// The name of an algebraic data type; its definition is in the `IRModule`.
class GlobalTypeVarNode : public TypeNode {
 public:
  explicit GlobalTypeVarNode(std::string name) : TypeNode(TypeKind::kGlobalTypeVar), name_(std::move(name)) {}
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};
using GlobalTypeVar = std::shared_ptr<const GlobalTypeVarNode>;

/// `List[Tensor[(2), float32]]`: an algebraic data type applied to its arguments.
class TypeCallNode : public TypeNode {
 public:
  TypeCallNode(GlobalTypeVar callee, std::vector<Type> args)
      : TypeNode(TypeKind::kTypeCall), callee_(std::move(callee)), args_(std::move(args)) {
    Hold(args_);
  }
  const GlobalTypeVar& callee() const { return callee_; }
  const std::vector<Type>& args() const { return args_; }

 private:
  GlobalTypeVar callee_;
  std::vector<Type> args_;
};

/// A hole that type inference fills, `_` in text; identity is the node. Never in the type of a typed expression, but in
/// annotations it may stay.
class IncompleteTypeNode : public TypeNode {
 public:
  IncompleteTypeNode() : TypeNode(TypeKind::kIncomplete, /*is_hole=*/true) {}
};

Type TensorType(std::vector<Dim> shape, DataType dtype);
/// From numbers; -1 is not `Any` here, all sizes must be >= 0.
Type TensorType(const Shape& shape, DataType dtype);
Type TupleType(std::vector<Type> fields);
Type FuncType(std::vector<Type> args, Type result, std::vector<TypeVar> type_params = {});

/// Downcasts by kind; null when `type` is null or of another kind.
const TensorTypeNode* AsTensorType(const Type& type);
const TupleTypeNode* AsTupleType(const Type& type);
const FuncTypeNode* AsFuncType(const Type& type);

/// Structural equality; bound type variables compare up to renaming, free ones by identity.
bool TypeEqual(const Type& a, const Type& b);

/// Relay text of a type; "?" for a null one.
std::string ToString(const Type& type);

/// The tensor types inside `type`, tuples flattened in order; throws kUnsupported for functions, references and ADTs.
std::vector<Type> FlattenTensorTypes(const Type& type);

}  // namespace collage
