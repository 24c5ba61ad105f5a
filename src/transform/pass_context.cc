// pass_context.cc: options are checked when they are set, so that passes can rely on them.
#include "collage/transform/pass_context.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "collage/support/error.h"
#include "collage/transform/pass.h"
#include "support/edit_distance.h"

namespace collage {
namespace {

const ConfigKey* FindKey(std::string_view name) {
  for (const ConfigKey& key : AllConfigKeys()) {
    if (key.name == name) return &key;
  }
  return nullptr;
}

const ConfigKey& GetKey(std::string_view name) {
  if (const ConfigKey* key = FindKey(name)) return *key;
  std::vector<std::string> names;
  for (const ConfigKey& key : AllConfigKeys()) names.push_back(key.name);
  throw Error(ErrorCategory::kInput, fmt::format("unknown pass option '{}'", name), "", DidYouMean(name, names));
}

[[noreturn]] void RefuseValue(const ConfigKey& key) {
  const char* wanted = key.kind == AttrKind::kBool  ? "true or false"
                       : key.kind == AttrKind::kInt ? "an integer"
                                                    : "a string";
  throw Error(ErrorCategory::kInput, fmt::format("pass option '{}' must be {}", key.name, wanted), "", key.doc);
}

}  // namespace

void PassContext::SetConfig(std::string_view name, AttrValue value) {
  const ConfigKey& key = GetKey(name);
  const bool fits = key.kind == AttrKind::kBool  ? value.as_bool() != nullptr
                    : key.kind == AttrKind::kInt ? value.as_int() != nullptr
                                                 : value.as_string() != nullptr;
  if (!fits) RefuseValue(key);
  config_[std::string(name)] = std::move(value);
}

void PassContext::SetConfigText(std::string_view name, std::string_view value) {
  const ConfigKey& key = GetKey(name);
  if (key.kind == AttrKind::kBool) {
    const bool yes = value == "true" || value == "True" || value == "1";
    if (!yes && value != "false" && value != "False" && value != "0") RefuseValue(key);
    return SetConfig(name, yes);
  }
  if (key.kind == AttrKind::kInt) {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size()) RefuseValue(key);
    return SetConfig(name, number);
  }
  SetConfig(name, std::string(value));
}

const AttrValue& PassContext::Config(std::string_view name) const {
  auto it = config_.find(name);
  if (it != config_.end()) return it->second;
  const ConfigKey* key = FindKey(name);
  COLLAGE_CHECK(key != nullptr) << "pass option '" << name << "' is not in the list";
  return key->default_value;
}

bool PassContext::IsEnabled(const Pass& pass) const {
  const auto names = [&](const std::vector<std::string>& list) {
    return std::find(list.begin(), list.end(), pass.name) != list.end();
  };
  if (names(disabled_pass)) return false;
  return opt_level >= pass.opt_level || names(required_pass);
}

}  // namespace collage
