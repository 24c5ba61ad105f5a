// type_vars.h: other names for the type variables of a type.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "collage/ir/type.h"

namespace collage {

/// Type variables and what stands for them; the innermost last.
using TypeVarScope = std::vector<std::pair<TypeVar, TypeVar>>;

struct TypeVarNaming {
  /// Replacement of a variable that the type does not bind itself.
  std::function<TypeVar(const TypeVar&)> free;
  /// The name for a variable that a function type inside the type binds, given those bound around it.
  std::function<std::string(const TypeVar&, const TypeVarScope& around)> bound;
};

/// `type` with other type variables; the same node where there are none.
Type RenameTypeVars(const Type& type, const TypeVarNaming& naming);

}  // namespace collage
