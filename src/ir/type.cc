// type.cc: construction, comparison and text of types.
#include "collage/ir/type.h"

#include <fmt/format.h>

#include <algorithm>

#include "collage/support/error.h"
#include "ir/tensor_types.h"
#include "ir/text_names.h"

namespace collage {

int64_t Dim::size() const {
  COLLAGE_CHECK(!is_any()) << "size asked of an unknown dimension";
  return size_;
}

Dim Dim::Of(const SymbolicSize& size) {
  // Text and comparison walk sizes by recursion, and nobody is helped by one that fills pages.
  constexpr int kDeepest = 64;
  constexpr size_t kMostTerms = 64;
  if (size.is_known()) return size.known() < 0 ? Any() : Dim(size.known());
  Dim dim = Any();
  if (size.depth() <= kDeepest && size.terms().size() <= kMostTerms) {
    dim.symbolic_ = std::make_shared<const SymbolicSize>(size);
  }
  return dim;
}

std::optional<SymbolicSize> Dim::symbolic() const {
  if (!is_any()) return SymbolicSize(size_);
  return symbolic_ == nullptr ? std::nullopt : std::optional(*symbolic_);
}

bool Dim::IsSame(const Dim& other) const {
  if (!is_any() || !other.is_any()) return size_ == other.size_;
  return symbolic_ != nullptr && other.symbolic_ != nullptr && *symbolic_ == *other.symbolic_;
}

Dim operator+(const Dim& a, const Dim& b) {
  const auto x = a.symbolic(), y = b.symbolic();
  return x && y ? Dim::Of(*x + *y) : Dim::Any();
}

Dim operator*(const Dim& a, const Dim& b) {
  const auto x = a.symbolic(), y = b.symbolic();
  return x && y ? Dim::Of(*x * *y) : Dim::Any();
}

std::string Dim::ToString() const { return is_any() ? "?" : std::to_string(size_); }

bool TensorTypeNode::is_static() const {
  for (const Dim& dim : shape_) {
    if (dim.is_any()) return false;
  }
  return true;
}

Shape TensorTypeNode::static_shape() const {
  Shape result;
  for (const Dim& dim : shape_) result.push_back(dim.size());
  return result;
}

Type TensorType(std::vector<Dim> shape, DataType dtype) {
  return std::make_shared<TensorTypeNode>(std::move(shape), dtype);
}

Type TensorType(const Shape& shape, DataType dtype) {
  for (int64_t size : shape) COLLAGE_CHECK(size >= 0) << "negative dimension " << size;
  return TensorType(std::vector<Dim>(shape.begin(), shape.end()), dtype);
}

Type TupleType(std::vector<Type> fields) { return std::make_shared<TupleTypeNode>(std::move(fields)); }

Type FuncType(std::vector<Type> args, Type result, std::vector<TypeVar> type_params) {
  return std::make_shared<FuncTypeNode>(std::move(args), std::move(result), std::move(type_params));
}

const TensorTypeNode* AsTensorType(const Type& type) {
  return type && type->kind() == TypeKind::kTensor ? static_cast<const TensorTypeNode*>(type.get()) : nullptr;
}

const TupleTypeNode* AsTupleType(const Type& type) {
  return type && type->kind() == TypeKind::kTuple ? static_cast<const TupleTypeNode*>(type.get()) : nullptr;
}

const FuncTypeNode* AsFuncType(const Type& type) {
  return type && type->kind() == TypeKind::kFunc ? static_cast<const FuncTypeNode*>(type.get()) : nullptr;
}

namespace {

/// Pairs of type variables bound by the function types around the place of comparison.
using Bindings = std::vector<std::pair<const TypeNode*, const TypeNode*>>;

bool Equal(const Type& a, const Type& b, Bindings& bindings);

bool AllEqual(const std::vector<Type>& a, const std::vector<Type>& b, Bindings& bindings) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!Equal(a[i], b[i], bindings)) return false;
  }
  return true;
}

bool EqualFunctions(const FuncTypeNode& a, const FuncTypeNode& b, Bindings& bindings) {
  if (a.type_params().size() != b.type_params().size()) return false;
  const size_t depth = bindings.size();
  for (size_t i = 0; i < a.type_params().size(); ++i) {
    bindings.emplace_back(a.type_params()[i].get(), b.type_params()[i].get());
  }
  const bool equal = AllEqual(a.args(), b.args(), bindings) && Equal(a.result(), b.result(), bindings);
  bindings.resize(depth);
  return equal;
}

