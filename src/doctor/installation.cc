// installation.cc: toolchains, tuning database and caches.
#include "doctor/installation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <filesystem>

#include "collage/compile.h"
#include "collage/support/error.h"
#include "cost/database/tuning_database.h"
#include "report/units.h"
#include "support/file_cache.h"

namespace collage {
namespace {

namespace fs = std::filesystem;
using State = Finding::State;

/// Space that a compilation needs for temporary files and what it writes, at least.
constexpr uintmax_t kLittleSpace = uintmax_t{2} << 30;

std::vector<Finding> Toolchains() {
  std::vector<std::string> here;
  std::vector<Finding> missing;
  for (const ToolchainReport& toolchain : ProbeToolchains()) {
    if (toolchain.available) {
      here.push_back(toolchain.name + " " + toolchain.version);
    } else if (toolchain.is_default) {
      missing.push_back({"toolchains", State::kProblem,
                         fmt::format("{} is not here: {}", toolchain.name, toolchain.reason), toolchain.hint});
    }
  }
  missing.insert(missing.begin(), Finding{"toolchains", State::kFine, fmt::format("{}", fmt::join(here, " · ")), ""});
  return missing;
}

Finding Database(const std::string& place) {
  if (!IsPostgresUrl(place) && !fs::exists(place)) {
    return {"tuning database", State::kNote, place + " is not there yet", "the first compilation creates it"};
  }
  try {
    TuningDatabase database = TuningDatabase::ForReading(place);
    const TuningStats stats = database.Stats();
    if (!IsPostgresUrl(place) && access(place.c_str(), W_OK) != 0) {
      return {"tuning database", State::kProblem, place + " can be read, but not written",
              "give another one with --database PATH, or make this one writable"};
    }
    return {"tuning database", State::kFine,
            fmt::format("{}: {} records, {}", place, stats.records, FormatBytes(static_cast<double>(stats.bytes))), ""};
  } catch (const Error& error) {
    return {"tuning database", State::kProblem, error.what(), error.hint()};
  }
}

/// `space`: whether files of a compilation go there.
Finding Folder(const char* subject, const fs::path& folder, bool space) {
  std::error_code failed;
  fs::path existing = folder;
  while (!existing.empty() && !fs::exists(existing, failed)) existing = existing.parent_path();
  const fs::space_info info = fs::space(existing.empty() ? "/" : existing, failed);
  std::string text = folder.string();
  if (!failed) text += fmt::format(": {} free", FormatBytes(static_cast<double>(info.available)));
  if (!failed && space && info.available < kLittleSpace) {
    return {subject, State::kProblem, text, "models of some size need more: make room, or choose another folder"};
  }
  return {subject, State::kFine, text, ""};
}

Finding KernelFolder() {
  const fs::path folder = KernelCacheFolder();
  if (folder.empty()) {
    return {"machine code", State::kNote, "none is kept: COLLAGE_KERNEL_CACHE is empty",
            "kernels are compiled again each time"};
  }
  Finding finding = Folder("machine code", folder, /*space=*/false);
  double bytes = 0;
  std::error_code failed;
  for (fs::directory_iterator entry(folder, failed); entry != fs::directory_iterator(); entry.increment(failed)) {
    std::error_code gone;
    const auto size = entry->file_size(gone);
    if (!gone) bytes += static_cast<double>(size);
  }
  finding.text += fmt::format(", {} kept", FormatBytes(bytes));
  return finding;
}

}  // namespace

std::vector<Finding> ExamineInstallation(const std::string& database) {
  std::vector<Finding> findings = Toolchains();
  findings.push_back(Database(database));
  findings.push_back(KernelFolder());
  std::error_code failed;
  const fs::path temporary = fs::temp_directory_path(failed);
  findings.push_back(failed ? Finding{"temporary files", State::kProblem,
                                      "there is no folder for them: " + failed.message(), "set TMPDIR"}
                            : Folder("temporary files", temporary, /*space=*/true));
  return findings;
}

}  // namespace collage
