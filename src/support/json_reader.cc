// json_reader.cc: values by nlohmann-json; places by a second, tiny pass over the text when an error needs one.
#include "support/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <set>

#include "collage/support/error.h"
#include "support/edit_distance.h"

namespace collage {
namespace {

// Values nest at most this deep: the parser recurses.
constexpr int kMaxDepth = 1000;

std::string Place(std::string_view text, const std::string& file, size_t at) {
  at = std::min(at, text.size());
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  const size_t before = at == 0 ? std::string_view::npos : text.rfind('\n', at - 1);
  return fmt::format("{}:{}:{}", file, line, before == std::string_view::npos ? at + 1 : at - before);
}

/// Returns the position of the first number that no double holds; the end of the text if there is none. The text is
/// known to be JSON (with comments) up to that number.
size_t FindHugeNumber(std::string_view text) {
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '"') {
      for (++at; at < text.size() && text[at] != '"'; ++at) at += text[at] == '\\' ? 1 : 0;
    } else if (text.substr(at).starts_with("//")) {
      at = std::min(text.find('\n', at), text.size());
    } else if (text.substr(at).starts_with("/*")) {
      at = std::min(text.find("*/", at + 2), text.size() - 1) + 1;
    } else if (text[at] == '-' || std::isdigit(static_cast<unsigned char>(text[at])) != 0) {
      const size_t end = std::min(text.find_first_not_of("+-.0123456789eE", at), text.size());
      if (std::isinf(std::strtod(std::string(text.substr(at, end - at)).c_str(), nullptr))) return at;
      at = end - 1;
    }
  }
  return text.size();
}

/// Finds where the value at the end of a path begins. The text is known to be JSON (with comments).
class Finder {
 public:
  explicit Finder(std::string_view text) : text_(text) {}

  size_t Find(const std::vector<std::string>& path) {
    Skip();
    for (const std::string& step : path) {
      const char open = Get();
      for (size_t position = 0;; ++position) {
        Skip();
        std::string name = std::to_string(position);
        if (open == '{') {
          name = Name();
          Skip();
          ++at_;  // ':'
          Skip();
        }
        if (name == step) break;
        Value();
        Skip();
        if (Get() != ',') return at_;  // not there: cannot be
      }
    }
    return at_;
  }

 private:
  char Get() { return at_ < text_.size() ? text_[at_++] : '\0'; }
  void Skip() {
    while (at_ < text_.size()) {
      if (std::isspace(static_cast<unsigned char>(text_[at_])) != 0) {
        ++at_;
      } else if (text_.substr(at_).starts_with("//")) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (text_.substr(at_).starts_with("/*")) {
        at_ = std::min(text_.find("*/", at_ + 2), text_.size() - 2) + 2;
      } else {
        return;
      }
    }
  }
  void SkipString() {
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) at_ += text_[at_] == '\\' ? 1 : 0;
    ++at_;
  }
  std::string Name() {
    const size_t begin = at_;
    SkipString();
    return nlohmann::json::parse(text_.substr(begin, at_ - begin)).get<std::string>();
  }
  void Value() {
    int depth = 0;
    do {
      Skip();
      const char c = at_ < text_.size() ? text_[at_] : ']';
      if (c == '"') {
        SkipString();
      } else if (c == '{' || c == '[') {
        ++depth;
        ++at_;
      } else if (c == '}' || c == ']') {
        --depth;
        ++at_;
      } else if (c == ',' || c == ':') {
        ++at_;
      } else {
        while (at_ < text_.size() && std::string_view(",]} \t\r\n/").find(text_[at_]) == std::string_view::npos) ++at_;
      }
    } while (depth > 0);
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

JsonReader JsonReader::Parse(std::string text, std::string file) {
  auto document = std::make_shared<Document>();
  document->text = std::move(text);
  document->file = std::move(file);
  std::vector<std::set<std::string>> names;
  const auto check = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kMaxDepth) throw Error(ErrorCategory::kInput, "values nest too deeply", document->file);
    if (event == Json::parse_event_t::object_start) names.emplace_back();
    if (event == Json::parse_event_t::object_end) names.pop_back();
    if (event == Json::parse_event_t::key && !names.back().insert(parsed.get<std::string>()).second) {
      throw Error(ErrorCategory::kInput, fmt::format("'{}' is given twice in one object", parsed.get<std::string>()),
                  document->file);
    }
    return true;
  };
  try {
    document->root = Json::parse(document->text, check, /*allow_exceptions=*/true, /*ignore_comments=*/true);
  } catch (const nlohmann::json::parse_error& error) {
    std::string what = error.what();
    const size_t detail = what.find("syntax error");
    what = detail == std::string::npos ? what : what.substr(detail);
    throw Error(ErrorCategory::kInput, "not JSON: " + what,
                Place(document->text, document->file, error.byte == 0 ? 0 : error.byte - 1));
  } catch (const nlohmann::json::out_of_range&) {
    const std::string_view all = document->text;
    const size_t at = FindHugeNumber(all);
    const std::string_view number = all.substr(at, all.find_first_not_of("+-.0123456789eE", at) - at);
    throw Error(ErrorCategory::kInput,
                fmt::format("the number {}{} is out of range", number.substr(0, 40), number.size() > 40 ? "…" : ""),
                Place(all, document->file, at), "numbers are up to about 1.8e308");
  }
  const Json* root = &document->root;
  return {std::move(document), root, {}};
}

