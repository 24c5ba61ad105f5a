// winograd_tiles.cc: sizes of the tiles of a convolution, and numbers of tiles and positions as loops compute them.
#include "backends/native/compiler/convolution/winograd_tiles.h"

#include "backends/native/compiler/stages/loop_nest.h"

namespace collage::native {

WinogradTiles::WinogradTiles(const ConvolutionGeometry& conv, const PlainConvolution& sizes, const PerAxis& tile_sides)
    : transforms(TransformsOf(sizes, tile_sides)),
      positions(NumPositions(transforms)),
      tile(tile_sides),
      result(sizes.result),
      images(conv.result[0]),
      count(images),
      first_axis(kAxes - conv.rank) {
  std::vector<size_t> transformed;
  for (size_t a = 0; a < kAxes; ++a) {
    side[a] = transforms[a]->side();
    along[a] = (result[a] + tile[a] - 1) / tile[a];
    count *= along[a];
    if (side[a] > 1) transformed.push_back(a);
    if (a < first_axis) continue;
    length[a] = conv.data[2 + a - first_axis];
    pad[a] = conv.pad_before[a - first_axis];
  }
  across = transformed.back();
  down = transformed.size() > 1 ? transformed[transformed.size() - 2] : (across + 1) % kAxes;
  through = kAxes - across - down;
}

WinogradTiles::Place WinogradTiles::PlaceOf(Emitter& e, const I64& number) const {
  std::vector<int64_t> counts{images};
  counts.insert(counts.end(), along.begin(), along.end());
  const I64s parts = Delinearise(e, number, counts);
  Place place{parts[0], {}, {}};
  for (size_t a = 0; a < kAxes; ++a) {
    place.number[a] = parts[a + 1];
    place.first[a] = e.MulInt(parts[a + 1], tile[a]);
  }
  return place;
}

I64 WinogradTiles::PositionOf(Emitter& e, const I64& steps_through, const I64& steps_down,
                              const I64& steps_across) const {
  WinogradPoint point;
  point[through] = steps_through;
  point[down] = steps_down;
  point[across] = steps_across;
  return e.AddInt(e.MulInt(e.AddInt(e.MulInt(point[0], side[1]), point[1]), side[2]), point[2]);
}

I64 WinogradTiles::ResultsOf(Emitter& e, const Place& place, size_t axis) const {
  if (result[axis] % tile[axis] == 0) return e.Int(tile[axis]);
  return e.IntOp("minsi", e.Int(tile[axis]), e.IntOp("subi", e.Int(result[axis]), place.first[axis]));
}

Indices WinogradTiles::PixelAt(const I64& image, const I64& channel, const WinogradPoint& point, int64_t lanes) const {
  Indices at{{image, 0}, {channel, 1, {}, lanes}};
  for (size_t a = first_axis; a < kAxes; ++a) at.push_back({point[a], 0});
  return at;
}

}  // namespace collage::native
