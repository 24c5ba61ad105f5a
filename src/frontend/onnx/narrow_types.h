// narrow_types.h: ONNX's element types of fewer than 8 bits, those of 8 bits that are floats, and strings.
//
// Relay has none of them. An element takes a byte: integers of 2 and 4 bits are int8 and uint8 with values in their
// range, floats of 4 and 8 bits are uint8 that hold their codes. All toolchains so compute what they compute on bytes,
// and conversions are ordinary operators: a lookup in a table of all values, or arithmetic on the bits of float32.
// Strings are int64 that hold their numbers (strings.h), which can be moved, compared and looked up.
#pragma once

#include <cstdint>
#include <string>

#include "collage/runtime/tensor.h"
#include "frontend/onnx/importer.h"

namespace collage {

/// A format of floats by its fields: a sign, unless `is_power`, exponent and `mantissa` bits. Codes up to `largest` are
/// finite.
struct NarrowFloat {
  int mantissa = 0;
  int bias = 0;
  int largest = 0;         ///< code of the largest finite number
  int nan = 0;             ///< code of what is not a number
  int overflow = 0;        ///< code beyond the largest number where conversions do not saturate
  bool signs_zero = true;  ///< -0, and a sign of `nan` and `overflow`
  bool is_power = false;   ///< an exponent alone: no sign
};

/// A row of the table of narrow types.
struct NarrowType {
  int onnx_type = 0;  ///< TensorProto.DataType
  const char* name = "";
  int bits = 8;
  bool is_signed = false;    ///< integers have a sign
  bool is_floating = false;  ///< `format` says which
  NarrowFloat format;
  bool is_text = false;  ///< strings

  /// The dtype of its elements in Relay.
  DataType storage() const { return is_text ? kInt64 : is_signed ? kInt8 : kUInt8; }
  /// The least and the largest integer.
  int low() const { return is_signed ? -(1 << (bits - 1)) : 0; }
  int high() const { return (1 << (bits - (is_signed ? 1 : 0))) - 1; }
};

/// The narrow type that a number of TensorProto.DataType names; null for others.
const NarrowType* FindNarrowType(int onnx_type);

/// The type of strings.
const NarrowType* TextType();

/// The number that `code` stands for in a floating type.
double NarrowValue(const NarrowType& type, int code);

/// How numbers become narrow.
struct NarrowRounding {
  bool saturates = true;    ///< numbers that are too large become the largest one
  std::string mode = "up";  ///< of powers of two: "up", "down", "nearest"
};

/// `codes` as float32 where `type` is floating; integers as they are.
Expr Widen(NodeContext& node, const Expr& codes, const NarrowType& type);
/// The low bits of integers `x` as elements of `type`, whose codes they are where it is floating.
Expr LowBits(NodeContext& node, const Expr& x, const NarrowType& type);
/// `x`, of any ordinary dtype, as `type`. Floats are rounded to nearest, ties to even; integers wrap.
Expr Narrow(NodeContext& node, const Expr& x, const NarrowType& type, const NarrowRounding& rounding);

}  // namespace collage
