// patterns.h: Triton's pattern table.
#pragma once

#include <vector>

#include "backends/triton/describe.h"
#include "collage/target/toolchain.h"

namespace collage::triton {

/// Longest chains first.
std::vector<PatternTableEntry> Patterns(Precision precision);

}  // namespace collage::triton
