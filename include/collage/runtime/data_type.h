// data_type.h: element types of tensors, named as in Relay's text format ("float32", "int64", "bool").
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace collage {

/// An element type: a code, a width in bits, and how many lanes an element has ("float32x4" has 4; nearly all have
/// one). Bool has code kBool, one bit, and takes one byte in memory. Vectors may be stored, passed on and compared for
/// equality; nothing computes on their lanes.
struct DataType {
  enum class Code : uint8_t { kInt, kUInt, kFloat, kBFloat, kBool };

  Code code = Code::kFloat;
  uint8_t bits = 32;
  uint16_t lanes = 1;

  static constexpr DataType Int(int bits) { return {Code::kInt, static_cast<uint8_t>(bits)}; }
  static constexpr DataType UInt(int bits) { return {Code::kUInt, static_cast<uint8_t>(bits)}; }
  static constexpr DataType Float(int bits) { return {Code::kFloat, static_cast<uint8_t>(bits)}; }
  static constexpr DataType BFloat16() { return {Code::kBFloat, 16}; }
  static constexpr DataType Bool() { return {Code::kBool, 1}; }

  /// Parses "float32", "int8", "bool", "bfloat16", "float32x4" …; throws kInput for anything else.
  static DataType FromString(std::string_view name);
  /// Whether `FromString` would succeed.
  static bool IsName(std::string_view name);

  std::string ToString() const;
  /// Size of one element in memory.
  size_t size_bytes() const { return (bits <= 8 ? size_t{1} : bits / 8u) * lanes; }
  /// float16, bfloat16, float32, float64.
  bool is_floating() const { return code == Code::kFloat || code == Code::kBFloat; }
  /// Signed or unsigned integers; not bool.
  bool is_integer() const { return code == Code::kInt || code == Code::kUInt; }
  bool is_bool() const { return code == Code::kBool; }
  bool is_vector() const { return lanes != 1; }

  auto operator<=>(const DataType&) const = default;
};

inline constexpr DataType kFloat32 = DataType::Float(32);
inline constexpr DataType kFloat64 = DataType::Float(64);
inline constexpr DataType kFloat16 = DataType::Float(16);
inline constexpr DataType kBFloat16 = DataType::BFloat16();
inline constexpr DataType kInt8 = DataType::Int(8);
inline constexpr DataType kUInt8 = DataType::UInt(8);
inline constexpr DataType kInt32 = DataType::Int(32);
inline constexpr DataType kInt64 = DataType::Int(64);
inline constexpr DataType kBool = DataType::Bool();

}  // namespace collage
