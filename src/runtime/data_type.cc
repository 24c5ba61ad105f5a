// data_type.cc: names of element types.
#include "collage/runtime/data_type.h"

#include <array>

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

}  // namespace

bool DataType::IsName(std::string_view name) {
  for (const NamedType& type : kTypes) {
    if (type.name == name) return true;
  }
  return false;
}

DataType DataType::FromString(std::string_view name) {
  for (const NamedType& type : kTypes) {
    if (type.name == name) return type.dtype;
  }
  throw Error(ErrorCategory::kInput, "unknown dtype '" + std::string(name) + "'");
}

std::string DataType::ToString() const {
  for (const NamedType& type : kTypes) {
    if (type.dtype == *this) return std::string(type.name);
  }
  return "unknown";
}

}  // namespace collage
