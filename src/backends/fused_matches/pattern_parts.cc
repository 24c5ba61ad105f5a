// pattern_parts.cc: texts with holes.
#include "backends/fused_matches/pattern_parts.h"

namespace collage::matches {

std::string Around(const Part& part, std::string_view inner) {
  constexpr std::string_view kHole = "{0}";
  std::string result;
  for (std::string_view rest = part.text; !rest.empty();) {
    const size_t hole = rest.find(kHole);
    result += rest.substr(0, hole);
    if (hole == std::string_view::npos) break;
    result += inner;
    rest.remove_prefix(hole + kHole.size());
  }
  return result;
}

}  // namespace collage::matches
