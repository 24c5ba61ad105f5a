// deflate.cc: zlib's format behind eight bytes of size.
#include "explain/deflate.h"

#include <zlib.h>

#include <cstdint>
#include <cstring>

#include "collage/support/error.h"

namespace collage {

std::vector<std::byte> Deflate(std::string_view text) {
  const uint64_t size = text.size();
  uLongf length = compressBound(text.size());
  std::vector<std::byte> bytes(sizeof size + length);
  std::memcpy(bytes.data(), &size, sizeof size);
  const int result = compress2(reinterpret_cast<Bytef*>(bytes.data() + sizeof size), &length,
                               reinterpret_cast<const Bytef*>(text.data()), text.size(), Z_BEST_COMPRESSION);
  COLLAGE_CHECK(result == Z_OK) << "zlib answers " << result;
  bytes.resize(sizeof size + length);
  return bytes;
}

std::optional<std::string> Inflate(std::span<const std::byte> bytes, size_t most) {
  uint64_t size = 0;
  if (bytes.size() < sizeof size) return std::nullopt;
  std::memcpy(&size, bytes.data(), sizeof size);
  if (size > most) return std::nullopt;
  std::string text(size, '\0');
  uLongf length = size;
  const int result = uncompress(reinterpret_cast<Bytef*>(text.data()), &length,
                                reinterpret_cast<const Bytef*>(bytes.data() + sizeof size), bytes.size() - sizeof size);
  if (result != Z_OK || length != size) return std::nullopt;
  return text;
}

}  // namespace collage
