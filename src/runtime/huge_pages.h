// huge_pages.h: large memory with few misses of the address translation.
#pragma once

#include <cstddef>
#include <memory>

namespace collage {

inline constexpr size_t kHugePage = size_t{2} << 20;

/// `bytes`, rounded up to huge pages, of zeros that begin at such a page and come from the system: of as much memory of
/// the heap's, less lay in huge pages, in a process that had compiled. What is never written takes up no memory. Null
/// when there is none.
std::shared_ptr<std::byte> AllocateHugePages(size_t bytes);

}  // namespace collage
