// process_memory.h: the memory of this process, as the system counts it.
#pragma once

#include <cstdint>
#include <optional>

namespace collage {

/// Bytes of memory that this process had at most; nothing where the system does not say.
std::optional<int64_t> PeakBytes();
/// Bytes of memory that it has now.
std::optional<int64_t> ResidentBytes();

}  // namespace collage
