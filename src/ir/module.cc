// module.cc: lookup and construction of modules.
#include "collage/ir/module.h"

#include "collage/support/error.h"

namespace collage {

IRModule IRModule::FromFunction(Function main) {
  IRModule module;
  module.Set("main", std::move(main));
  return module;
}

const Function& IRModule::Lookup(std::string_view name) const {
  auto it = functions_.find(name);
  if (it == functions_.end()) {
    throw Error(ErrorCategory::kInput, "the module has no function '@" + std::string(name) + "'");
  }
  return it->second;
}

void IRModule::Remove(std::string_view name) {
  auto it = functions_.find(name);
  if (it != functions_.end()) functions_.erase(it);
}

void IRModule::AddType(TypeData type) {
  const std::string& name = type.header->name();
  if (!types_.emplace(name, std::move(type)).second) {
    throw Error(ErrorCategory::kInput, "type '" + name + "' is defined twice");
  }
}

}  // namespace collage
