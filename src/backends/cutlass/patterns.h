// patterns.h: CUTLASS's pattern table.
#pragma once

#include <vector>

#include "backends/cutlass/describe.h"
#include "collage/target/toolchain.h"

namespace collage::cutlass {

/// Longest chains first.
std::vector<PatternTableEntry> Patterns(Precision precision);

}  // namespace collage::cutlass
