// hash.cc: a 128-bit multiply-and-mix hash, eight bytes a step.
#include "support/hash.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace collage {
namespace {

uint64_t Mix(uint64_t x, uint64_t y) {
  const auto product = static_cast<unsigned __int128>(x) * y;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

}  // namespace

void Hasher::Add(const void* data, size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  while (size > 0) {
    uint64_t word = 0;
    const size_t count = std::min<size_t>(size, 8);
    std::memcpy(&word, bytes, count);
    a_ = Mix(a_ ^ word, 0x9e3779b97f4a7c15u ^ count);
    b_ = Mix(b_ ^ std::rotl(word, 32), 0xd1b54a32d192ed03u + a_);
    bytes += count;
    size -= count;
  }
}

std::string Hasher::Hex() const { return fmt::format("{:016x}{:016x}", a_, b_); }

std::string HexDigest(std::string_view text) {
  Hasher hasher;
  hasher.Add(text);
  return hasher.Hex();
}

uint32_t Crc32(const void* data, size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  auto crc = static_cast<uint32_t>(crc32(0, nullptr, 0));
  constexpr size_t kPiece = 1u << 30;
  while (size > 0) {
    const size_t count = std::min(size, kPiece);
    crc = static_cast<uint32_t>(crc32(crc, bytes, static_cast<uInt>(count)));
    bytes += count;
    size -= count;
  }
  return crc;
}

}  // namespace collage
