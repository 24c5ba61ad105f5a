// file_kind.h: what a file is that is not what was wanted.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>

namespace collage {

struct FileKind {
  const char* name;  ///< "an ONNX model"
  const char* hint;  ///< "compile it first: …"
};

/// Returns the kind that the first bytes of a file show; nothing if they show none that is known here.
std::optional<FileKind> KindOf(std::span<const std::byte> begin);

/// Whether a file holds Relay text: by its suffix, `.relay`, or else by what it begins with. False if it cannot be
/// read.
bool IsRelayText(const std::filesystem::path& file);

}  // namespace collage
