// position_lists.h: ascending lists of positions that share their ends, each list once.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "search/indices.h"
#include "search/number_table.h"

namespace collage {

/// Equal lists have equal numbers, so that sets of covered positions are compared in no time, and a candidate of
/// thousands of positions costs a state no more than a number. 0 is the empty list.
class PositionLists {
 public:
  /// Adds positions behind `from` of an ascending list.
  int Of(const std::vector<Position>& positions, size_t from) {
    int list = 0;
    for (size_t i = positions.size(); i > from; --i) list = Cons(positions[i - 1], list);
    return list;
  }
  Position First(int list) const { return cells_[list].first; }
  int Rest(int list) const { return cells_[list].rest; }

  /// Whether `position` is in the list. Linear in what is before it.
  bool Contains(int list, Position position) const {
    while (list != 0 && First(list) < position) list = Rest(list);
    return list != 0 && First(list) == position;
  }

  bool Intersect(int a, int b) const {
    while (a != 0 && b != 0) {
      if (First(a) == First(b)) return true;
      int& lesser = First(a) < First(b) ? a : b;
      lesser = Rest(lesser);
    }
    return false;
  }

  /// Returns the union of two lists without a common position. Linear in the positions before the end of the shorter
  /// one.
  int Union(int a, int b) {
    taken_.clear();
    while (a != 0 && b != 0) {
      if (First(b) < First(a)) std::swap(a, b);
      taken_.push_back(First(a));
      a = Rest(a);
    }
    int list = a != 0 ? a : b;
    for (size_t i = taken_.size(); i > 0; --i) list = Cons(taken_[i - 1], list);
    return list;
  }

  /// Cells are numbered from 0 to here; each list's rest has a lesser number.
  size_t size() const { return cells_.size(); }

 private:
  struct Cell {
    Position first;
    int rest;
  };

  int Cons(Position first, int rest) {
    const uint64_t key =
        static_cast<uint64_t>(static_cast<uint32_t>(first.number())) << 32 | static_cast<uint32_t>(rest);
    const auto is_equal = [&](int list) { return First(list) == first && Rest(list) == rest; };
    const auto [list, is_new] = numbers_.Emplace(key, static_cast<int>(cells_.size()), is_equal);
    if (is_new) cells_.push_back({first, rest});
    return list;
  }

  std::vector<Cell> cells_{{Position(-1), 0}};
  NumberTable numbers_;
  std::vector<Position> taken_;
};

}  // namespace collage
