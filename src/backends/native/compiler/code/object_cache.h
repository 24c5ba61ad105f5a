// object_cache.h: machine code that was made before.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace collage::native {

/// The object that `make` makes of `made_from`, which says all that it depends on but this toolchain's code: one that
/// this process has made, or that lies in the user's cache ($COLLAGE_KERNEL_CACHE, a folder, else
/// ~/.cache/collage/kernels; none if that variable is empty), else a new one, which is kept in both. Passes on what
/// `make` throws.
std::vector<std::byte> FindOrMakeObject(const std::string& made_from,
                                        const std::function<std::vector<std::byte>()>& make);

}  // namespace collage::native
