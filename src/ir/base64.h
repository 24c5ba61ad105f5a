// base64.h: bytes as text (RFC 4648, section 4).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace collage {

std::string ToBase64(std::string_view bytes);
/// Nothing when `text` is not base64, with its padding.
std::optional<std::string> FromBase64(std::string_view text);

}  // namespace collage
