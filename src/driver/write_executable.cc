// write_executable.cc: the worker serialises into a file beside the output, which then takes the output's name.
#include "driver/write_executable.h"

#include <fmt/format.h>
#include <unistd.h>

#include "collage/support/error.h"
#include "support/interruption.h"

namespace collage {
namespace {

/// A file that is removed unless it is committed to its place.
class PendingFile {
 public:
  explicit PendingFile(const std::filesystem::path& place)
      : place_(place), path_(place.string() + fmt::format(".{}.pending", getpid())), noted_(path_) {}
  ~PendingFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void Commit() const {
    std::error_code failed;
    std::filesystem::rename(path_, place_, failed);
    if (failed) throw Error(ErrorCategory::kResource, "cannot rename: " + failed.message(), place_.string());
  }

 private:
  std::filesystem::path place_;
  std::filesystem::path path_;
  NotedTemporary noted_;
};

}  // namespace

int64_t WriteExecutable(BuiltExecutable& executable, const std::filesystem::path& output) {
  const PendingFile pending(output);
  const Result<void> serialised = executable.SerialiseTo(pending.path());
  if (!serialised.ok()) throw Error(ErrorCategory::kResource, serialised.reason().text, output.string());
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(pending.path()));
  pending.Commit();
  return bytes;
}

}  // namespace collage
