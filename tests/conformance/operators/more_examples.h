// more_examples.h: calls of operators beyond the examples in their rows.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "collage/ir/op.h"
#include "conformance/conformance.h"

namespace collage::conformance {

/// Calls of operators whose rows in the op table have no examples, or whose examples leave something out.
std::vector<OpExample> MoreExamples(const std::string& op);

/// Functions of operators whose arguments are not drawn from one range.
std::vector<std::pair<Function, Options>> MoreFunctions(const std::string& op);

}  // namespace collage::conformance
