// operators.h: operators that a kernel computes element by element.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collage/ir/expr.h"

namespace collage::triton {

/// How a value is computed with.
enum class ValueKind : uint8_t {
  kFloat,    ///< as float32, whatever it is stored as
  kInteger,  ///< in its own type
  kBool,
};

/// Nothing for types that no kernel computes with.
std::optional<ValueKind> KindOf(DataType dtype);

/// Names of all operators that ComputeElement knows.
std::vector<std::string_view> ElementOperators();

/// Python's text of `call` on elements with the texts `args`; nothing for other operators, and for types that they are
/// not computed in. Arguments and result are typed.
std::optional<std::string> ComputeElement(const CallNode& call, const std::vector<std::string>& args);

/// `text`, of a value of type `from`, in type `to`.
std::string Converted(const std::string& text, DataType from, DataType to);

/// "fp32", "bf16", "i8": Triton's name of a type; empty without one.
std::string_view TypeName(DataType dtype);

/// Python's text of a number of that kind.
std::string Literal(double value, ValueKind kind);

}  // namespace collage::triton
