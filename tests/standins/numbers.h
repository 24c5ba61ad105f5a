// numbers.h: floats of tensor cores, for stand-ins.
#pragma once

#include <bit>
#include <cstdint>

namespace standin {

/// The nearest number with ten bits behind the point; ties go away from 0.
inline float RoundToTf32(float value) {
  return std::bit_cast<float>((std::bit_cast<uint32_t>(value) + 0x1000) & ~0x1FFFU);
}

}  // namespace standin
