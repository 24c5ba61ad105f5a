// cutlass_cases.h: matches of the rows of CUTLASS's pattern table, some with odd sizes.
#pragma once

#include <vector>

#include "conformance/gpu/pattern_case.h"

namespace collage {

/// At least one for each row, for the floating types; for int8 some.
std::vector<PatternCase> CutlassCases(DataType dtype);

}  // namespace collage
