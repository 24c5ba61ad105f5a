// huge_pages.h: large memory with few misses of the address translation.
#pragma once

#include <cstddef>
#include <memory>

namespace collage {

inline constexpr size_t kHugePage = size_t{2} << 20;

/// `bytes`, rounded up to huge pages, of zeros that begin at such a page. They come from the system, since of the
/// heap's memory only parts were found in huge pages. Pages that are never written take up no memory. Null if there is
/// no memory.
std::shared_ptr<std::byte> AllocateHugePages(size_t bytes);

}  // namespace collage
