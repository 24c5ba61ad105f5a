// executable_state.h: what handles of one executable share.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "collage/runtime/executable.h"

namespace collage {

struct Executable::State {
  ExecutionPlan plan;
  std::vector<std::span<const std::byte>> blobs;  ///< the code alone
  std::shared_ptr<void> file;                     ///< owner of the file's bytes; null for one made in memory
  std::string name;                               ///< the file's name
  std::vector<uint64_t> constant_checksums;       ///< as the file states; empty for one made in memory

  /// Throws kCorrupt, naming file and constant, unless the bytes of constant `index` are those that were written. They
  /// are read the first time that somebody asks. Thread-safe.
  void CheckConstant(size_t index) const;

 private:
  mutable std::mutex mutex_;
  mutable std::set<const void*> right_;  ///< addresses of constants that were found right
};

}  // namespace collage
