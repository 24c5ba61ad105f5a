// patterns.h: oneDNN's pattern table.
#pragma once

#include <vector>

#include "collage/target/toolchain.h"

namespace collage::dnnl_toolchain {

/// Longest chains first.
std::vector<PatternTableEntry> Patterns();

}  // namespace collage::dnnl_toolchain
