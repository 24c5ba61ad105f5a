// compile_settings.cc: values of Python as values of settings; their rows say which are allowed.
#include "compile_settings.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "bindings.h"
#include "casters.h"
#include "collage/settings.h"
#include "collage/support/error.h"
#include "support/argument_text.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace collage::python {
namespace {

[[noreturn]] void FailKind(nb::handle value, const Setting& setting) {
  throw Error(ErrorCategory::kInput, fmt::format("expected {}, got {}", setting.type.values, nb::repr(value).c_str()),
              setting.name);
}

/// An integer of Python or of anything that can be an index, such as those of NumPy.
int64_t IntegerFrom(nb::handle value, const Setting& setting) {
  const nb::object index = nb::steal(PyNumber_Index(value.ptr()));
  if (!index.is_valid()) nb::raise_python_error();
  int64_t number = 0;
  if (!nb::try_cast(index, number)) FailKind(value, setting);
  return number;
}

/// Texts, or dictionaries of arrays.
SettingValue ListFrom(nb::handle list, const Setting& setting) {
  std::vector<std::string> texts;
  std::vector<std::map<std::string, Tensor>> inputs;
  for (const nb::handle item : list) {
    if (nb::isinstance<nb::str>(item) && inputs.empty()) {
      texts.push_back(nb::cast<std::string>(item));
    } else if (nb::isinstance<nb::dict>(item) && texts.empty()) {
      auto& one = inputs.emplace_back();
      for (const auto& [name, array] : nb::borrow<nb::dict>(item)) {
        one[nb::cast<std::string>(name)] = TensorFrom(array).Clone();
      }
    } else {
      FailKind(list, setting);
    }
  }
  if (!texts.empty()) return texts;
  return inputs.empty() ? SettingValue() : inputs;
}

/// Texts or shapes by name.
SettingValue MapFrom(const nb::dict& given, const Setting& setting) {
  std::map<std::string, std::string> texts;
  std::map<std::string, Shape> shapes;
  for (const auto& [name, value] : given) {
    if (!nb::isinstance<nb::str>(name)) FailKind(given, setting);
    if (nb::isinstance<nb::str>(value)) {
      texts[nb::cast<std::string>(name)] = nb::cast<std::string>(value);
      continue;
    }
    Shape& shape = shapes[nb::cast<std::string>(name)];
    const bool takes_numbers = setting.type.python.starts_with("Mapping[str, int");
    if (takes_numbers && PyIndex_Check(value.ptr()) != 0) {
      shape.push_back(IntegerFrom(value, setting));
      continue;
    }
    if (PySequence_Check(value.ptr()) == 0) FailKind(given, setting);
    for (const nb::handle size : value) shape.push_back(IntegerFrom(size, setting));
  }
  if (!texts.empty() && !shapes.empty()) FailKind(given, setting);
  if (!texts.empty()) return texts;
  return shapes.empty() ? SettingValue() : shapes;
}

SettingValue ValueFrom(nb::handle value, const Setting& setting) {
  if (value.is_none()) return {};
  if (nb::isinstance<nb::bool_>(value)) FailKind(value, setting);
  if (nb::isinstance<nb::str>(value)) return nb::cast<std::string>(value);
  if (nb::isinstance<nb::float_>(value)) return nb::cast<double>(value);
  if (nb::hasattr(value, "__fspath__")) return nb::cast<std::string>(value.attr("__fspath__")());
  if (PyIndex_Check(value.ptr()) != 0) return IntegerFrom(value, setting);
  if (nb::isinstance<nb::dict>(value)) return MapFrom(nb::borrow<nb::dict>(value), setting);
  if (nb::isinstance<nb::list>(value) || nb::isinstance<nb::tuple>(value)) return ListFrom(value, setting);
  FailKind(value, setting);
}

}  // namespace

void SetOptions(CompileOptions& options, const nb::dict& settings) {
  for (const auto& [name, value] : settings) {
    const Setting* setting = nullptr;
    try {
      setting = &FindSetting(nb::cast<std::string>(name));
    } catch (const Error& error) {
      throw nb::type_error(fmt::format("{}; {}", error.message(), error.hint()).c_str());
    }
    SetSetting(options, *setting, ValueFrom(value, *setting), setting->name);
  }
}

void BindSettings(nb::module_& m) {
  m.def("settings_table", &SettingsTableJson, "The table of settings as JSON, as of `collage settings --json`.");
  m.def("parse_duration", &ParseDuration, "text"_a, "The seconds of \"90s\", \"10m\", \"1h\".");
}

}  // namespace collage::python
