// executable_state.h: what handles of one executable share.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "collage/runtime/executable.h"
#include "support/file.h"

namespace collage {

struct Executable::State {
  ExecutionPlan plan;
  std::vector<std::span<const std::byte>> blobs;
  std::shared_ptr<MappedFile> file;  ///< null for one made in memory
};

}  // namespace collage
