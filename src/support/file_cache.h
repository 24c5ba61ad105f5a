// file_cache.h: contents that are found again, by this process or another one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace collage {

/// Returns the folder for files that can be made again: $XDG_CACHE_HOME/collage, else ~/.cache/collage.
std::filesystem::path UserCacheFolder();

/// Contents by name, as files of a folder that several processes may share. A cache never fails: what cannot be read,
/// written or trusted is not there.
class FileCache {
 public:
  /// An empty `folder` keeps nothing. Above `max_bytes`, the least recently used entries are removed.
  FileCache(std::filesystem::path folder, int64_t max_bytes);

  /// `name`: letters and digits.
  std::optional<std::string> Find(const std::string& name) const;
  void Put(const std::string& name, std::string_view content);

 private:
  void MakeRoom() const;

  std::filesystem::path folder_;
  int64_t max_bytes_;
  std::mutex mutex_;
  int64_t unseen_bytes_;  ///< written since the folder was looked through; guarded by mutex_
};

/// Returns the folder that $COLLAGE_KERNEL_CACHE names, else ~/.cache/collage/kernels; empty if that variable is empty.
std::filesystem::path KernelCacheFolder();

/// Machine code that was made before, in that folder; none is kept if it is empty. Toolchains share it: names are
/// digests of all that code depends on.
FileCache& KernelCache();

}  // namespace collage
