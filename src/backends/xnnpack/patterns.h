// patterns.h: XNNPACK's pattern table.
#pragma once

#include <vector>

#include "collage/target/toolchain.h"

namespace collage::xnnpack_toolchain {

/// Longest chains first.
std::vector<PatternTableEntry> Patterns();

}  // namespace collage::xnnpack_toolchain
