// index_set.cc: text of index sets.
#include "dataflow/index_set.h"

namespace collage {

std::string IndexSet::ToString() const {
  const std::vector<int> members = Members();
  std::string text = "{";
  for (size_t i = 0; i < members.size();) {
    size_t last = i;
    while (last + 1 < members.size() && members[last + 1] == members[last] + 1) ++last;
    if (text.size() > 1) text += ",";
    text += std::to_string(members[i]);
    if (last >= i + 2) {
      text += ".." + std::to_string(members[last]);
      i = last + 1;
    } else {
      ++i;
    }
  }
  return text + "}";
}

}  // namespace collage
