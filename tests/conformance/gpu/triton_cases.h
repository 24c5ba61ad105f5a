// triton_cases.h: matches of the rows of Triton's pattern table, some with odd sizes.
#pragma once

#include <vector>

#include "conformance/gpu/pattern_case.h"

namespace collage {

/// At least one for each row, for the floating types; for int8 products.
std::vector<PatternCase> TritonCases(DataType dtype);

/// As TritonCases, with fewer functions behind products: in float32 one product has all, in other types few.
std::vector<PatternCase> TritonCasesInShort(DataType dtype);

}  // namespace collage
