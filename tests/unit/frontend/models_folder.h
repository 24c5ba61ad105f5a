// models_folder.h: where the standard models are, when they have been made.
#pragma once

#include <cstdlib>
#include <filesystem>

namespace collage {

inline std::filesystem::path ModelsFolder() {
  if (const char* folder = std::getenv("COLLAGE_MODELS")) return folder;
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home == nullptr ? "." : home) / ".cache/collage/models";
}

}  // namespace collage
