// indices_of.h: indices written as plain numbers.
#pragma once

#include <vector>

#include "search/indices.h"

namespace collage::testing_search {

template <class Index>
std::vector<Index> IndicesOf(const std::vector<int>& numbers) {
  std::vector<Index> indices;
  for (int number : numbers) indices.push_back(Index(number));
  return indices;
}

inline std::vector<Position> Positions(const std::vector<int>& numbers) { return IndicesOf<Position>(numbers); }

}  // namespace collage::testing_search
