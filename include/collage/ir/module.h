// module.h: IRModule, the unit that passes transform: global functions and type definitions.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "collage/ir/expr.h"

namespace collage {

/// The definition of an algebraic data type.
struct TypeData {
  GlobalTypeVar header;
  std::vector<TypeVar> type_vars;
  std::vector<Constructor> constructors;
};

/// Global functions by name, and types. A value: copying is cheap, functions are shared and immutable.
class IRModule {
 public:
  IRModule() = default;
  /// A module whose `@main` is `main`.
  static IRModule FromFunction(Function main);

  bool Has(std::string_view name) const { return functions_.find(name) != functions_.end(); }
  /// Throws kInput when absent.
  const Function& Lookup(std::string_view name) const;
  const Function& main() const { return Lookup("main"); }
  /// Adds or replaces.
  void Set(std::string name, Function function) { functions_[std::move(name)] = std::move(function); }
  void Remove(std::string_view name);
  const std::map<std::string, Function, std::less<>>& functions() const { return functions_; }

  const std::map<std::string, TypeData, std::less<>>& types() const { return types_; }
  void AddType(TypeData type);

  /// Module-level attributes, such as the source model's name.
  Attrs attrs;

 private:
  std::map<std::string, Function, std::less<>> functions_;
  std::map<std::string, TypeData, std::less<>> types_;
};

}  // namespace collage
