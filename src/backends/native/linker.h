// linker.h: the linker of kernels in a bundle, where the system has none.
#pragma once

namespace collage::native {

/// Its name beside Collage's libraries.
inline constexpr const char* kBundledLinker = "collage_ld";

}  // namespace collage::native
