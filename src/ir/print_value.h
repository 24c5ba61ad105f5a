// print_value.h: attributes, scalars and comments as they are written in Relay text.
#pragma once

#include <string>

#include "collage/ir/attrs.h"
#include "collage/ir/expr.h"

namespace collage {

/// `6f`, `"edge"`, `[1, 2]`, `None` …
std::string AttrText(const AttrValue& value);
/// `a=1, b="x"`.
std::string AttrsText(const Attrs& attrs);
/// `virtual_device=VirtualDevice(…)`.
std::string DeviceText(const VirtualDevice& device);
/// A rank-0 constant as a number with a suffix; empty when no number has exactly its value and dtype.
std::string LiteralText(const Tensor& value);
/// `text` so that it may stand in a comment; names of a model's nodes may hold anything.
std::string WithoutCommentMarks(std::string text);

}  // namespace collage
