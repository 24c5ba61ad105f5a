// installation.h: what Collage has and keeps on this machine.
#pragma once

#include <string>
#include <vector>

#include "doctor/finding.h"

namespace collage {

/// Examines toolchains, the tuning database at `database`, the cache of machine code and the folder of temporary files.
/// Creates nothing.
std::vector<Finding> ExamineInstallation(const std::string& database);

}  // namespace collage
