// deflate.h: texts made small, as zlib does.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace collage {

/// Returns `text` deflated, its size before it.
std::vector<std::byte> Deflate(std::string_view text);

/// Returns the text that Deflate made small; nothing if the bytes are not its work, or the text is longer than `most`.
std::optional<std::string> Inflate(std::span<const std::byte> bytes, size_t most);

}  // namespace collage
