// support.h: which calls may go to OpenVINO.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "collage/ir/expr.h"
#include "collage/support/result.h"

namespace collage::openvino {

/// What the first argument of an operator (its result, when it has none) may consist of.
enum class ElementTypes : uint8_t {
  kFloats,   ///< float32, float16, bfloat16
  kNumbers,  ///< these and integers
  kAny,      ///< these and bools
};

/// An operator, what it computes, and why no call of it is translated; empty when calls are.
struct OperatorRow {
  std::string_view name;
  ElementTypes types;
  std::string_view why_not;
};

/// One row per operator of the op table, by name.
std::span<const OperatorRow> Operators();

/// Whether `call`, of an operator and typed, has a translation; the reason when not.
Result<void> Supports(const CallNode& call);

/// What the operator called `name` cannot do in OpenVINO, beyond types that it does not know.
Result<void> CheckLimits(const CallNode& call, std::string_view name);

bool IsFloat(DataType dtype);
/// Of the first argument; of the result where there is none.
DataType FirstDType(const CallNode& call);

}  // namespace collage::openvino
