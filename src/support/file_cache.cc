// file_cache.cc: each file ends with a checksum of what is before it, and appears whole under its name.
#include "support/file_cache.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <vector>

#include "collage/support/error.h"
#include "support/environment.h"
#include "support/file.h"
#include "support/hash.h"

namespace collage {

namespace fs = std::filesystem;

fs::path UserCacheFolder() {
  const std::string xdg = GetEnvironment("XDG_CACHE_HOME").value_or("");
  if (!xdg.empty()) return fs::path(xdg) / "collage";
  return fs::path(GetEnvironment("HOME").value_or(".")) / ".cache" / "collage";
}

FileCache::FileCache(fs::path folder, int64_t max_bytes)
    : folder_(std::move(folder)), max_bytes_(max_bytes), unseen_bytes_(max_bytes) {}

std::optional<std::string> FileCache::Find(const std::string& name) const {
  std::error_code ignored;
  const fs::path path = folder_ / name;
  if (folder_.empty() || !fs::is_regular_file(path, ignored)) return std::nullopt;
  std::string content;
  try {
    content = ReadFile(path);
  } catch (const Error&) {
    return std::nullopt;
  }
  uint32_t checksum = 0;
  const size_t size = content.size() - std::min(content.size(), sizeof checksum);
  if (size + sizeof checksum == content.size()) std::memcpy(&checksum, content.data() + size, sizeof checksum);
  if (size + sizeof checksum != content.size() || checksum != Crc32(content.data(), size)) {
    fs::remove(path, ignored);
    return std::nullopt;
  }
  content.resize(size);
  fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);
  return content;
}

void FileCache::Put(const std::string& name, std::string_view content) {
  if (folder_.empty()) return;
  std::error_code failed;
  if (fs::create_directories(folder_, failed)) fs::permissions(folder_, fs::perms::owner_all, failed);
  static std::atomic<int> counter{0};
  const fs::path part = folder_ / fmt::format("{}.{}.{}.part", name, getpid(), ++counter);
  const uint32_t checksum = Crc32(content.data(), content.size());
  std::string whole(content);
  whole.append(reinterpret_cast<const char*>(&checksum), sizeof checksum);
  try {
    WriteFile(part, whole);
    fs::rename(part, folder_ / name, failed);
  } catch (const Error&) {
    failed = std::make_error_code(std::errc::io_error);
  }
  if (failed) fs::remove(part, failed);
  const std::lock_guard lock(mutex_);
  unseen_bytes_ += static_cast<int64_t>(whole.size());
  if (unseen_bytes_ < max_bytes_ / 4) return;
  unseen_bytes_ = 0;
  MakeRoom();
}

void FileCache::MakeRoom() const {
  struct Kept {
    fs::file_time_type used;
    int64_t bytes;
    fs::path path;
  };
  std::vector<Kept> all;
  int64_t sum = 0;
  std::error_code ignored;
  for (fs::directory_iterator entry(folder_, ignored); entry != fs::directory_iterator(); entry.increment(ignored)) {
    std::error_code failed;  // what another process has removed
    const Kept kept{entry->last_write_time(failed), static_cast<int64_t>(entry->file_size(failed)), entry->path()};
    if (failed) continue;
    sum += kept.bytes;
    all.push_back(kept);
  }
  if (sum <= max_bytes_) return;
  std::ranges::sort(all, {}, &Kept::used);
  for (const Kept& kept : all) {
    if (sum <= max_bytes_ / 2) return;
    if (fs::remove(kept.path, ignored)) sum -= kept.bytes;
  }
}

fs::path KernelCacheFolder() {
  const std::optional<std::string> chosen = GetEnvironment("COLLAGE_KERNEL_CACHE");
  return chosen ? fs::path(*chosen) : UserCacheFolder() / "kernels";
}

FileCache& KernelCache() {
  constexpr int64_t kMaxBytes = int64_t{512} << 20;
  static auto* const cache = new FileCache(KernelCacheFolder(), kMaxBytes);
  return *cache;
}

}  // namespace collage
