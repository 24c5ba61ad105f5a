// dispatch.h: from a run-time dtype to a C++ element type.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "collage/runtime/data_type.h"
#include "collage/support/error.h"
#include "support/numbers.h"

namespace collage {

/// Storage of a float16 element.
struct Half {
  uint16_t bits;
};
/// Storage of a bfloat16 element.
struct BFloat {
  uint16_t bits;
};
/// Storage of a bool element: 0 or 1 in one byte.
struct BoolByte {
  uint8_t value;
};

template <typename T>
double ToDouble(T value) {
  if constexpr (std::is_same_v<T, Half>) {
    return HalfToFloat(value.bits);
  } else if constexpr (std::is_same_v<T, BFloat>) {
    return BFloat16ToFloat(value.bits);
  } else if constexpr (std::is_same_v<T, BoolByte>) {
    return value.value != 0 ? 1.0 : 0.0;
  } else {
    return static_cast<double>(value);
  }
}

/// Rounds to nearest even for floats, truncates and saturates for integers, tests for non-zero for bool.
template <typename T>
T FromDouble(double value) {
  if constexpr (std::is_same_v<T, Half>) {
    return {FloatToHalf(RoundToOdd(value))};
  } else if constexpr (std::is_same_v<T, BFloat>) {
    return {FloatToBFloat16(RoundToOdd(value))};
  } else if constexpr (std::is_same_v<T, BoolByte>) {
    return {static_cast<uint8_t>(value != 0.0 ? 1 : 0)};
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(value);
  } else {
    constexpr auto kLow = static_cast<double>(std::numeric_limits<T>::min());
    constexpr auto kHigh = static_cast<double>(std::numeric_limits<T>::max());
    if constexpr (sizeof(T) < sizeof(int32_t)) {  // without branches, so that loops can be vectorised
      const double inside = value < kLow ? kLow : value > kHigh ? kHigh : value;
      return static_cast<T>(static_cast<int32_t>(std::isnan(value) ? 0.0 : inside));
    }
    if (std::isnan(value)) return 0;
    if (value <= kLow) return std::numeric_limits<T>::min();
    if (value >= kHigh) return std::numeric_limits<T>::max();
    return static_cast<T>(value);
  }
}

/// Element conversion as C++ would do it, integers without passing through a double.
template <typename To, typename From>
To ConvertElement(From value) {
  if constexpr (std::is_integral_v<To> && std::is_integral_v<From>) {
    return static_cast<To>(value);
  } else if constexpr (std::is_same_v<To, float> && std::is_same_v<From, Half>) {
    return HalfToFloat(value.bits);
  } else {
    return FromDouble<To>(ToDouble(value));
  }
}

/// Calls `fn.template operator()<T>()` with the element type of `dtype`. Throws kUnsupported for vectors.
template <typename Fn>
decltype(auto) DispatchType(DataType dtype, Fn&& fn) {
  if (dtype.is_vector()) {
    throw Error(ErrorCategory::kUnsupported, "cannot compute on elements of several lanes: " + dtype.ToString());
  }
  switch (dtype.code) {
    case DataType::Code::kFloat:
      if (dtype.bits == 16) return fn.template operator()<Half>();
      if (dtype.bits == 64) return fn.template operator()<double>();
      return fn.template operator()<float>();
    case DataType::Code::kBFloat: return fn.template operator()<BFloat>();
    case DataType::Code::kBool: return fn.template operator()<BoolByte>();
    case DataType::Code::kInt:
      if (dtype.bits == 8) return fn.template operator()<int8_t>();
      if (dtype.bits == 16) return fn.template operator()<int16_t>();
      if (dtype.bits == 64) return fn.template operator()<int64_t>();
      return fn.template operator()<int32_t>();
    case DataType::Code::kUInt:
      if (dtype.bits == 8) return fn.template operator()<uint8_t>();
      if (dtype.bits == 16) return fn.template operator()<uint16_t>();
      if (dtype.bits == 64) return fn.template operator()<uint64_t>();
      return fn.template operator()<uint32_t>();
  }
  throw Error(ErrorCategory::kInternal, "unknown dtype code");
}

}  // namespace collage
