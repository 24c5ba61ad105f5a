// object_cache.cc: two levels, both by a digest.
#include "backends/native/compiler/code/object_cache.h"

#include <cstring>
#include <mutex>
#include <unordered_map>

#include "support/file_cache.h"
#include "support/hash.h"
#include "toolchain_revisions.h"

namespace collage::native {
std::vector<std::byte> FindOrMakeObject(const std::string& made_from,
                                        const std::function<std::vector<std::byte>()>& make) {
  static std::mutex mutex;
  static auto* const objects = new std::unordered_map<std::string, std::vector<std::byte>>;
  const std::string key = HexDigest(std::string(revisions::native) + "\n" + made_from);
  {
    const std::lock_guard lock(mutex);
    if (auto known = objects->find(key); known != objects->end()) return known->second;
  }
  std::vector<std::byte> object;
  if (const std::optional<std::string> kept = KernelCache().Find(key)) {
    object.resize(kept->size());
    std::memcpy(object.data(), kept->data(), kept->size());
  } else {
    object = make();
    KernelCache().Put(key, {reinterpret_cast<const char*>(object.data()), object.size()});
  }
  const std::lock_guard lock(mutex);
  return objects->emplace(key, std::move(object)).first->second;
}

}  // namespace collage::native
