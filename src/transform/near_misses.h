// near_misses.h: hints for names that the user mistyped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace collage {

/// "did you mean 'a', 'b'?", or nothing when no name is close to `name`.
std::string DidYouMean(std::string_view name, const std::vector<std::string>& names);

}  // namespace collage
