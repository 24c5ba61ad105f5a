// executable_state.h: what handles of one executable share.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "collage/runtime/executable.h"

namespace collage {

struct Executable::State {
  ExecutionPlan plan;
  std::vector<std::span<const std::byte>> blobs;
  std::shared_ptr<void> file;  ///< what holds the file's bytes; null for one made in memory
};

}  // namespace collage
