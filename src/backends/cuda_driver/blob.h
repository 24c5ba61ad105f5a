// blob.h: the blob of a kernel as a text and the bytes behind it: a length, that many bytes of text, and the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace collage::cuda_driver {

inline std::vector<std::byte> JoinBlob(std::string_view text, std::span<const std::byte> rest) {
  const uint64_t size = text.size();
  std::vector<std::byte> blob(sizeof size + text.size() + rest.size());
  std::memcpy(blob.data(), &size, sizeof size);
  std::memcpy(blob.data() + sizeof size, text.data(), text.size());
  if (!rest.empty()) std::memcpy(blob.data() + sizeof size + text.size(), rest.data(), rest.size());
  return blob;
}

/// Views into a blob.
struct BlobParts {
  std::string_view text;
  std::span<const std::byte> rest;
};

/// Nothing for what JoinBlob did not make.
inline std::optional<BlobParts> SplitBlob(std::span<const std::byte> blob) {
  uint64_t size = 0;
  if (blob.size() < sizeof size) return std::nullopt;
  std::memcpy(&size, blob.data(), sizeof size);
  blob = blob.subspan(sizeof size);
  if (size > blob.size()) return std::nullopt;
  return BlobParts{{reinterpret_cast<const char*>(blob.data()), size}, blob.subspan(size)};
}

}  // namespace collage::cuda_driver
