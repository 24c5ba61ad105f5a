// tile.h: values of a kernel: numbers, addresses, and tensors of them.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "ttir.h"

namespace standin::ttir {

/// Floats are in `floats`, rounded to their type; integers and addresses in `integers`.
struct Tile {
  Type type;
  std::vector<float> floats;
  std::vector<int64_t> integers;

  size_t size() const { return IsFloat(type.element) ? floats.size() : integers.size(); }
};
using TilePtr = std::shared_ptr<const Tile>;

int64_t NumElements(const std::vector<int64_t>& shape);

/// Zeros.
Tile MakeTile(Type type);

/// The nearest number of the type.
float Rounded(float value, Element element);
/// The bits of an integer that the type has.
int64_t Wrapped(int64_t value, Element element);

/// The text of a constant, "dense<0.000000e+00>", "0xFF800000", "true", as a tile.
Tile ConstantOf(const std::string& text, const Type& type);

/// A tile of `shape` whose element at an index is that of `tile` at the index that `place` gives for it, counted in
/// row-major order.
template <typename Place>
Tile Gather(const Tile& tile, std::vector<int64_t> shape, Place place) {
  Tile made = MakeTile({tile.type.element, tile.type.pointee, std::move(shape)});
  const auto take = [&](auto& to, const auto& from) {
    for (size_t i = 0; i < to.size(); ++i) to[i] = from[static_cast<size_t>(place(static_cast<int64_t>(i)))];
  };
  if (IsFloat(tile.type.element)) {
    take(made.floats, tile.floats);
  } else {
    take(made.integers, tile.integers);
  }
  return made;
}

/// Element by element: `operation`, which computes no other. Throws Failure for one that is not known.
Tile Compute(const Operation& operation, const std::vector<TilePtr>& operands);

}  // namespace standin::ttir
