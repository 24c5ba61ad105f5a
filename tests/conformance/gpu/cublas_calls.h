// cublas_calls.h: calls for the rows of cuBLASLt's pattern table, some with odd sizes.
#pragma once

#include <vector>

#include "conformance/quantised_calls.h"

namespace collage::conformance {

/// Products of float32, float16 or bfloat16, with all that may follow; at least one for each row of floats. Rows are
/// named without "cublas.".
std::vector<RowCall> CublasCalls(DataType dtype);

/// Products of 8-bit integers; at least one for each row of these.
std::vector<RowCall> CublasIntegerCalls();

}  // namespace collage::conformance
