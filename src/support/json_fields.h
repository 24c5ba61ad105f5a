// json_fields.h: structs as JSON objects, for messages between processes. Each field is stated once.
//
//     struct Step { int index = 0; std::string note; };
//
//     template <typename Self, typename Visitor>
//       requires IsMessage<Self, Step>
//     void VisitFields(Self& step, Visitor& visit) {
//       visit.Field("index", step.index);
//       visit.OptionalField("note", step.note);
//     }
//
// With that, ToJson(step) is {"index":3}, and FromJson<Step> reads it back.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "collage/support/error.h"

namespace collage {

/// Whether `Self` is `Message`, const or not.
template <typename Self, typename Message>
concept IsMessage = std::same_as<std::remove_const_t<Self>, Message>;

class JsonFieldWriter;
class JsonFieldReader;

/// A struct with VisitFields.
template <typename T>
concept HasFields = requires(const T& value, JsonFieldWriter& writer) {
  VisitFields(value, writer);
};

/// An enumeration with names: `constexpr std::array<const char*, N> NamesOf(T)`, in the order of its values from 0.
template <typename T>
concept HasNames = std::is_enum_v<T> && requires(T value) {
  NamesOf(value);
};

template <typename T>
nlohmann::json ToJson(const T& value);
template <typename T>
nlohmann::json ToJson(const std::vector<T>& values);
template <typename T>
void FromJson(const nlohmann::json& json, T& value);
template <typename T>
void FromJson(const nlohmann::json& json, std::vector<T>& values);

/// Adds the fields that VisitFields names to a JSON object.
class JsonFieldWriter {
 public:
  template <typename T>
  void Field(const char* name, const T& value) {
    json_[name] = ToJson(value);
  }
  /// Leaves out what has the value that its type begins with.
  template <typename T>
  void OptionalField(const char* name, const T& value) {
    if (!(value == T())) Field(name, value);
  }
  template <typename T>
  void OptionalField(const char* name, const std::optional<T>& value) {
    if (value) Field(name, *value);
  }
  nlohmann::json Take() { return std::move(json_); }

 private:
  nlohmann::json json_ = nlohmann::json::object();
};

/// Sets the fields that VisitFields names from a JSON object. Throws nlohmann::json::exception for what is missing or
/// of another type.
class JsonFieldReader {
 public:
  explicit JsonFieldReader(const nlohmann::json& json) : json_(json) {}
  template <typename T>
  void Field(const char* name, T& value) {
    FromJson(json_.at(name), value);
  }
  /// A field that is absent keeps its value.
  template <typename T>
  void OptionalField(const char* name, T& value) {
    if (json_.contains(name)) FromJson(json_.at(name), value);
  }
  template <typename T>
  void OptionalField(const char* name, std::optional<T>& value) {
    if (json_.contains(name)) FromJson(json_.at(name), value.emplace());
  }

 private:
  const nlohmann::json& json_;
};

/// Structs become objects, named enumerators texts, infinity the largest number, since JSON has none.
template <typename T>
nlohmann::json ToJson(const T& value) {
  if constexpr (HasFields<T>) {
    JsonFieldWriter writer;
    VisitFields(value, writer);
    return writer.Take();
  } else if constexpr (HasNames<T>) {
    return std::string(NamesOf(value)[static_cast<size_t>(value)]);
  } else if constexpr (std::is_floating_point_v<T>) {
    constexpr T kMost = std::numeric_limits<T>::max();
    return std::isinf(value) ? std::copysign(kMost, value) : value;
  } else {
    return value;
  }
}

template <typename T>
nlohmann::json ToJson(const std::vector<T>& values) {
  nlohmann::json json = nlohmann::json::array();
  for (const T& value : values) json.push_back(ToJson(value));
  return json;
}

/// Reads what ToJson wrote. Throws nlohmann::json::exception where a field is missing or of another type, kInput for a
/// name that no enumerator has.
template <typename T>
void FromJson(const nlohmann::json& json, T& value) {
  if constexpr (HasFields<T>) {
    JsonFieldReader reader(json);
    VisitFields(value, reader);
  } else if constexpr (HasNames<T>) {
    const auto names = NamesOf(value);
    const auto name = json.get<std::string>();
    const auto it = std::find(names.begin(), names.end(), std::string_view(name));
    if (it == names.end()) throw Error(ErrorCategory::kInput, "'" + name + "' is not known");
    value = static_cast<T>(it - names.begin());
  } else {
    json.get_to(value);
  }
}

template <typename T>
void FromJson(const nlohmann::json& json, std::vector<T>& values) {
  values.clear();
  for (const nlohmann::json& one : json) FromJson(one, values.emplace_back());
}

/// The struct that a variant holds, with its `kKind` as the field "kind".
template <typename... Ts>
nlohmann::json ToJsonWithKind(const std::variant<Ts...>& value) {
  return std::visit(
      [](const auto& alternative) {
        nlohmann::json json = ToJson(alternative);
        json["kind"] = alternative.kKind;
        return json;
      },
      value);
}

/// Sets `value` to the alternative that `kind` names, read from `json`. False, with nothing read, if there is none.
template <size_t kIndex = 0, typename... Ts>
bool FromJsonOfKind(std::string_view kind, const nlohmann::json& json, std::variant<Ts...>& value) {
  if constexpr (kIndex == sizeof...(Ts)) {
    return false;
  } else {
    if (kind != std::variant_alternative_t<kIndex, std::variant<Ts...>>::kKind) {
      return FromJsonOfKind<kIndex + 1>(kind, json, value);
    }
    FromJson(json, value.template emplace<kIndex>());
    return true;
  }
}

/// One line of text. Bytes that are not UTF-8 are replaced.
template <typename T>
std::string ToJsonText(const T& value) {
  return ToJson(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

template <typename T>
T FromJsonText(std::string_view text) {
  T value;
  FromJson(nlohmann::json::parse(text), value);
  return value;
}

}  // namespace collage
