// strings.cc: attributes of functions that take or return strings.
#include "collage/ir/strings.h"

#include <utility>

namespace collage {
namespace {

std::vector<std::string> TextsIn(const Attrs& attrs) {
  std::vector<std::string> texts;
  const AttrValue* value = attrs.Find(kAttrStrings);
  if (value == nullptr || value->as_list() == nullptr) return texts;
  for (const AttrValue& text : *value->as_list()) {
    if (text.as_string() == nullptr) return {};
    texts.push_back(*text.as_string());
  }
  return texts;
}

std::set<int64_t> PlacesIn(const Attrs& attrs, const char* name) {
  std::set<int64_t> places;
  const AttrValue* value = attrs.Find(name);
  if (value == nullptr || value->as_list() == nullptr) return places;
  for (const AttrValue& place : *value->as_list()) {
    if (place.as_int() == nullptr) return {};
    places.insert(*place.as_int());
  }
  return places;
}

}  // namespace

StringTensors::StringTensors(std::vector<std::string> texts, std::set<int64_t> params, std::set<int64_t> results)
    : known_(std::move(texts)), params_(std::move(params)), results_(std::move(results)) {}

StringTensors::StringTensors(const Attrs& attrs)
    : StringTensors(TextsIn(attrs), PlacesIn(attrs, kAttrStringParams), PlacesIn(attrs, kAttrStringResults)) {}

void StringTensors::AddTo(Attrs& attrs) const {
  if (empty()) return;
  const auto list = [](const auto& values) { return AttrValue::List(values.begin(), values.end()); };
  attrs.Set(kAttrStrings, list(known_.texts()));
  if (!params_.empty()) attrs.Set(kAttrStringParams, list(params_));
  if (!results_.empty()) attrs.Set(kAttrStringResults, list(results_));
}

}  // namespace collage
