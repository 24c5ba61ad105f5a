// print_type.h: types in Relay text, with names for type variables that mean what the nodes mean.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "ir/type_vars.h"

namespace collage {

/// Type variables are distinguished by node, in text by name: one that would hide another, or a type, gets a number.
class TypePrinter {
 public:
  /// No variable gets the name of a data type.
  void Reserve(std::string name) { reserved_.insert(std::move(name)); }

  /// `[A, B]`, or nothing for none; they are in scope until `Leave`.
  std::string Enter(const std::vector<TypeVar>& params);
  void Leave(const std::vector<TypeVar>& params) { scope_.resize(scope_.size() - params.size()); }

  std::string Text(const Type& type) const;

 private:
  TypeVar Shown(const TypeVar& var) const;
  std::string FreeName(const TypeVarNode& var, const TypeVarScope& around) const;

  TypeVarScope scope_;
  std::unordered_set<std::string> reserved_;
};

}  // namespace collage
