// quantised_patterns.h: quantised operators that are one with the conversions of what they read.
#pragma once

#include <string>
#include <vector>

namespace collage::native {

/// Patterns that fusion by operator kinds cannot join, since nothing precedes an anchor: products and pools of 8-bit
/// integers with their conversion to floats (qnn.dequantize), or to 32-bit integers less a zero point.
std::vector<std::string> QuantisedPatterns();

}  // namespace collage::native
