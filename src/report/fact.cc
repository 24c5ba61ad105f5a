// fact.cc: makers of facts.
#include "report/fact.h"

#include <utility>

namespace collage {
namespace {

template <typename Value>
Fact Single(std::string key, std::string label, Fact::Kind kind, Unit unit, Value value) {
  Fact fact;
  fact.key = std::move(key);
  fact.label = std::move(label);
  fact.kind = kind;
  fact.unit = unit;
  fact.value = std::move(value);
  return fact;
}

Fact Group(std::string key, std::string label, Fact::Kind kind, std::vector<Fact> parts) {
  Fact fact;
  fact.key = std::move(key);
  fact.label = std::move(label);
  fact.kind = kind;
  fact.parts = std::move(parts);
  return fact;
}

template <typename Values>
Fact IntegerList(std::string key, std::string label, const Values& values) {
  std::vector<Fact> parts;
  for (const auto value : values) {
    parts.push_back(Single("", "", Fact::Kind::kInteger, Unit::kNone, static_cast<int64_t>(value)));
  }
  return Group(std::move(key), std::move(label), Fact::Kind::kList, std::move(parts)).SeparatedBy(" ");
}

}  // namespace

Fact Fact::Flag(std::string key, std::string label, bool value) {
  return Single(std::move(key), std::move(label), Kind::kFlag, Unit::kNone, value);
}

Fact Fact::Text(std::string key, std::string label, std::optional<std::string> text) {
  Fact fact = Single(std::move(key), std::move(label), Kind::kText, Unit::kNone, std::monostate{});
  if (text) fact.value = *std::move(text);
  return fact;
}

Fact Fact::Count(std::string key, std::string label, std::optional<int64_t> value) {
  return Integer(std::move(key), std::move(label), value, Unit::kCount);
}

Fact Fact::Integer(std::string key, std::string label, std::optional<int64_t> value, Unit unit) {
  Fact fact = Single(std::move(key), std::move(label), Kind::kInteger, unit, std::monostate{});
  if (value) fact.value = *value;
  return fact;
}

Fact Fact::Number(std::string key, std::string label, std::optional<double> value, Unit unit) {
  Fact fact = Single(std::move(key), std::move(label), Kind::kNumber, unit, std::monostate{});
  if (value) fact.value = *value;
  return fact;
}

Fact Fact::Seconds(std::string key, std::string label, std::optional<double> value) {
  return Number(std::move(key), std::move(label), value, Unit::kSeconds);
}

Fact Fact::Bytes(std::string key, std::string label, int64_t bytes) {
  return Integer(std::move(key), std::move(label), bytes, Unit::kBytes);
}

Fact Fact::Texts(std::string key, std::string label, const std::vector<std::string>& texts) {
  std::vector<Fact> parts;
  for (const std::string& text : texts) parts.push_back(Text("", "", text));
  return Group(std::move(key), std::move(label), Kind::kList, std::move(parts));
}

Fact Fact::Integers(std::string key, std::string label, const std::vector<int>& integers) {
  return IntegerList(std::move(key), std::move(label), integers);
}

Fact Fact::Sizes(std::string key, std::string label, const std::vector<int64_t>& sizes) {
  return IntegerList(std::move(key), std::move(label), sizes);
}

Fact Fact::Counts(std::string key, std::string label, const std::map<std::string, int64_t>& by_name) {
  std::vector<Fact> parts;
  for (const auto& [name, count] : by_name) parts.push_back(Count(name, name, count));
  return Group(std::move(key), std::move(label), Kind::kMap, std::move(parts));
}

Fact Fact::Numbers(std::string key, std::string label, const std::map<std::string, double>& by_name, Unit unit) {
  std::vector<Fact> parts;
  for (const auto& [name, number] : by_name) parts.push_back(Number(name, name, number, unit));
  return Group(std::move(key), std::move(label), Kind::kMap, std::move(parts));
}

Fact Fact::Record(std::string key, std::string label, std::vector<Fact> facts) {
  return Group(std::move(key), std::move(label), Kind::kRecord, std::move(facts));
}

Fact Fact::Line(std::string label, std::vector<Fact> facts) {
  return Group("", std::move(label), Kind::kLine, std::move(facts));
}

Fact Fact::Table(std::string key, std::string label, std::vector<Fact> rows) {
  return Group(std::move(key), std::move(label), Kind::kTable, std::move(rows));
}

Fact Fact::Report(int schema, std::vector<Fact> facts) {
  facts.insert(facts.begin(), Integer("schema", "", schema));
  return Record("", "", std::move(facts));
}

Fact Fact::Says(std::string text) && {
  sentence = std::move(text);
  return std::move(*this);
}

Fact Fact::Columns(std::vector<Column> shown) && {
  columns = std::move(shown);
  return std::move(*this);
}

Fact Fact::Inline() && {
  is_inline = true;
  return std::move(*this);
}

Fact Fact::SeparatedBy(std::string text) && {
  separator = std::move(text);
  return std::move(*this);
}

Fact Fact::OrNone() && {
  may_not_apply = true;
  return std::move(*this);
}

Fact Fact::Detail(bool detail) && {
  is_detail = detail;
  return std::move(*this);
}

bool Fact::IsEmpty() const {
  switch (kind) {
    case Kind::kFlag: return !std::holds_alternative<bool>(value) || !std::get<bool>(value);
    case Kind::kInteger: return !std::holds_alternative<int64_t>(value) || std::get<int64_t>(value) == 0;
    case Kind::kNumber: return !std::holds_alternative<double>(value) || std::get<double>(value) == 0;
    case Kind::kText: return !std::holds_alternative<std::string>(value) || std::get<std::string>(value).empty();
    default: return parts.empty();
  }
}

const Fact* Fact::Find(const std::string& wanted) const {
  for (const Fact& part : parts) {
    if (part.kind == Kind::kLine) {
      if (const Fact* found = part.Find(wanted)) return found;
    } else if (part.key == wanted) {
      return &part;
    }
  }
  return nullptr;
}

std::string Literal(const std::string& text) {
  std::string literal;
  for (const char c : text) {
    literal += c;
    if (c == '{' || c == '[' || c == ']') literal += c;
  }
  return literal;
}

}  // namespace collage
