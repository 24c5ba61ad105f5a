// type_solver.cc: unification. Types are shallow (see TypeNode::is_oversized), so recursion over them is safe.
#include "ir/types/type_solver.h"

#include <unordered_set>

namespace collage {
namespace {

constexpr int kDeepest = 600;
constexpr int kMostSteps = 1000000;

template <typename Change>
std::vector<Type> ChangeAll(const std::vector<Type>& types, const Change& change) {
  std::vector<Type> result;
  result.reserve(types.size());
  for (const Type& type : types) result.push_back(change(type));
  return result;
}

/// `type` with its direct parts changed; the same node when none is.
template <typename Change>
Type ChangeParts(const Type& type, const Change& change) {
  switch (type->kind()) {
    case TypeKind::kTuple: {
      const auto& fields = static_cast<const TupleTypeNode&>(*type).fields();
      std::vector<Type> changed = ChangeAll(fields, change);
      return changed == fields ? type : TupleType(std::move(changed));
    }
    case TypeKind::kRef: {
      const Type& value = static_cast<const RefTypeNode&>(*type).value();
      Type changed = change(value);
      return changed == value ? type : std::make_shared<RefTypeNode>(std::move(changed));
    }
    case TypeKind::kFunc: {
      const auto& function = static_cast<const FuncTypeNode&>(*type);
      std::vector<Type> args = ChangeAll(function.args(), change);
      Type result = change(function.result());
      if (args == function.args() && result == function.result()) return type;
      return FuncType(std::move(args), std::move(result), function.type_params());
    }
    case TypeKind::kTypeCall: {
      const auto& call = static_cast<const TypeCallNode&>(*type);
      std::vector<Type> args = ChangeAll(call.args(), change);
      return args == call.args() ? type : std::make_shared<TypeCallNode>(call.callee(), std::move(args));
    }
    default: return type;
  }
}

}  // namespace

Type ReplaceTypes(const Type& type, const TypeBindings& bindings) {
  if (!type || bindings.empty()) return type;
  auto it = bindings.find(type.get());
  if (it != bindings.end() && it->second) return it->second;
  return ChangeParts(type, [&](const Type& part) { return ReplaceTypes(part, bindings); });
}

Type TypeSolver::Find(Type type) const {
  while (type && type->kind() == TypeKind::kIncomplete) {
    auto it = bound_.find(type.get());
    if (it == bound_.end()) break;
    type = it->second;
  }
  return type;
}

Type TypeSolver::Resolve(const Type& type) const {
  if (!type || !type->has_holes()) return type;
  TypeBindings done;
  return ResolveShared(type, &done, 0);
}

Type TypeSolver::ResolveShared(const Type& type, TypeBindings* done, int depth) const {
  const Type known = Find(type);
  if (!known || !known->has_holes() || depth > kDeepest) return known;
  auto it = done->find(known.get());
  if (it != done->end()) return it->second;
  Type resolved = ChangeParts(known, [&](const Type& part) { return ResolveShared(part, done, depth + 1); });
  done->emplace(known.get(), resolved);
  return resolved;
}

template <typename Stop>
bool TypeSolver::AnyHole(const Type& type, const Stop& stop) const {
  std::unordered_set<const TypeNode*> seen;
  std::vector<Type> stack{type};
  while (!stack.empty()) {
    const Type known = Find(std::move(stack.back()));
    stack.pop_back();
    if (!known || !known->has_holes() || !seen.insert(known.get()).second) continue;
    if (known->kind() == TypeKind::kIncomplete && stop(known.get())) return true;
    ChangeParts(known, [&](const Type& part) {
      stack.push_back(part);
      return part;
    });
  }
  return false;
}

const TypeNode* TypeSolver::FirstHole(const Type& type) const {
  const TypeNode* found = nullptr;
  AnyHole(type, [&](const TypeNode* hole) {
    found = hole;
    return true;
  });
  return found;
}

bool TypeSolver::Fit(const Type& to, const Type& from) { return Unify(to, from, Mode::kFit) != nullptr; }

Type TypeSolver::Join(const Type& a, const Type& b) { return Unify(a, b, Mode::kJoin); }

Type TypeSolver::Instantiate(const FuncTypeNode& type, const std::vector<Type>& args, std::vector<Type>* chosen) {
  TypeBindings bindings;
  for (size_t i = 0; i < type.type_params().size(); ++i) {
    const Type arg = i < args.size() ? args[i] : Fresh();
    bindings[type.type_params()[i].get()] = arg;
    if (chosen != nullptr) chosen->push_back(arg);
  }
  return FuncType(ChangeAll(type.args(), [&](const Type& arg) { return ReplaceTypes(arg, bindings); }),
                  ReplaceTypes(type.result(), bindings));
}

/// Returns the unified type; null if they contradict each other.
Type TypeSolver::Unify(const Type& to, const Type& from, Mode mode) {
  if (depth_ == 0) steps_ = 0;
  if (depth_ > kDeepest || ++steps_ > kMostSteps) return nullptr;
  ++depth_;
  Type united = UnifyKinds(to, from, mode);
  --depth_;
  return united;
}

Type TypeSolver::UnifyKinds(const Type& to_type, const Type& from_type, Mode mode) {
  const Type to = Find(to_type);
  const Type from = Find(from_type);
  if (!to || !from) return nullptr;
  if (to == from) return to;
  if (to->kind() == TypeKind::kIncomplete) return Solve(to, from);
  if (from->kind() == TypeKind::kIncomplete) return Solve(from, to);
  if (to->kind() != from->kind()) return nullptr;
  switch (to->kind()) {
    case TypeKind::kTensor: return UnifyTensors(to, from, mode);
    case TypeKind::kTuple: {
      std::vector<Type> fields;
      const bool agree = UnifyAll(static_cast<const TupleTypeNode&>(*to).fields(),
                                  static_cast<const TupleTypeNode&>(*from).fields(), mode, &fields);
      return agree ? TupleType(std::move(fields)) : nullptr;
    }
    case TypeKind::kRef: {
      // A value that is written through one may be read through the other.
      Type value = Unify(static_cast<const RefTypeNode&>(*to).value(), static_cast<const RefTypeNode&>(*from).value(),
                         Mode::kExact);
      return value ? std::make_shared<RefTypeNode>(std::move(value)) : nullptr;
    }
    case TypeKind::kTypeCall: {
      const auto& a = static_cast<const TypeCallNode&>(*to);
      const auto& b = static_cast<const TypeCallNode&>(*from);
      std::vector<Type> args;
      const bool agree = a.callee()->name() == b.callee()->name() && UnifyAll(a.args(), b.args(), Mode::kExact, &args);
      return agree ? std::make_shared<TypeCallNode>(a.callee(), std::move(args)) : nullptr;
    }
    case TypeKind::kFunc: return UnifyFunctions(to, from, mode);
    default: return TypeEqual(to, from) ? to : nullptr;
  }
}

bool TypeSolver::UnifyAll(const std::vector<Type>& to, const std::vector<Type>& from, Mode mode,
                          std::vector<Type>* united) {
  if (to.size() != from.size()) return false;
  for (size_t i = 0; i < to.size(); ++i) {
    united->push_back(Unify(to[i], from[i], mode));
    if (!united->back()) return false;
  }
  return true;
}

Type TypeSolver::UnifyTensors(const Type& to, const Type& from, Mode mode) {
  const auto& a = static_cast<const TensorTypeNode&>(*to);
  const auto& b = static_cast<const TensorTypeNode&>(*from);
  if (a.dtype() != b.dtype() || a.rank() != b.rank()) return nullptr;
  std::vector<Dim> shape = a.shape();
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i].IsSame(b.shape()[i])) continue;
    if (shape[i] == b.shape()[i]) {
      shape[i] = Dim::Any();
      continue;
    }
    if (mode == Mode::kExact || (mode == Mode::kFit && !shape[i].is_any())) return nullptr;
    shape[i] = Dim::Any();
  }
  return TensorType(std::move(shape), a.dtype());
}

Type TypeSolver::UnifyFunctions(const Type& to, const Type& from, Mode mode) {
  const auto* a = static_cast<const FuncTypeNode*>(to.get());
  const auto* b = static_cast<const FuncTypeNode*>(from.get());
  Type instance;
  if (a->type_params().empty() && !b->type_params().empty() && mode == Mode::kFit) {
    instance = Instantiate(*b, {});
    b = AsFuncType(instance);
  } else if (!a->type_params().empty() || !b->type_params().empty()) {
    return TypeEqual(Resolve(to), Resolve(from)) ? to : nullptr;
  }
  std::vector<Type> args;
  if (!UnifyAll(a->args(), b->args(), Mode::kExact, &args)) return nullptr;
  Type result = Unify(a->result(), b->result(), mode);
  return result ? FuncType(std::move(args), std::move(result)) : nullptr;
}

Type TypeSolver::Solve(const Type& hole, const Type& type) {
  // A type cannot be a part of itself.
  if (AnyHole(type, [&](const TypeNode* other) { return other == hole.get(); })) return nullptr;
  bound_[hole.get()] = type;
  kept_.push_back(hole);
  solved_.push_back(hole.get());
  return type;
}

}  // namespace collage
