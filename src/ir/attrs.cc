// attrs.cc: typed access to attributes.
#include "collage/ir/attrs.h"

#include "collage/support/error.h"

namespace collage {

std::weak_ordering AttrValue::operator<=>(const AttrValue& other) const {
  if (value_.index() != other.value_.index()) return value_.index() <=> other.value_.index();
  if (const double* a = as_double()) return std::weak_order(*a, *other.as_double());
  if (const bool* a = as_bool()) return *a <=> *other.as_bool();
  if (const int64_t* a = as_int()) return *a <=> *other.as_int();
  if (const std::string* a = as_string()) return *a <=> *other.as_string();
  if (const List* a = as_list()) {
    return std::lexicographical_compare_three_way(a->begin(), a->end(), other.as_list()->begin(),
                                                  other.as_list()->end());
  }
  return std::weak_ordering::equivalent;
}

const AttrValue* Attrs::Find(std::string_view name) const {
  auto it = values_.find(name);
  return it == values_.end() ? nullptr : &it->second;
}

void Attrs::Erase(std::string_view name) {
  auto it = values_.find(name);
  if (it != values_.end()) values_.erase(it);
}

const AttrValue& Attrs::Get(std::string_view name) const {
  const AttrValue* value = Find(name);
  COLLAGE_CHECK(value != nullptr) << "no attribute '" << name << "'";
  return *value;
}

bool Attrs::Bool(std::string_view name) const {
  const AttrValue& value = Get(name);
  if (const bool* b = value.as_bool()) return *b;
  const int64_t* i = value.as_int();
  COLLAGE_CHECK(i != nullptr) << "attribute '" << name << "' is not a bool";
  return *i != 0;
}

int64_t Attrs::Int(std::string_view name) const {
  const AttrValue& value = Get(name);
  if (const int64_t* i = value.as_int()) return *i;
  const bool* b = value.as_bool();
  COLLAGE_CHECK(b != nullptr) << "attribute '" << name << "' is not an integer";
  return *b ? 1 : 0;
}

double Attrs::Double(std::string_view name) const {
  const AttrValue& value = Get(name);
  if (const double* d = value.as_double()) return *d;
  return static_cast<double>(Int(name));
}

const std::string& Attrs::String(std::string_view name) const {
  const std::string* value = Get(name).as_string();
  COLLAGE_CHECK(value != nullptr) << "attribute '" << name << "' is not a string";
  return *value;
}

std::vector<int64_t> Attrs::Ints(std::string_view name) const {
  const AttrValue& value = Get(name);
  if (value.as_int() != nullptr) return {*value.as_int()};
  const AttrValue::List* list = value.as_list();
  COLLAGE_CHECK(list != nullptr) << "attribute '" << name << "' is not a list of integers";
  std::vector<int64_t> result;
  for (const AttrValue& item : *list) {
    COLLAGE_CHECK(item.as_int() != nullptr) << "attribute '" << name << "' is not a list of integers";
    result.push_back(*item.as_int());
  }
  return result;
}

DataType Attrs::Type(std::string_view name) const { return DataType::FromString(String(name)); }

int64_t Attrs::IntOr(std::string_view name, int64_t fallback) const {
  const AttrValue* value = Find(name);
  return value != nullptr && value->as_int() != nullptr ? *value->as_int() : fallback;
}

std::string Attrs::StringOr(std::string_view name, std::string fallback) const {
  const AttrValue* value = Find(name);
  return value != nullptr && value->as_string() != nullptr ? *value->as_string() : fallback;
}

}  // namespace collage
