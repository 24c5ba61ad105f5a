// object_cache.cc: two levels, both by a digest.
#include "backends/native/compiler/code/object_cache.h"

#include <cstring>
#include <mutex>
#include <unordered_map>

#include "support/environment.h"
#include "support/file_cache.h"
#include "support/hash.h"
#include "toolchain_revisions.h"

namespace collage::native {
namespace {

constexpr int64_t kMaxBytes = int64_t{512} << 20;

std::filesystem::path CacheFolder() {
  const std::optional<std::string> chosen = GetEnvironment("COLLAGE_KERNEL_CACHE");
  return chosen ? std::filesystem::path(*chosen) : UserCacheFolder() / "kernels";
}

}  // namespace

std::vector<std::byte> FindOrMakeObject(const std::string& made_from,
                                        const std::function<std::vector<std::byte>()>& make) {
  static std::mutex mutex;
  static auto* const objects = new std::unordered_map<std::string, std::vector<std::byte>>;
  static auto* const files = new FileCache(CacheFolder(), kMaxBytes);
  const std::string key = HexDigest(std::string(revisions::native) + "\n" + made_from);
  {
    const std::lock_guard lock(mutex);
    if (auto known = objects->find(key); known != objects->end()) return known->second;
  }
  std::vector<std::byte> object;
  if (const std::optional<std::string> kept = files->Find(key)) {
    object.resize(kept->size());
    std::memcpy(object.data(), kept->data(), kept->size());
  } else {
    object = make();
    files->Put(key, {reinterpret_cast<const char*>(object.data()), object.size()});
  }
  const std::lock_guard lock(mutex);
  return objects->emplace(key, std::move(object)).first->second;
}

}  // namespace collage::native
