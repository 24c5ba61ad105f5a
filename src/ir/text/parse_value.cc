// parse_value.cc: constants and attributes in Relay text.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "collage/support/error.h"
#include "ir/metadata.h"
#include "ir/text/parser.h"

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

Parser::MetaReference Parser::ParseMetaReference() {
  Expect("meta");
  Expect("[");
  const Token kind = ExpectKind(TokenKind::kIdentifier, "a kind of metadata");
  Expect("]");
  Expect("[");
  const Token index = ExpectKind(TokenKind::kNumber, "an index");
  Expect("]");
  return {kind, index};
}

size_t Parser::MetaIndex(const MetaReference& reference, std::string_view kind, size_t count) const {
  if (reference.kind.text != kind) {
    Fail(reference.kind, fmt::format("unknown kind of metadata '{}', expected '{}'", reference.kind.text, kind));
  }
  const int64_t number = Integer(reference.index);
  if (number >= static_cast<int64_t>(count)) {
    Fail(reference.index,
         fmt::format("{} {} is missing: the text comes with {}", kind == "relay.Constant" ? "constant" : kind, number,
                     count),
         count == 0 ? "the metadata section holds the values" : "");
  }
  return static_cast<size_t>(number);
}

Expr Parser::Meta() { return constants_[MetaIndex(ParseMetaReference(), "relay.Constant", constants_.size())]; }

/// A constant of rank 0 or 1, or another of TVM's objects that is a text, a number or a list of these.
AttrValue Parser::MetaAttribute() {
  const MetaReference reference = ParseMetaReference();
  if (reference.kind.text == "relay.Constant") {
    const Tensor& value = constants_[MetaIndex(reference, "relay.Constant", constants_.size())]->value();
    if (value.rank() > 1 || value.dtype().is_vector()) {
      Fail(reference.kind, "an attribute is a scalar or a list, got a constant of shape " + ToString(value.shape()));
    }
    const auto element = [&](int64_t i) -> AttrValue {
      if (value.dtype().is_bool()) return value.At(i) != 0;
      return value.dtype().is_floating() ? AttrValue(value.At(i)) : AttrValue(value.ToInts()[i]);
    };
    if (value.rank() == 0) return element(0);
    AttrValue::List list;
    for (int64_t i = 0; i < value.num_elements(); ++i) list.push_back(element(i));
    return list;
  }
  auto it = meta_values_.find(reference.kind.text);
  const size_t index = MetaIndex(reference, reference.kind.text, it == meta_values_.end() ? 0 : it->second.size());
  if (!it->second[index]) {
    Fail(reference.kind, fmt::format("an attribute cannot be a '{}'", reference.kind.text),
         "it is a text, a number, a list of these, or None");
  }
  return *it->second[index];
}

/// `meta[VirtualDevice][0]` or `VirtualDevice(device_type=1, virtual_device_id=0, target="llvm",
/// memory_scope="global")`.
VirtualDevice Parser::ParseVirtualDevice() {
  if (IsNext("meta")) {
    return virtual_devices_[MetaIndex(ParseMetaReference(), "VirtualDevice", virtual_devices_.size())];
  }
  const Token begin = Expect("VirtualDevice");
  Attrs attrs;
  Expect("(");
  while (!Accept(")")) {
    Attribute(&attrs);
    if (!IsNext(")")) Expect(",");
  }
  try {
    return VirtualDeviceFromAttrs(attrs);
  } catch (const Error& error) {
    Fail(begin, error.message());
  }
}

bool Parser::Signs() {
  bool is_negative = false;
  while (Accept("-")) is_negative = !is_negative;
  return is_negative;
}

Expr Parser::NumberLiteral(bool is_negative) {
  const Token token = Take();
  if (token.kind != TokenKind::kNumber && token.text != "inff" && token.text != "nanf") {
    Fail(token, fmt::format("expected a number, got {}", Describe(token)));
  }
  if (token.kind == TokenKind::kIdentifier) {
    const double value =
        token.text == "nanf" ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
    return At(MakeScalar(is_negative ? -value : value, kFloat32), token);
  }
  const auto [digits, suffix] = SplitNumber(token.text);
  const std::string text = (is_negative ? "-" : "") + digits;
  if (suffix.starts_with('f') || (suffix.empty() && IsFraction(digits))) {
    const DataType dtype = suffix == "f16" ? kFloat16 : suffix == "f64" ? kFloat64 : kFloat32;
    const bool is_known = dtype != kFloat32 || suffix.size() <= 1 || suffix == "f32";
    // strtof, since rounding twice would miss the nearest float.
    char* end = nullptr;
    const double value =
        dtype == kFloat32 ? static_cast<double>(std::strtof(text.c_str(), &end)) : std::strtod(text.c_str(), &end);
    if (!is_known || *end != '\0') Fail(token, fmt::format("bad number '{}'", token.text));
    Constant constant = At(MakeScalar(value, dtype), token);
    if (std::isinf(constant->value().At(0))) {
      Fail(token, fmt::format("'{}' does not fit into {}", token.text, dtype.ToString()));
    }
    return constant;
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
  const auto set = [&](std::string attribute, AttrValue value) {
    if (attrs->Has(attribute)) Fail(token, fmt::format("attribute '{}' is given twice", attribute));
    attrs->Set(std::move(attribute), std::move(value));
  };
  // TVM's operators have a device as one attribute, ours its parts.
  constexpr std::string_view kDevice = "virtual_device";
  if (name.ends_with(kDevice) && (IsNext("meta") || IsNext("VirtualDevice"))) {
    const std::string prefix = name.substr(0, name.size() - kDevice.size());
    for (const auto& [part, value] : ToAttrs(ParseVirtualDevice())) {
      set(prefix + (part == "virtual_device_id" ? "device_id" : part), value);
    }
  } else {
    set(std::move(name), AttributeValue());
  }
}

AttrValue Parser::AttributeValue() {
  const Nesting nesting(*this);
  if (IsNext("-")) return AttributeNumber(Signs());
  if (Peek().kind == TokenKind::kNumber || IsNext("inff") || IsNext("nanf")) return AttributeNumber(false);
  if (IsNext("meta")) return MetaAttribute();
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
    const double value =
        token.text == "nanf" ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
    return is_negative ? -value : value;
  }
  if (token.kind != TokenKind::kNumber) Fail(token, fmt::format("expected a number, got {}", Describe(token)));
  const auto [digits, suffix] = SplitNumber(token.text);
  const std::string text = (is_negative ? "-" : "") + digits;
  static constexpr std::array<std::string_view, 8> kSuffixes{"", "f", "f16", "f32", "f64", "i", "i32", "i64"};
  const bool is_float = suffix.starts_with('f') || IsFraction(digits);
  char* float_end = nullptr;
  const double float_value = std::strtod(text.c_str(), &float_end);
  int64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_whole = is_float ? *float_end == '\0' : parsed.ptr == text.data() + text.size();
  if (!is_whole || std::find(kSuffixes.begin(), kSuffixes.end(), suffix) == kSuffixes.end()) {
    Fail(token, fmt::format("bad number '{}'", token.text));
  }
  if (is_float) return float_value;
  if (parsed.ec != std::errc()) Fail(token, fmt::format("'{}' does not fit into int64", token.text));
  return value;
}

std::string Parser::StringValue(const Token& token) {
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
