// write_executable.cc: a file beside the output, which then takes the output's name.
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

int64_t WriteExecutable(const std::filesystem::path& output,
                        const std::function<Result<void>(const std::filesystem::path& file)>& save,
                        const std::function<void(const std::filesystem::path& file)>& on_written) {
  const PendingFile pending(output);
  const Result<void> saved = save(pending.path());
  if (!saved.ok()) throw Error(ErrorCategory::kResource, saved.reason().text, output.string());
  if (on_written) on_written(pending.path());
  const auto bytes = static_cast<int64_t>(std::filesystem::file_size(pending.path()));
  pending.Commit();
  return bytes;
}

}  // namespace collage