JsonReader JsonReader::Child(const Json& value, std::string step) const {
  std::vector<std::string> path = path_;
  path.push_back(std::move(step));
  return {document_, &value, std::move(path)};
}

void JsonReader::Fail(const std::string& message, const std::string& hint) const {
  const size_t at = Finder(document_->text).Find(path_);
  throw Error(ErrorCategory::kInput, message, Place(document_->text, document_->file, at), hint);
}

void JsonReader::Expected(const char* what) const {
  std::string text = value_->dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 40) text = text.substr(0, 40) + "…";
  Fail(fmt::format("expected {}, got {}", what, text));
}

std::string JsonReader::String() const {
  if (!value_->is_string()) Expected("a string");
  return value_->get<std::string>();
}

bool JsonReader::Bool() const {
  if (!value_->is_boolean()) Expected("true or false");
  return value_->get<bool>();
}

double JsonReader::Number() const {
  if (!value_->is_number()) Expected("a number");
  return value_->get<double>();
}

int JsonReader::Int(int low, int high) const {
  const double number = value_->is_number() ? value_->get<double>() : NAN;
  if (!(number >= low && number <= high) || number != std::floor(number)) {
    Expected(fmt::format("an integer from {} to {}", low, high).c_str());
  }
  return static_cast<int>(number);
}

std::vector<JsonReader> JsonReader::Items() const {
  if (!value_->is_array()) Expected("a list");
  std::vector<JsonReader> items;
  for (const Json& item : *value_) items.push_back(Child(item, std::to_string(items.size())));
  return items;
}

std::vector<std::pair<std::string, JsonReader>> JsonReader::Fields() const {
  if (!value_->is_object()) Expected("an object");
  std::vector<std::pair<std::string, JsonReader>> fields;
  for (const auto& [name, value] : value_->items()) fields.emplace_back(name, Child(value, name));
  return fields;
}

bool JsonReader::Has(std::string_view name) const {
  if (!value_->is_object()) Expected("an object");
  return value_->contains(name);
}

JsonReader JsonReader::At(std::string_view name) const {
  if (!Has(name)) Fail(fmt::format("'{}' is missing", name));
  return Child(value_->at(std::string(name)), std::string(name));
}

void JsonReader::AllowOnly(const std::vector<std::string>& names) const {
  for (const auto& [name, value] : Fields()) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::vector<std::string> near = NearMisses(name, names);
    value.Fail(fmt::format("unknown field '{}'", name),
               near.empty() ? fmt::format("known are {}", fmt::join(names, ", ")) : "did you mean '" + near[0] + "'?");
  }
}

std::string JsonReader::StringOr(std::string_view name, std::string otherwise) const {
  return Has(name) ? At(name).String() : otherwise;
}
bool JsonReader::BoolOr(std::string_view name, bool otherwise) const { return Has(name) ? At(name).Bool() : otherwise; }
int JsonReader::IntOr(std::string_view name, int otherwise, int low, int high) const {
  return Has(name) ? At(name).Int(low, high) : otherwise;
}
double JsonReader::NumberOr(std::string_view name, double otherwise) const {
  return Has(name) ? At(name).Number() : otherwise;
}

std::string ProblemOf(const nlohmann::json::exception& error) {
  const std::string_view text = error.what();  // "[json.exception.type_error.302] type must be string, but is number"
  const size_t end = text.find("] ");
  return std::string(end == std::string_view::npos ? text : text.substr(end + 2));
}

}  // namespace collage
