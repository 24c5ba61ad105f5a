// value.h: the values of loops: coordinates, vectors of elements, sizes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backends/native/compiler/emit/ssa.h"
#include "collage/ir/type.h"
#include "collage/runtime/tensor.h"

namespace collage::native {

/// One coordinate: `base` + lane * `step`; or, where it is no such progression, a vector of i64.
struct Index {
  I64 base;
  int64_t step = 0;
  Lanes lanes;           ///< the coordinates of all lanes, where they are no progression
  int64_t multiple = 1;  ///< `base` is known to be a multiple of this

  bool is_progression() const { return lanes.is_none(); }
  bool is_scalar() const { return is_progression() && step == 0; }
};
using Indices = std::vector<Index>;

/// The kind of elements during a computation; narrower types are widened when they are read.
enum class ElementKind : uint8_t { kFloat, kDouble, kInt, kBool };

/// The kind that elements of `dtype` are computed as.
ElementKind KindOf(DataType dtype);

/// A vector of lanes(): float32, float64, int64 or i1.
struct Value {
  std::string name;
  ElementKind kind = ElementKind::kFloat;
};

inline Value AsValue(const Lanes& numbers) { return {numbers.name(), ElementKind::kInt}; }
inline Value AsValue(const Mask& truths) { return {truths.name(), ElementKind::kBool}; }
/// A value of integers as coordinates of lanes.
inline Lanes AsLanes(const Value& numbers) { return Lanes{numbers.name}; }
/// A value of truth values as lanes that there are.
inline Mask AsMask(const Value& truths) { return Mask{truths.name}; }

/// Symbolic sizes are represented by numbers from here on (Emitter::Symbolic). Arithmetic on them goes through the
/// emitter.
inline constexpr int64_t kFirstSymbolic = int64_t{1} << 60;
inline bool IsSymbolic(int64_t size) { return size >= kFirstSymbolic; }
inline bool HasSymbolic(const Shape& shape) {
  for (const int64_t size : shape) {
    if (IsSymbolic(size)) return true;
  }
  return false;
}

/// The meaning of a symbolic size.
struct SizeFormula {
  enum Kind : uint8_t { kPlace, kProduct, kSum, kQuotient, kValue } kind;
  int64_t number = 1;          ///< place, factor of a product, divisor
  std::vector<int64_t> parts;  ///< sizes that it is made of
  I64 value;                   ///< kValue: what it is
  bool operator==(const SizeFormula&) const = default;
};

/// As a distance between lanes: they are not evenly spaced.
inline constexpr int64_t kUneven = INT64_MIN;

}  // namespace collage::native