bool Equal(const Type& a, const Type& b, Bindings& bindings) {
  if (a == b && bindings.empty()) return true;
  if (!a || !b) return a == b;
  if (a->kind() != b->kind()) return false;
  switch (a->kind()) {
    case TypeKind::kTensor: {
      const auto& x = static_cast<const TensorTypeNode&>(*a);
      const auto& y = static_cast<const TensorTypeNode&>(*b);
      return x.dtype() == y.dtype() && x.shape() == y.shape();
    }
    case TypeKind::kTuple:
      return AllEqual(static_cast<const TupleTypeNode&>(*a).fields(), static_cast<const TupleTypeNode&>(*b).fields(),
                      bindings);
    case TypeKind::kFunc:
      return EqualFunctions(static_cast<const FuncTypeNode&>(*a), static_cast<const FuncTypeNode&>(*b), bindings);
    case TypeKind::kRef:
      return Equal(static_cast<const RefTypeNode&>(*a).value(), static_cast<const RefTypeNode&>(*b).value(), bindings);
    case TypeKind::kTypeVar: {
      for (auto it = bindings.rbegin(); it != bindings.rend(); ++it) {
        if (it->first == a.get() || it->second == b.get()) return it->first == a.get() && it->second == b.get();
      }
      return a == b;
    }
    case TypeKind::kGlobalTypeVar:
      return static_cast<const GlobalTypeVarNode&>(*a).name() == static_cast<const GlobalTypeVarNode&>(*b).name();
    case TypeKind::kTypeCall: {
      const auto& x = static_cast<const TypeCallNode&>(*a);
      const auto& y = static_cast<const TypeCallNode&>(*b);
      return x.callee()->name() == y.callee()->name() && AllEqual(x.args(), y.args(), bindings);
    }
    case TypeKind::kIncomplete: return a == b;
  }
  return false;
}

std::string Join(const std::vector<Type>& types) {
  std::string text;
  for (size_t i = 0; i < types.size(); ++i) text += (i ? ", " : "") + ToString(types[i]);
  return text;
}

std::string TensorText(const TensorTypeNode& type) {
  if (type.rank() == 0) return type.dtype().ToString();
  std::string dims;
  for (int i = 0; i < type.rank(); ++i) dims += (i ? ", " : "") + type.shape()[i].ToString();
  return fmt::format("Tensor[({}), {}]", dims, type.dtype().ToString());
}

std::string FuncText(const FuncTypeNode& type) {
  std::string params;
  for (const TypeVar& param : type.type_params()) params += (params.empty() ? "" : ", ") + NameText(param->name());
  return fmt::format("fn {}({}) -> {}", params.empty() ? "" : "[" + params + "] ", Join(type.args()),
                     ToString(type.result()));
}

}  // namespace

bool TypeEqual(const Type& a, const Type& b) {
  Bindings bindings;
  return Equal(a, b, bindings);
}

std::string ToString(const Type& type) {
  if (!type) return "?";
  switch (type->kind()) {
    case TypeKind::kTensor: return TensorText(static_cast<const TensorTypeNode&>(*type));
    case TypeKind::kTuple: {
      const auto& fields = static_cast<const TupleTypeNode&>(*type).fields();
      return "(" + Join(fields) + (fields.size() == 1 ? ",)" : ")");
    }
    case TypeKind::kFunc: return FuncText(static_cast<const FuncTypeNode&>(*type));
    case TypeKind::kRef: return "ref(" + ToString(static_cast<const RefTypeNode&>(*type).value()) + ")";
    case TypeKind::kTypeVar: return NameText(static_cast<const TypeVarNode&>(*type).name());
    case TypeKind::kGlobalTypeVar: return NameText(static_cast<const GlobalTypeVarNode&>(*type).name());
    case TypeKind::kTypeCall: {
      const auto& call = static_cast<const TypeCallNode&>(*type);
      return NameText(call.callee()->name()) + (call.args().empty() ? "" : "[" + Join(call.args()) + "]");
    }
    case TypeKind::kIncomplete: return "_";
  }
  return "?";
}

bool HasTensorsOnly(const Type& type) {
  const TupleTypeNode* tuple = AsTupleType(type);
  if (tuple == nullptr) return AsTensorType(type) != nullptr;
  return std::ranges::all_of(tuple->fields(), HasTensorsOnly);
}

bool HasStaticTensorsOnly(const Type& type) {
  return HasTensorsOnly(type) && std::ranges::all_of(FlattenTensorTypes(type),
                                                     [](const Type& leaf) { return AsTensorType(leaf)->is_static(); });
}

Type WithoutSymbols(const Type& type) {
  const TensorTypeNode* tensor = AsTensorType(type);
  if (tensor == nullptr) return type;
  std::vector<Dim> shape;
  for (const Dim& dim : tensor->shape()) shape.push_back(dim.is_any() ? Dim::Any() : dim);
  return TensorType(std::move(shape), tensor->dtype());
}

std::vector<Type> FlattenTensorTypes(const Type& type) {
  if (AsTensorType(type) != nullptr) return {type};
  const TupleTypeNode* tuple = AsTupleType(type);
  if (tuple == nullptr) {
    throw Error(ErrorCategory::kUnsupported, "expected tensors or tuples of tensors, got " + ToString(type));
  }
  std::vector<Type> result;
  for (const Type& field : tuple->fields()) {
    for (Type& leaf : FlattenTensorTypes(field)) result.push_back(std::move(leaf));
  }
  return result;
}

}  // namespace collage
