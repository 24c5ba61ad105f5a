// parse_value.cc: constants and attributes in Relay text.
#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <limits>

#include "ir/parser.h"

namespace collage {
namespace {

/// A number's digits and its suffix: "1.5f16" is 1.5 and "f16".
std::pair<std::string, std::string_view> SplitNumber(std::string_view text) {
  size_t end = text.find_first_not_of("0123456789.eE+-");
  if (end == std::string_view::npos) end = text.size();
  return {std::string(text.substr(0, end)), text.substr(end)};
}

bool IsFraction(const std::string& digits) { return digits.find_first_of(".eE") != std::string::npos; }

}  // namespace

// ---- constants ----

Expr Parser::Meta() {
  Take();
  Expect("[");
  const Token kind = ExpectKind(TokenKind::kIdentifier, "'relay.Constant'");
  if (kind.text != "relay.Constant") {
    Fail(kind, fmt::format("unknown kind of metadata '{}', expected 'relay.Constant'", kind.text));
  }
  Expect("]");
  Expect("[");
  const Token index = ExpectKind(TokenKind::kNumber, "an index");
  const int64_t number = Integer(index);
  if (number >= static_cast<int64_t>(constants_.size())) {
    Fail(index, fmt::format("constant {} is missing: the text comes with {}", number, constants_.size()),
         constants_.empty() ? "the metadata section holds the values of constants" : "");
  }
  Expect("]");
  return constants_[static_cast<size_t>(number)];
}

Expr Parser::NumberLiteral(bool is_negative) {
  const Token token = Take();
  if (token.kind == TokenKind::kIdentifier) {
    const double value = token.text == "nanf" ? std::numeric_limits<double>::quiet_NaN()
                                              : std::numeric_limits<double>::infinity();
    return At(MakeScalar(is_negative ? -value : value, kFloat32), token);
  }
  const auto [digits, suffix] = SplitNumber(token.text);
  const std::string text = (is_negative ? "-" : "") + digits;
  if (suffix.starts_with('f') || (suffix.empty() && IsFraction(digits))) {
    const DataType dtype = suffix == "f16" ? kFloat16 : suffix == "f64" ? kFloat64 : kFloat32;
    if (dtype == kFloat32 && suffix.size() > 1 && suffix != "f32") Fail(token, fmt::format("bad number '{}'", token.text));
    // strtof, since rounding twice would miss the nearest float.
    const double value = dtype == kFloat32 ? static_cast<double>(std::strtof(text.c_str(), nullptr))
                                           : std::strtod(text.c_str(), nullptr);
    return At(MakeScalar(value, dtype), token);
  }
  int64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_known = suffix.empty() || suffix == "i" || suffix == "i16" || suffix == "i32" || suffix == "i64";
  if (!is_known || parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) {
    Fail(token, fmt::format("bad number '{}'", token.text));
  }
  const bool fits = value == static_cast<int32_t>(value);
  const DataType dtype = suffix == "i64" || (suffix.empty() && !fits) ? kInt64
                         : suffix == "i16"                            ? DataType::Int(16)
                                                                      : kInt32;
  if ((dtype == kInt32 && !fits) || (suffix == "i16" && value != static_cast<int16_t>(value))) {
    Fail(token, fmt::format("'{}' does not fit into {}", token.text, dtype.ToString()));
  }
  Tensor tensor = Tensor::Empty({}, dtype);
  if (dtype == kInt64) {
    *tensor.data<int64_t>() = value;  // double, which Set takes, would round it
  } else {
    tensor.Set(0, static_cast<double>(value));
  }
  return At(MakeConstant(std::move(tensor)), token);
}

int64_t Parser::Integer(const Token& token) const {
  int64_t value = 0;
  const auto parsed = std::from_chars(token.text.data(), token.text.data() + token.text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != token.text.data() + token.text.size()) {
    Fail(token, fmt::format("expected an integer, got {}", Describe(token)));
  }
  return value;
}

// ---- attributes ----

void Parser::Attribute(Attrs* attrs) {
  const Token token = Take();
  if (token.kind != TokenKind::kIdentifier && token.kind != TokenKind::kString) {
    Fail(token, fmt::format("expected a parameter or an attribute, got {}", Describe(token)));
  }
  std::string name = token.kind == TokenKind::kString ? StringValue(token) : std::string(token.text);
  Expect("=");
  if (attrs->Has(name)) Fail(token, fmt::format("attribute '{}' is given twice", name));
  attrs->Set(std::move(name), AttributeValue());
}

AttrValue Parser::AttributeValue() {
  const Nesting nesting(*this);
  if (Accept("-")) return AttributeNumber(/*is_negative=*/true);
  if (Peek().kind == TokenKind::kNumber || IsNext("inff") || IsNext("nanf")) return AttributeNumber(false);
  const Token token = Take();
  if (token.kind == TokenKind::kString) return StringValue(token);
  if (token.text == "True" || token.text == "False") return token.text == "True";
  if (token.text == "None" || token.text == "nullptr") return {};
  if (token.kind == TokenKind::kPunctuation && (token.text == "[" || token.text == "(")) {
    const std::string_view close = token.text == "[" ? "]" : ")";
    AttrValue::List list;
    while (!Accept(close)) {
      list.push_back(AttributeValue());
      if (!IsNext(close)) Expect(",");
    }
    return list;
  }
  Fail(token, fmt::format("expected an attribute's value, got {}", Describe(token)));
}

AttrValue Parser::AttributeNumber(bool is_negative) {
  const Token token = Take();
  if (token.kind == TokenKind::kIdentifier) {
    const double value = token.text == "nanf" ? std::numeric_limits<double>::quiet_NaN()
                                              : std::numeric_limits<double>::infinity();
    return is_negative ? -value : value;
  }
  if (token.kind != TokenKind::kNumber) Fail(token, fmt::format("expected a number, got {}", Describe(token)));
  const auto [digits, suffix] = SplitNumber(token.text);
  const std::string text = (is_negative ? "-" : "") + digits;
  const bool is_known = suffix.empty() || suffix == "f" || suffix == "f32" || suffix == "f64" || suffix == "i" ||
                        suffix == "i32" || suffix == "i64";
  if (!is_known) Fail(token, fmt::format("bad number '{}'", token.text));
  if (suffix.starts_with('f') || IsFraction(digits)) return std::strtod(text.c_str(), nullptr);
  int64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc()) Fail(token, fmt::format("'{}' does not fit into int64", token.text));
  return value;
}

std::string Parser::StringValue(const Token& token) const {
  std::string value;
  for (size_t i = 1; i + 1 < token.text.size(); ++i) {
    if (token.text[i] == '\\') {
      ++i;
      value += token.text[i] == 'n' ? '\n' : token.text[i];
    } else {
      value += token.text[i];
    }
  }
  return value;
}

}  // namespace collage
