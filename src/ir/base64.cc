// base64.cc: three bytes are four digits.
#include "ir/base64.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace collage {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string ToBase64(std::string_view bytes) {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(bytes[i])); };
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t rest = std::min<size_t>(3, bytes.size() - i);
    uint32_t bits = byte(i) << 16;
    if (rest > 1) bits |= byte(i + 1) << 8;
    if (rest > 2) bits |= byte(i + 2);
    for (size_t digit = 0; digit < 4; ++digit) {
      text += digit <= rest ? kDigits[bits >> (18 - 6 * digit) & 63] : '=';
    }
  }
  return text;
}

std::optional<std::string> FromBase64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::array<int, 256> value;
  value.fill(-1);
  for (size_t i = 0; i < kDigits.size(); ++i) value[static_cast<unsigned char>(kDigits[i])] = static_cast<int>(i);
  size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  const size_t size = text.size() / 4 * 3 - padding;
  std::string bytes;
  bytes.reserve(size);
  for (size_t from = 0; from < text.size(); from += 4) {
    const size_t rest = std::min<size_t>(3, size - bytes.size());
    uint32_t bits = 0;
    for (size_t digit = 0; digit < 4; ++digit) {
      const int six = digit <= rest ? value[static_cast<unsigned char>(text[from + digit])] : 0;
      if (six < 0) return std::nullopt;
      bits |= static_cast<uint32_t>(six) << (18 - 6 * digit);
    }
    for (size_t i = 0; i < rest; ++i) bytes += static_cast<char>(bits >> (16 - 8 * i) & 255);
  }
  return bytes;
}

}  // namespace collage
