// edit_distance.h: near misses for names that the user mistyped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace collage {

/// Levenshtein distance, case-insensitive.
int EditDistance(std::string_view a, std::string_view b);

/// Up to three of `names` that are close enough to `name` to be what was meant, best first.
std::vector<std::string> NearMisses(std::string_view name, const std::vector<std::string>& names);

/// "did you mean 'a', 'b'?" of those, or nothing.
std::string DidYouMean(std::string_view name, const std::vector<std::string>& names);

}  // namespace collage
