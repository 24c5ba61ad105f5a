// checksum.h: what our own files carry to find out that they are damaged.
#pragma once

#include <cstddef>
#include <cstdint>

namespace collage {

/// 64 bits that change when any byte does: XXH3, which reads as fast as memory does. Not cryptographic.
uint64_t Checksum(const void* data, size_t size);

}  // namespace collage
