// checksum.cc: xxHash, whose header is all of it: there is no library to ship.
#include "support/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace collage {

uint64_t Checksum(const void* data, size_t size) { return XXH3_64bits(data, size); }

}  // namespace collage
