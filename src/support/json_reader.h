// json_reader.h: JSON that people write (rules, targets, costs), read with errors that say where: file, line, column.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace collage {

/// A value within a JSON text, and its place there. Cheap to copy; the text lives as long as any of its values.
///
/// All accessors throw kInput, "file:line:column: error: expected a number, got "x"", when the value is of another
/// kind.
class JsonReader {
 public:
  using Json = nlohmann::ordered_json;

  /// Comments (`//`, `/* */`) are allowed. Objects that name a field twice are refused.
  static JsonReader Parse(std::string text, std::string file);

  bool IsObject() const { return value_->is_object(); }
  bool IsArray() const { return value_->is_array(); }
  bool IsString() const { return value_->is_string(); }
  bool IsNumber() const { return value_->is_number(); }

  std::string String() const;
  bool Bool() const;
  double Number() const;
  /// An integer in [low, high].
  int Int(int low, int high) const;
  std::vector<JsonReader> Items() const;
  std::vector<std::pair<std::string, JsonReader>> Fields() const;

  /// A field of an object; `At` throws when it is absent.
  bool Has(std::string_view name) const;
  JsonReader At(std::string_view name) const;
  /// Refuses fields other than `names`, with near misses.
  void AllowOnly(const std::vector<std::string>& names) const;

  /// Field `name`, or a default.
  std::string StringOr(std::string_view name, std::string otherwise) const;
  bool BoolOr(std::string_view name, bool otherwise) const;
  int IntOr(std::string_view name, int otherwise, int low, int high) const;
  double NumberOr(std::string_view name, double otherwise) const;

  const Json& value() const { return *value_; }
  /// Throws kInput at this value's place.
  [[noreturn]] void Fail(const std::string& message, const std::string& hint = "") const;

 private:
  struct Document {
    std::string text;
    std::string file;
    Json root;
  };
  JsonReader(std::shared_ptr<const Document> document, const Json* value, std::vector<std::string> path)
      : document_(std::move(document)), value_(value), path_(std::move(path)) {}
  JsonReader Child(const Json& value, std::string step) const;
  [[noreturn]] void Expected(const char* what) const;

  std::shared_ptr<const Document> document_;
  const Json* value_;
  std::vector<std::string> path_;  ///< names and positions from the root to here
};

/// Returns what `error` says of a JSON value, without the library's name and number of the error.
std::string ProblemOf(const nlohmann::json::exception& error);

}  // namespace collage
