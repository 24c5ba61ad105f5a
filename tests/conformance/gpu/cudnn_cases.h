// cudnn_cases.h: matches of the rows of cuDNN's pattern table, some with odd sizes.
#pragma once

#include <vector>

#include "conformance/gpu/pattern_case.h"

namespace collage {

/// At least one for each row.
std::vector<PatternCase> CudnnCases(DataType dtype);

}  // namespace collage
