// data_type.cc: names of element types.
#include "collage/runtime/data_type.h"

#include <array>
#include <charconv>
#include <optional>

#include "collage/support/error.h"

namespace collage {
namespace {

struct NamedType {
  std::string_view name;
  DataType dtype;
};

constexpr std::array kTypes{
    NamedType{"float32", kFloat32},
    NamedType{"float64", kFloat64},
    NamedType{"float16", kFloat16},
    NamedType{"bfloat16", kBFloat16},
    NamedType{"int8", kInt8},
    NamedType{"int16", DataType::Int(16)},
    NamedType{"int32", kInt32},
    NamedType{"int64", kInt64},
    NamedType{"uint8", kUInt8},
    NamedType{"uint16", DataType::UInt(16)},
    NamedType{"uint32", DataType::UInt(32)},
    NamedType{"uint64", DataType::UInt(64)},
    NamedType{"bool", kBool},
};

std::optional<DataType> Find(std::string_view name) {
  DataType result;
  const size_t x = name.find('x');
  if (x != std::string_view::npos) {
    const std::string_view digits = name.substr(x + 1);
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), result.lanes);
    const bool is_number = parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size();
    if (!is_number || result.lanes < 2 || digits.starts_with('0')) return std::nullopt;
  }
  for (const NamedType& type : kTypes) {
    if (type.name != name.substr(0, x)) continue;
    result.code = type.dtype.code;
    result.bits = type.dtype.bits;
    return result;
  }
  return std::nullopt;
}

}  // namespace

bool DataType::IsName(std::string_view name) { return Find(name).has_value(); }

DataType DataType::FromString(std::string_view name) {
  if (const std::optional<DataType> dtype = Find(name)) return *dtype;
  throw Error(ErrorCategory::kInput, "unknown dtype '" + std::string(name) + "'");
}

std::string DataType::ToString() const {
  for (const NamedType& type : kTypes) {
    if (type.dtype.code != code || type.dtype.bits != bits) continue;
    return std::string(type.name) + (is_vector() ? "x" + std::to_string(lanes) : "");
  }
  return "unknown";
}

}  // namespace collage
