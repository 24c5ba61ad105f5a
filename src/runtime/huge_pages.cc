// huge_pages.cc: one page more than is needed is mapped, and what lies outside of the pages given back.
#include "runtime/huge_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace collage {

std::shared_ptr<std::byte> AllocateHugePages(size_t bytes) {
  if (bytes > std::numeric_limits<size_t>::max() - 2 * kHugePage) return nullptr;
  const size_t size = (std::max<size_t>(bytes, 1) + kHugePage - 1) / kHugePage * kHugePage;
  const size_t mapped = size + kHugePage;
  void* memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* begin = static_cast<std::byte*>(memory);
  const size_t before = (kHugePage - reinterpret_cast<uintptr_t>(begin) % kHugePage) % kHugePage;
  std::byte* pages = begin + before;
  if (before > 0) munmap(begin, before);
  if (mapped - before > size) munmap(pages + size, mapped - before - size);
  madvise(pages, size, MADV_HUGEPAGE);
  return {pages, [size](std::byte* freed) { munmap(freed, size); }};
}

}  // namespace collage
