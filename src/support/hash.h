// hash.h: digests for keys and checksums: XXH3 of 128 bits. Not cryptographic.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace collage {

/// 128 bits, fed piece by piece. Texts are fed with their sizes, so that their limits count.
class Hasher {
 public:
  Hasher();
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;

  void Add(const void* data, size_t size);
  void Add(std::string_view text) {
    AddInt(static_cast<int64_t>(text.size()));
    Add(text.data(), text.size());
  }
  void AddInt(int64_t value) { Add(&value, sizeof value); }
  /// The lower half.
  uint64_t low() const;
  /// 32 hexadecimal digits.
  std::string Hex() const;

 private:
  // XXH3_state_t, in place: its header stays out of ours.
  static constexpr size_t kStateBytes = 576;
  static constexpr size_t kStateAlignment = 64;
  alignas(kStateAlignment) std::array<std::byte, kStateBytes> state_;
};

/// The digest of one text.
std::string HexDigest(std::string_view text);

/// CRC-32 as zlib computes it.
uint32_t Crc32(const void* data, size_t size);

}  // namespace collage
