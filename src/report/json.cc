// json.cc: a report for programs to read.
#include "report/json.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace collage {
namespace {

using Json = nlohmann::ordered_json;

Json ToJson(const Fact& fact);

void AddFacts(const Fact& record, Json& json) {
  for (const Fact& part : record.parts) {
    if (part.kind == Fact::Kind::kLine) {
      AddFacts(part, json);
    } else if (!part.key.empty()) {
      json[part.key] = ToJson(part);
    }
  }
}

Json ToJson(const Fact& fact) {
  switch (fact.kind) {
    case Fact::Kind::kMap:
    case Fact::Kind::kRecord:
    case Fact::Kind::kLine: {
      Json json = Json::object();
      AddFacts(fact, json);
      return json;
    }
    case Fact::Kind::kList:
    case Fact::Kind::kTable: {
      Json json = Json::array();
      for (const Fact& part : fact.parts) json.push_back(ToJson(part));
      return json;
    }
    default: break;
  }
  if (const bool* flag = std::get_if<bool>(&fact.value)) return *flag;
  if (const int64_t* integer = std::get_if<int64_t>(&fact.value)) return *integer;
  if (const double* number = std::get_if<double>(&fact.value))
    return std::isnan(*number) ? Json("unknown") : Json(*number);
  if (const std::string* text = std::get_if<std::string>(&fact.value)) return *text;
  return nullptr;
}

Fact FromJson(std::string key, std::string label, const Json& json) {
  switch (json.type()) {
    case Json::value_t::boolean: return Fact::Flag(std::move(key), std::move(label), json.get<bool>());
    case Json::value_t::string: return Fact::Text(std::move(key), std::move(label), json.get<std::string>());
    case Json::value_t::number_float: return Fact::Number(std::move(key), std::move(label), json.get<double>());
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned: return Fact::Integer(std::move(key), std::move(label), json.get<int64_t>());
    case Json::value_t::object:
    case Json::value_t::array: break;
    default: return Fact::Number(std::move(key), std::move(label), std::nullopt);
  }
  Fact group = Fact::Record(std::move(key), std::move(label), {});
  group.kind = json.is_object() ? Fact::Kind::kMap : Fact::Kind::kList;
  for (const auto& [name, value] : json.items()) {
    group.parts.push_back(json.is_object() ? FromJson(name, name, value) : FromJson("", "", value));
  }
  return group;
}

}  // namespace

Fact FactOfJson(std::string key, std::string label, const std::string& text) {
  return FromJson(std::move(key), std::move(label), Json::parse(text, nullptr, /*allow_exceptions=*/false));
}

std::string RenderJson(const Fact& report) {
  return ToJson(report).dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace collage
