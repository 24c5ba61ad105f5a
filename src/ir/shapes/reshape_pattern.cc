// reshape_pattern.cc: finds which sizes are copies, then writes the others.
#include "ir/shapes/reshape_pattern.h"

#include <algorithm>

namespace collage {
namespace {

constexpr int kNoCopy = -1;

/// result dimension → input dimension that reshape's `codes` copy there; kNoCopy for others.
std::vector<int> CopiesByCodes(size_t from, size_t to, const std::vector<int64_t>& codes) {
  std::vector<int> copies;
  int source = 0;
  for (size_t i = 0; i < codes.size(); ++i) {
    if (codes[i] == 0) {
      copies.push_back(source++);
    } else if (codes[i] == -2) {
      while (source < static_cast<int>(from)) copies.push_back(source++);
    } else if (codes[i] == -4) {
      copies.insert(copies.end(), 2, kNoCopy);
      ++source;
      i += 2;
    } else {
      copies.push_back(kNoCopy);
      source += codes[i] == -3 ? 2 : 1;
    }
  }
  copies.resize(to, kNoCopy);
  return copies;
}

/// result dimension → input dimension that it is a copy of, by `codes` or by its symbol. Numbers are no copies.
std::vector<int> CopiedDims(const std::vector<Dim>& from, const std::vector<Dim>& to,
                            const std::vector<int64_t>& codes) {
  std::vector<int> copies = CopiesByCodes(from.size(), to.size(), codes);
  for (size_t i = 0; i < to.size(); ++i) {
    if (!to[i].is_any()) {
      copies[i] = kNoCopy;
    } else if (i < from.size() && to[i].IsSame(from[i])) {
      copies[i] = static_cast<int>(i);
    } else if (copies[i] == kNoCopy) {
      const auto same = std::ranges::find_if(from, [&](const Dim& dim) { return dim.IsSame(to[i]); });
      if (same != from.end()) copies[i] = static_cast<int>(same - from.begin());
    }
  }
  return copies;
}

}  // namespace

bool ReshapePattern::needs_shape() const { return std::ranges::find(sizes, kFromShape) != sizes.end(); }

std::optional<ReshapePattern> FindReshapePattern(const std::vector<Dim>& from, const std::vector<Dim>& to,
                                                 const std::vector<int64_t>& codes) {
  ReshapePattern pattern{{}, CopiedDims(from, to, codes)};
  std::optional<size_t> first_moved;
  bool has_inferred = false;
  for (size_t i = 0; i < to.size(); ++i) {
    if (!to[i].is_any()) {
      pattern.sizes.push_back(to[i].size());
    } else if (pattern.dims[i] == static_cast<int>(i)) {
      pattern.sizes.push_back(0);
    } else if (pattern.dims[i] != kNoCopy) {
      if (!first_moved) first_moved = i;
      pattern.sizes.push_back(ReshapePattern::kFromShape);
    } else if (!has_inferred) {
      has_inferred = true;
      pattern.sizes.push_back(-1);
    } else {
      return std::nullopt;
    }
  }
  if (!has_inferred && first_moved) pattern.sizes[*first_moved] = -1;
  return pattern;
}

}  // namespace collage
