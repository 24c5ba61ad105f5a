// winograd_output.cc: products -> result. The depth of 3x3x3 taps is transformed first, through memory, the last two
// axes in registers; the epilogue is computed as results are stored. Tiles that reach beyond the result store only what
// is in it.
#include "backends/native/compiler/convolution/winograd_steps.h"
#include "backends/native/compiler/stages/epilogue.h"

namespace collage::native {

void WinogradOutput::Emit(const I64& first, const I64& count, const I64& part) {
  const int64_t channels = blocks_.channels_out;
  const int64_t whole = channels / blocks_.lanes * blocks_.lanes;
  const I64 from = e_.MulInt(FirstPanel(e_, blocks_, part), blocks_.width);
  const I64 to = FirstPanel(e_, blocks_, e_.Plus(part, 1));
  const I64 end = e_.IntOp("minsi", e_.MulInt(to, blocks_.width), e_.Int(whole));
  e_.For(e_.Int(0), count, 1, [&](const I64& tile) {
    const Place place = tiles_.PlaceOf(e_, e_.AddInt(first, tile));
    if (whole > 0) e_.For(from, end, blocks_.lanes, [&](const I64& channel) { StoreTile(tile, place, channel); });
    if (whole == channels) return;
    e_.If(e_.IntCompare("eq", to, e_.Int(blocks_.panels)),
          [&] { e_.MaskedRest(channels, [&](const I64& channel) { StoreTile(tile, place, channel); }); });
  });
}

void WinogradOutput::StoreTile(const I64& tile, const Place& place, const I64& channel) {
  const int64_t depth = tiles_.side[tiles_.through];
  const int64_t down_side = tiles_.side[tiles_.down];
  const int64_t across_side = tiles_.side[tiles_.across];
  const auto product = [&](const I64& through, const I64& down, const I64& across) {
    return ReadVector(e_, memory_.products, {slot_, tiles_.PositionOf(e_, through, down, across), tile, channel});
  };
  if (depth == 1) return StorePlane(place, channel, e_.Int(0), product);
  ForEachBelow(e_, down_side * across_side, [&](const I64& number) {
    const I64s at = Delinearise(e_, number, {down_side, across_side});
    std::vector<Value> line;
    for (int64_t k = 0; k < depth; ++k) line.push_back(product(e_.Int(k), at[0], at[1]));
    const std::vector<Value> results = matrices_.Columns(tiles_.transforms[tiles_.through]->result, line);
    for (size_t k = 0; k < results.size(); ++k) {
      const I64 through = e_.Int(static_cast<int64_t>(k));
      WriteVector(e_, memory_.planes, {slot_, through, at[0], at[1], e_.Int(0)}, results[k]);
    }
  });
  e_.For(e_.Int(0), tiles_.ResultsOf(e_, place, tiles_.through), 1, [&](const I64& through) {
    StorePlane(place, channel, through, [&](const I64& k, const I64& down, const I64& across) {
      return ReadVector(e_, memory_.planes, {slot_, k, down, across, e_.Int(0)});
    });
  });
}

void WinogradOutput::StorePlane(const Place& place, const I64& channel, const I64& through, const Loader& load) {
  const int64_t down_side = tiles_.side[tiles_.down];
  const int64_t across_side = tiles_.side[tiles_.across];
  const I64 zero = e_.Int(0);
  for (int64_t j = 0; j < across_side && down_side > 1; ++j) {
    std::vector<Value> column;
    for (int64_t i = 0; i < down_side; ++i) column.push_back(load(through, e_.Int(i), e_.Int(j)));
    const std::vector<Value> partial = matrices_.Columns(tiles_.transforms[tiles_.down]->result, column);
    for (size_t i = 0; i < partial.size(); ++i) {
      WriteVector(e_, memory_.partial, {slot_, e_.Int(static_cast<int64_t>(i)), e_.Int(j), zero}, partial[i]);
    }
  }
  e_.For(zero, tiles_.ResultsOf(e_, place, tiles_.down), 1, [&](const I64& i) {
    std::vector<Value> row;
    for (int64_t j = 0; j < across_side; ++j) {
      const I64 column = e_.Int(j);
      row.push_back(down_side > 1 ? ReadVector(e_, memory_.partial, {slot_, i, column, zero})
                                  : load(through, i, column));
    }
    const std::vector<Value> results = matrices_.Columns(tiles_.transforms[tiles_.across]->result, row);
    WinogradPoint at;
    at[tiles_.through] = e_.AddInt(place.first[tiles_.through], through);
    at[tiles_.down] = e_.AddInt(place.first[tiles_.down], i);
    StoreRow(place, channel, at, results);
  });
}

void WinogradOutput::StoreRow(const Place& place, const I64& channel, WinogradPoint at,
                              const std::vector<Value>& results) {
  const size_t axis = tiles_.across;
  const auto store = [&](int64_t columns) {
    for (int64_t j = 0; j < columns; ++j) {
      at[axis] = e_.Plus(place.first[axis], j);
      StoreResult(state_, output_, tiles_.PixelAt(place.image, channel, at, blocks_.lanes),
                  results[static_cast<size_t>(j)]);
    }
  };
  const int64_t rest = tiles_.result[axis] % tiles_.tile[axis];
  if (rest == 0) return store(tiles_.tile[axis]);
  const I64 last = e_.Int(tiles_.along[axis] - 1);
  if (tiles_.along[axis] > 1) {
    e_.If(e_.IntCompare("slt", place.number[axis], last), [&] { store(tiles_.tile[axis]); });
  }
  e_.If(e_.IntCompare("eq", place.number[axis], last), [&] { store(rest); });
}

}  // namespace collage::native
