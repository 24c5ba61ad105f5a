// type_vars.cc: a walk down a type that knows which function types bind what. Types are shallow (see
// TypeNode::is_oversized), so recursion over them is safe.
#include "ir/type_vars.h"

namespace collage {
namespace {

class Renamer {
 public:
  explicit Renamer(const TypeVarNaming& naming) : naming_(naming) {}

  Type Rename(const Type& type) {
    if (!type) return type;
    switch (type->kind()) {
      case TypeKind::kTypeVar: return Find(std::static_pointer_cast<const TypeVarNode>(type));
      case TypeKind::kTuple: {
        const auto& fields = static_cast<const TupleTypeNode&>(*type).fields();
        std::vector<Type> renamed = RenameAll(fields);
        return renamed == fields ? type : TupleType(std::move(renamed));
      }
      case TypeKind::kRef: {
        const Type& value = static_cast<const RefTypeNode&>(*type).value();
        Type renamed = Rename(value);
        return renamed == value ? type : std::make_shared<RefTypeNode>(std::move(renamed));
      }
      case TypeKind::kTypeCall: {
        const auto& call = static_cast<const TypeCallNode&>(*type);
        std::vector<Type> args = RenameAll(call.args());
        return args == call.args() ? type : std::make_shared<TypeCallNode>(call.callee(), std::move(args));
      }
      case TypeKind::kFunc: return RenameFunction(type);
      default: return type;
    }
  }

 private:
  std::vector<Type> RenameAll(const std::vector<Type>& types) {
    std::vector<Type> result;
    result.reserve(types.size());
    for (const Type& type : types) result.push_back(Rename(type));
    return result;
  }

  Type RenameFunction(const Type& type) {
    const auto& function = static_cast<const FuncTypeNode&>(*type);
    const size_t around = scope_.size();
    std::vector<TypeVar> params;
    for (const TypeVar& param : function.type_params()) {
      std::string name = naming_.bound(param, scope_);
      params.push_back(name == param->name() ? param : std::make_shared<TypeVarNode>(std::move(name)));
      scope_.emplace_back(param, params.back());
    }
    std::vector<Type> args = RenameAll(function.args());
    Type result = Rename(function.result());
    scope_.resize(around);
    if (args == function.args() && result == function.result() && params == function.type_params()) return type;
    return FuncType(std::move(args), std::move(result), std::move(params));
  }

  TypeVar Find(const TypeVar& var) const {
    for (auto it = scope_.rbegin(); it != scope_.rend(); ++it) {
      if (it->first == var) return it->second;
    }
    return naming_.free(var);
  }

  const TypeVarNaming& naming_;
  TypeVarScope scope_;
};

}  // namespace

Type RenameTypeVars(const Type& type, const TypeVarNaming& naming) { return Renamer(naming).Rename(type); }

}  // namespace collage
