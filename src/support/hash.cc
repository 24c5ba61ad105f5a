// hash.cc: xxHash, whose header is all of it: there is no library to ship.
#include "support/hash.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>
#include <zlib.h>

#include <algorithm>

namespace collage {
namespace {

XXH3_state_t* StateIn(std::byte* bytes) { return reinterpret_cast<XXH3_state_t*>(bytes); }

XXH128_hash_t DigestOf(const std::byte* bytes) {
  return XXH3_128bits_digest(reinterpret_cast<const XXH3_state_t*>(bytes));
}

}  // namespace

Hasher::Hasher() {
  static_assert(sizeof(XXH3_state_t) <= kStateBytes && alignof(XXH3_state_t) <= kStateAlignment);
  XXH3_128bits_reset(StateIn(state_.data()));
}

void Hasher::Add(const void* data, size_t size) { XXH3_128bits_update(StateIn(state_.data()), data, size); }

uint64_t Hasher::low() const { return DigestOf(state_.data()).low64; }

std::string Hasher::Hex() const {
  const XXH128_hash_t digest = DigestOf(state_.data());
  return fmt::format("{:016x}{:016x}", digest.high64, digest.low64);
}

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
