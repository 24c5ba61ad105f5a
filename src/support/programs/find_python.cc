// find_python.cc: see find_python.h.
#include "support/programs/find_python.h"

#include <filesystem>
#include <system_error>

#include "support/dynamic_library.h"
#include "support/environment.h"

namespace collage {

std::string FindPython() {
  if (const auto chosen = GetEnvironment("COLLAGE_PYTHON")) return *chosen;
  for (const std::filesystem::path& packages : PackageFolders()) {  // ENVIRONMENT/lib/python3.11/site-packages
    const std::filesystem::path python = packages.parent_path().parent_path().parent_path() / "bin/python";
    std::error_code ignored;
    if (std::filesystem::exists(python, ignored)) return python.string();
  }
  return "python3";
}

}  // namespace collage
