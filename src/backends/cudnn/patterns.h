// patterns.h: cuDNN's pattern table.
#pragma once

#include <vector>

#include "backends/cudnn/describe.h"
#include "collage/target/toolchain.h"

namespace collage::cudnn {

/// Longest chains first.
std::vector<PatternTableEntry> Patterns(Precision precision);

}  // namespace collage::cudnn
