// find_python.h: the Python that Collage runs where it needs one.
#pragma once

#include <string>

namespace collage {

/// Returns $COLLAGE_PYTHON, else the Python of the environment whose packages Collage looks into (`PackageFolders`),
/// else "python3", which is looked for in $PATH.
std::string FindPython();

}  // namespace collage
