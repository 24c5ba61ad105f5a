// setting_values.cc: what works on any row of the table of settings: values go in, defaults and JSON come out.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "collage/settings.h"
#include "collage/support/error.h"
#include "support/argument_text.h"
#include "support/edit_distance.h"

namespace collage {
namespace {

using Json = nlohmann::ordered_json;
using enum SettingCommands;

const CompileOptions& Defaults() {
  static const CompileOptions defaults;
  return defaults;
}

/// JSON of a value.
struct ToJson {
  Json operator()(std::monostate /*none*/) const { return nullptr; }
  Json operator()(double number) const {
    return std::isfinite(number) ? Json(number) : Json(fmt::format("{}", number));
  }
  Json operator()(const std::vector<std::map<std::string, Tensor>>& inputs) const {
    Json all = Json::array();
    for (const auto& one : inputs) {
      Json types = Json::object();
      for (const auto& [name, tensor] : one) {
        types[name] = {{"shape", tensor.shape()}, {"dtype", tensor.dtype().ToString()}};
      }
      all.push_back(types);
    }
    return all;
  }
  template <typename T>
  Json operator()(const T& value) const {
    return value;
  }
};

Json ValueJson(const CompileOptions& options, const Setting& setting) {
  return std::visit(ToJson(), setting.type.get(options));
}

/// A default as Python's signature shows it.
std::string PythonDefault(const Setting& setting) {
  if (!setting.unset.empty()) return "None";
  const Json value = ValueJson(Defaults(), setting);
  return value.is_string() || value.is_number_float() ? fmt::format("'{}'", DefaultText(setting)) : value.dump();
}

}  // namespace

const Setting& FindSetting(std::string_view name) {
  std::vector<std::string> names;
  for (const Setting& setting : Settings()) {
    if (setting.name == name) return setting;
    names.push_back(setting.name);
  }
  const std::vector<std::string> near = NearMisses(name, names);
  throw Error(ErrorCategory::kInput, fmt::format("there is no setting '{}'", name), "",
              near.empty() ? "docs/settings.md lists them all" : fmt::format("did you mean '{}'?", near[0]));
}

void SetSetting(CompileOptions& options, const Setting& setting, const SettingValue& value, const std::string& where) {
  try {
    if (std::holds_alternative<std::monostate>(value)) return setting.type.reset(options);
    setting.type.set(options, value);
  } catch (const Error& error) {
    throw Error(error.category(), error.message(), error.where().empty() ? where : error.where(), error.hint());
  }
}

void SetSettingFromText(CompileOptions& options, const Setting& setting, const std::vector<std::string>& texts) {
  SettingValue value;
  try {
    value = setting.type.parse(texts);
  } catch (const Error& error) {
    throw Error(error.category(), error.message(), error.where().empty() ? setting.flag : error.where(), error.hint());
  }
  SetSetting(options, setting, value, setting.flag);
}

bool IsDefault(const CompileOptions& options, const Setting& setting) {
  return ValueJson(options, setting) == ValueJson(Defaults(), setting);
}

void CheckSettings(const CompileOptions& options) {
  CompileOptions checked;
  for (const Setting& setting : Settings()) {
    if (!IsDefault(options, setting)) SetSetting(checked, setting, setting.type.get(options), setting.flag);
  }
}

std::string DefaultText(const Setting& setting) {
  if (!setting.unset.empty()) return setting.unset;
  const SettingValue value = setting.type.get(Defaults());
  if (const double* seconds = std::get_if<double>(&value)) return FormatDuration(*seconds);
  if (const std::string* text = std::get_if<std::string>(&value)) return *text;
  return ValueJson(Defaults(), setting).dump();
}

std::string SettingsJson(const CompileOptions& options) {
  Json all = Json::object();
  for (const Setting& setting : Settings()) {
    const bool is_unset = !setting.unset.empty() && IsDefault(options, setting);
    all[setting.name] = is_unset ? Json() : ValueJson(options, setting);
  }
  return all.dump(2, ' ', false, Json::error_handler_t::replace);
}

std::string SettingsTableJson() {
  Json rows = Json::array();
  for (const Setting& setting : Settings()) {
    Json commands = {"compile"};
    if (setting.commands == kCompileAndTune) commands.push_back("tune");
    rows.push_back({{"name", setting.name},
                    {"flag", setting.flag},
                    {"group", setting.group},
                    {"commands", commands},
                    {"values", setting.type.values},
                    {"placeholder", setting.type.placeholder},
                    {"repeated", setting.type.is_repeated},
                    {"default", DefaultText(setting)},
                    {"doc", setting.doc},
                    {"page", setting.page},
                    {"python",
                     {{"type", setting.python_type.empty() ? setting.type.python : setting.python_type},
                      {"default", PythonDefault(setting)},
                      {"optional", !setting.unset.empty()},
                      {"doc", setting.python_doc}}}});
  }
  return rows.dump(2);
}

}  // namespace collage
