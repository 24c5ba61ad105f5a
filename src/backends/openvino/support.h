// support.h: which calls may go to OpenVINO.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "collage/ir/expr.h"
#include "collage/support/result.h"

namespace collage::openvino {

/// Types that the first argument of an operator may have (or its result, if it has no argument).
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

/// Whether `call`, in which sizes may be symbolic, has a translation that finds them when it runs; the reason when not.
Result<void> SupportsSymbolic(const CallNode& call);

/// Checks limits of the operator `name` in OpenVINO, beyond unsupported types.
Result<void> CheckLimits(const CallNode& call, std::string_view name);

bool IsFloat(DataType dtype);
/// Returns the type of the first argument, or of the result if there is no argument.
DataType FirstDType(const CallNode& call);

}  // namespace collage::openvino
