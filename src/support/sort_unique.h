// sort_unique.h: lists that are sets.
#pragma once

#include <algorithm>
#include <vector>

namespace collage {

/// Sorts a list, ascending, and keeps each element once.
template <typename T>
void SortUnique(std::vector<T>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

}  // namespace collage
