// tensor_cores.cc: gathers both matrices from the threads, and multiplies them element by element.
#include "tensor_cores.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

#include "support/numbers.h"

namespace standin {
namespace {

using collage::cuda_driver::EmulatedProduct;

constexpr uint32_t kRows = 16, kColumns = 8, kWords = 8;

/// Numbers in a word.
uint32_t NumbersOf(EmulatedProduct product) {
  return product == EmulatedProduct::kTf32 ? 1 : product == EmulatedProduct::kBytes ? 4 : 2;
}

/// Number `i` of a word of floats.
float FloatOf(EmulatedProduct product, uint32_t word, uint32_t i) {
  constexpr uint32_t kTf32Bits = ~uint32_t{0x1FFF};
  if (product == EmulatedProduct::kTf32) return std::bit_cast<float>(word & kTf32Bits);
  const auto half = static_cast<uint16_t>(word >> 16 * i);
  return product == EmulatedProduct::kBFloat16 ? collage::BFloat16ToFloat(half) : collage::HalfToFloat(half);
}

uint32_t AddFloats(EmulatedProduct product, uint32_t a, uint32_t b, uint32_t sum) {
  auto result = std::bit_cast<float>(sum);
  for (uint32_t i = 0; i < NumbersOf(product); ++i) result += FloatOf(product, a, i) * FloatOf(product, b, i);
  return std::bit_cast<uint32_t>(result);
}

uint32_t AddBytes(uint32_t a, uint32_t b, uint32_t sum) {
  for (uint32_t i = 0; i < 4; ++i) {
    const int32_t left = static_cast<uint8_t>(a >> 8 * i);
    const int32_t right = static_cast<int8_t>(b >> 8 * i);
    sum += static_cast<uint32_t>(left * right);
  }
  return sum;
}

}  // namespace

void MultiplyBlocks(EmulatedProduct product, const std::array<uint32_t*, 32>& words) {
  uint32_t a[kRows][kWords], b[kWords][kColumns];
  for (uint32_t lane = 0; lane < words.size(); ++lane) {
    const uint32_t g = lane / 4, t = lane % 4;
    a[g][t] = words[lane][0];
    a[g + 8][t] = words[lane][1];
    a[g][t + 4] = words[lane][2];
    a[g + 8][t + 4] = words[lane][3];
    b[t][g] = words[lane][4];
    b[t + 4][g] = words[lane][5];
  }
  for (uint32_t lane = 0; lane < words.size(); ++lane) {
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
      uint32_t& sum = words[lane][6 + i];
      for (uint32_t k = 0; k < kWords; ++k) {
        sum = product == EmulatedProduct::kBytes ? AddBytes(a[row][k], b[k][column], sum)
                                                 : AddFloats(product, a[row][k], b[k][column], sum);
      }
    }
  }
}

void MultiplyGroup(const GroupProduct& group, const std::byte* matrix, const std::array<uint32_t*, 128>& words) {
  constexpr uint32_t kLanes = 32, kSums = 4;
  const uint32_t num_sums = group.columns / kColumns * kSums;
  // Bits of an address, from that of 16 bytes on, are exchanged by those three further up.
  const uint64_t mask = group.depth * sizeof(uint32_t) - 1;
  const auto word_of = [&](uint32_t column, uint32_t k) {
    const uint64_t plain = (uint64_t{column} * group.depth + k) * sizeof(uint32_t);
    uint32_t word = 0;
    std::memcpy(&word, matrix + (plain ^ (plain >> 3 & mask & ~uint64_t{15})), sizeof word);
    return word;
  };
  for (uint32_t warp = 0; warp < words.size() / kLanes; ++warp) {
    for (uint32_t block = 0; block < group.columns / kColumns; ++block) {
      for (uint32_t step = 0; step < group.depth / kWords; ++step) {
        uint32_t operands[kLanes][10];
        std::array<uint32_t*, kLanes> pointers;
        for (uint32_t lane = 0; lane < kLanes; ++lane) {
          uint32_t* own = words[warp * kLanes + lane];
          const uint32_t column = block * kColumns + lane / 4, k = step * kWords + lane % 4;
          std::copy_n(own + num_sums + step * 4, 4, operands[lane]);
          operands[lane][4] = word_of(column, k);
          operands[lane][5] = word_of(column, k + 4);
          std::copy_n(own + block * kSums, kSums, operands[lane] + 6);
          pointers[lane] = operands[lane];
        }
        MultiplyBlocks(group.product, pointers);
        for (uint32_t lane = 0; lane < kLanes; ++lane) {
          std::copy_n(operands[lane] + 6, kSums, words[warp * kLanes + lane] + block * kSums);
        }
      }
    }
  }
}

void LoadMatrices(const std::array<const void*, 32>& rows, const std::array<uint32_t*, 32>& words) {
  for (uint32_t lane = 0; lane < words.size(); ++lane) {
    for (uint32_t i = 0; i < 4; ++i) {
      const auto* row = static_cast<const std::byte*>(rows[8 * i + lane / 4]);
      std::memcpy(&words[lane][i], row + lane % 4 * sizeof(uint32_t), sizeof(uint32_t));
    }
  }
}

}  // namespace standin
