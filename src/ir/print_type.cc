// print_type.cc: names of type variables in Relay text.
#include "ir/print_type.h"

#include <algorithm>

#include "ir/text_names.h"

namespace collage {

std::string TypePrinter::Enter(const std::vector<TypeVar>& params) {
  std::string text;
  for (const TypeVar& param : params) {
    const std::string name = FreeName(*param, {});
    scope_.emplace_back(param, std::make_shared<TypeVarNode>(name));
    text += (text.empty() ? "" : ", ") + NameText(name);
  }
  return text.empty() ? "" : "[" + text + "]";
}

std::string TypePrinter::Text(const Type& type) const {
  if (!type || type->kind() == TypeKind::kTensor) return ToString(type);
  const auto shown = [this](const TypeVar& var) { return Shown(var); };
  const auto name = [this](const TypeVar& var, const TypeVarScope& around) { return FreeName(*var, around); };
  return ToString(RenameTypeVars(type, {shown, name}));
}

/// Returns the shown variable; the same one if nothing binds it.
TypeVar TypePrinter::Shown(const TypeVar& var) const {
  for (auto it = scope_.rbegin(); it != scope_.rend(); ++it) {
    if (it->first == var) return it->second;
  }
  return var;
}

std::string TypePrinter::FreeName(const TypeVarNode& var, const TypeVarScope& around) const {
  std::string name = var.name();
  const auto has_name = [&](const auto& pair) { return pair.second->name() == name; };
  const auto is_taken = [&] {
    return DataType::IsName(name) || reserved_.contains(name) || std::any_of(scope_.begin(), scope_.end(), has_name) ||
           std::any_of(around.begin(), around.end(), has_name);
  };
  for (int i = 1; is_taken(); ++i) name = var.name() + std::to_string(i);
  return name;
}

}  // namespace collage
