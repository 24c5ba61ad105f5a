// expression_text.h: whether Relay text is a module's or an expression's.
#pragma once

#include <string_view>

namespace collage {

/// Whether a text is to be read by `ParseExpr`, not by `ParseModule`: behind comments and headers it has something that
/// begins no definition.
bool IsExpressionText(std::string_view text);

}  // namespace collage
