// attrs.h: attributes of calls and functions: named values, checked against the operator's schema (op.h).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "collage/runtime/data_type.h"

namespace collage {

/// One attribute value: none, bool, integer, float, string (dtypes are strings, as in the text format) or a list.
class AttrValue {
 public:
  using List = std::vector<AttrValue>;

  AttrValue() = default;                                         // None
  AttrValue(bool value) : value_(value) {}                       // NOLINT: implicit on purpose, as all below
  AttrValue(int value) : value_(static_cast<int64_t>(value)) {}  // NOLINT
  AttrValue(int64_t value) : value_(value) {}                    // NOLINT
  AttrValue(double value) : value_(value) {}                     // NOLINT
  AttrValue(const char* value) : value_(std::string(value)) {}   // NOLINT
  AttrValue(std::string value) : value_(std::move(value)) {}     // NOLINT
  AttrValue(DataType value) : value_(value.ToString()) {}        // NOLINT
  AttrValue(List value) : value_(std::move(value)) {}            // NOLINT
  AttrValue(const std::vector<int64_t>& values) : value_(List(values.begin(), values.end())) {}  // NOLINT

  bool is_none() const { return std::holds_alternative<std::monostate>(value_); }
  const bool* as_bool() const { return std::get_if<bool>(&value_); }
  const int64_t* as_int() const { return std::get_if<int64_t>(&value_); }
  const double* as_double() const { return std::get_if<double>(&value_); }
  const std::string* as_string() const { return std::get_if<std::string>(&value_); }
  const List* as_list() const { return std::get_if<List>(&value_); }

  bool operator==(const AttrValue&) const = default;
  /// A total order over values of all kinds, for keys.
  std::weak_ordering operator<=>(const AttrValue& other) const;

 private:
  std::variant<std::monostate, bool, int64_t, double, std::string, List> value_;
};

/// Attributes by name, in alphabetical order. Getters throw kInternal when the name is absent or of another kind:
/// attributes of operator calls are complete, since `MakeCall` fills in the schema's defaults.
class Attrs {
 public:
  Attrs() = default;
  Attrs(std::initializer_list<std::pair<const std::string, AttrValue>> values) : values_(values) {}

  bool Has(std::string_view name) const { return values_.find(name) != values_.end(); }
  /// Null when absent.
  const AttrValue* Find(std::string_view name) const;
  void Set(std::string name, AttrValue value) { values_[std::move(name)] = std::move(value); }
  void Erase(std::string_view name);

  const AttrValue& Get(std::string_view name) const;
  bool IsNone(std::string_view name) const { return Get(name).is_none(); }
  bool Bool(std::string_view name) const;  ///< also an integer 0 or 1
  int64_t Int(std::string_view name) const;
  double Double(std::string_view name) const;  ///< also an integer
  const std::string& String(std::string_view name) const;
  std::vector<int64_t> Ints(std::string_view name) const;  ///< a list of integers, or one integer as a list of one
  DataType Type(std::string_view name) const;              ///< a string that names a dtype
  /// The value if present and of that kind, else `fallback`.
  int64_t IntOr(std::string_view name, int64_t fallback) const;
  std::string StringOr(std::string_view name, std::string fallback) const;

  bool empty() const { return values_.empty(); }
  size_t size() const { return values_.size(); }
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }

  bool operator==(const Attrs&) const = default;

 private:
  std::map<std::string, AttrValue, std::less<>> values_;
};

}  // namespace collage
