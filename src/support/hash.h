// hash.h: digests for keys and checksums. Not cryptographic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace collage {

/// 128 bits, fed piece by piece; the same bytes in other pieces give another digest.
class Hasher {
 public:
  void Add(const void* data, size_t size);
  void Add(std::string_view text) {
    AddInt(static_cast<int64_t>(text.size()));
    Add(text.data(), text.size());
  }
  void AddInt(int64_t value) { Add(&value, sizeof value); }
  uint64_t low() const { return a_; }
  /// 32 hexadecimal digits.
  std::string Hex() const;

 private:
  uint64_t a_ = 0x243f6a8885a308d3u;
  uint64_t b_ = 0x13198a2e03707344u;
};

/// The digest of one text.
std::string HexDigest(std::string_view text);

/// CRC-32 as zlib computes it.
uint32_t Crc32(const void* data, size_t size);

}  // namespace collage
