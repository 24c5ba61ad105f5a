// metadata.h: the section behind a module's text that holds the values of its constants.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collage/ir/expr.h"

namespace collage {

/// JSON: `{"relay.Constant": [{"dtype": …, "shape": […], "data": base64 of the row-major little-endian elements}, …]}`.
std::string WriteMetadata(const std::vector<Constant>& constants);

/// The constants of a section that WriteMetadata wrote. Throws kInput saying which entry is wrong and how.
std::vector<Constant> ReadMetadata(std::string_view json);

}  // namespace collage
