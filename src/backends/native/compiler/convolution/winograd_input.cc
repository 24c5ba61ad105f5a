// winograd_input.cc: data -> spectrum. The last two axes are transformed in registers, the depth of 3x3x3 taps behind
// them through memory. Tiles at the border look up the address of each pixel, which is that of zeros where there is
// none.
#include "backends/native/compiler/convolution/winograd_steps.h"

namespace collage::native {

void WinogradInput::Emit(const I64& first, const I64& count) {
  e_.For(e_.Int(0), count, 1, [&](const I64& tile) { EmitTile(tile, e_.AddInt(first, tile)); });
}

void WinogradInput::EmitTile(const I64& tile, const I64& number) {
  const WinogradTiles::Place place = tiles_.PlaceOf(e_, number);
  WinogradPoint from;
  I1 inside = e_.True();
  for (size_t a = 0; a < kAxes; ++a) {
    from[a] = e_.Plus(place.first[a], -tiles_.pad[a]);
    if (tiles_.IsAlwaysInside(a)) continue;
    inside = e_.And(inside, e_.And(e_.IntCompare("sge", from[a], e_.Int(0)),
                                   e_.IntCompare("sle", from[a], e_.Int(tiles_.length[a] - tiles_.side[a]))));
  }
  e_.If(inside, [&] {
    Transform(tile, [&](const WinogradPoint& at, const I64& channel) {
      const WinogradPoint point{e_.AddInt(from[0], at[0]), e_.AddInt(from[1], at[1]), e_.AddInt(from[2], at[2])};
      return e_.Load(memory_.data, tiles_.PixelAt(place.image, channel, point, blocks_.lanes));
    });
  });
  e_.If(e_.Not(inside), [&] {
    NotePixels(place.image, from);
    Transform(tile, [&](const WinogradPoint& at, const I64& channel) {
      const Ptr pixel{e_.Def(fmt::format("llvm.load {} : !llvm.ptr -> !llvm.ptr",
                                         e_.Address(memory_.pixels, Bases({slot_, at[0], at[1], at[2]}))))};
      const char* element = memory_.data.dtype == kFloat32 ? "f32" : "i16";
      return e_.LoadAt(e_.ElementAt(pixel, channel, element), memory_.data.dtype);
    });
  });
}

void WinogradInput::NotePixels(const I64& image, const WinogradPoint& from) {
  const PerAxis& side = tiles_.side;
  e_.For(e_.Int(0), e_.Int(side[0] * side[1] * side[2]), 1, [&](const I64& number) {
    const I64s parts = Delinearise(e_, number, {side.begin(), side.end()});
    const WinogradPoint point{e_.AddInt(from[0], parts[0]), e_.AddInt(from[1], parts[1]), e_.AddInt(from[2], parts[2])};
    I1 exists = e_.True();
    for (size_t a = 0; a < kAxes; ++a) {
      // Numbers below 0 are large without their sign.
      exists = e_.And(exists, e_.IntCompare("ult", point[a], e_.Int(tiles_.length[a])));
    }
    const Ptr pixel{e_.Def(fmt::format("arith.select {}, {}, {} : !llvm.ptr", exists,
                                       e_.Address(memory_.data, tiles_.PixelAt(image, e_.Int(0), point, blocks_.lanes)),
                                       e_.Address(memory_.zeros, Bases({e_.Int(0)}))))};
    e_.Line(fmt::format("llvm.store {}, {} : !llvm.ptr, !llvm.ptr", pixel,
                        e_.Address(memory_.pixels, Bases({slot_, parts[0], parts[1], parts[2]}))));
  });
}

void WinogradInput::Transform(const I64& tile, const Loader& load) {
  const int64_t depth = tiles_.side[tiles_.through];
  const int64_t down_side = tiles_.side[tiles_.down];
  const int64_t across_side = tiles_.side[tiles_.across];
  const auto store = [&](const I64& through, const I64& down, const I64& across, const I64& channel, const Value& v) {
    WriteSpectrum(e_, memory_, {slot_, tiles_.PositionOf(e_, through, down, across), tile, channel}, v);
  };
  e_.ForLanes(blocks_.channels_in, [&](const I64& channel) {
    ForEachBelow(e_, depth, [&](const I64& through) {
      TransformPlane(through, channel, load, [&](const I64& down, const I64& across, const Value& v) {
        if (depth == 1) return store(through, down, across, channel, v);
        WriteVector(e_, memory_.planes, {slot_, through, down, across, e_.Int(0)}, v);
      });
    });
    if (depth == 1) return;
    ForEachBelow(e_, down_side * across_side, [&](const I64& number) {
      const I64s at = Delinearise(e_, number, {down_side, across_side});
      std::vector<Value> line;
      for (int64_t k = 0; k < depth; ++k) {
        line.push_back(ReadVector(e_, memory_.planes, {slot_, e_.Int(k), at[0], at[1], e_.Int(0)}));
      }
      const std::vector<Value> whole = matrices_.Rows(tiles_.transforms[tiles_.through]->data, line);
      for (int64_t k = 0; k < depth; ++k) store(e_.Int(k), at[0], at[1], channel, whole[static_cast<size_t>(k)]);
    });
  });
}

void WinogradInput::TransformPlane(const I64& through, const I64& channel, const Loader& load,
                                   const std::function<void(const I64&, const I64&, const Value&)>& store) {
  const int64_t down_side = tiles_.side[tiles_.down];
  const int64_t across_side = tiles_.side[tiles_.across];
  std::vector<std::vector<Value>> partial;  // columns of B^T d
  for (int64_t j = 0; j < across_side; ++j) {
    std::vector<Value> column;
    for (int64_t i = 0; i < down_side; ++i) {
      WinogradPoint at;
      at[tiles_.through] = through;
      at[tiles_.down] = e_.Int(i);
      at[tiles_.across] = e_.Int(j);
      column.push_back(load(at, channel));
    }
    partial.push_back(matrices_.Rows(tiles_.transforms[tiles_.down]->data, column));
  }
  for (int64_t i = 0; i < down_side; ++i) {
    std::vector<Value> row;
    for (const std::vector<Value>& column : partial) row.push_back(column[static_cast<size_t>(i)]);
    const std::vector<Value> whole = matrices_.Rows(tiles_.transforms[tiles_.across]->data, row);
    for (int64_t j = 0; j < across_side; ++j) store(e_.Int(i), e_.Int(j), whole[static_cast<size_t>(j)]);
  }
}

}  // namespace collage::native
