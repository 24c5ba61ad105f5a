// patterns.h: cuBLASLt's pattern table.
#pragma once

#include <vector>

#include "backends/cublas/product.h"
#include "collage/target/toolchain.h"

namespace collage::cublas {

/// Longest chains first.
std::vector<PatternTableEntry> Patterns(Precision precision);

}  // namespace collage::cublas
