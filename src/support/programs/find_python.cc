// find_python.cc: see find_python.h.
#include "support/programs/find_python.h"

#include <filesystem>
#include <system_error>

#include "support/environment.h"

namespace collage {

std::string FindPython() {
  if (const auto chosen = GetEnvironment("COLLAGE_PYTHON")) return *chosen;
  const std::string built_with = COLLAGE_PYTHON_ENV "/bin/python";
  std::error_code ignored;
  return std::filesystem::exists(built_with, ignored) ? built_with : "python3";
}

}  // namespace collage
