// winograd.cc: a block of tiles at a time, the data's tiles are transformed (lanes run over channels), multiplied with
// the transformed taps, one product for each position within a tile, and transformed back; the epilogue is computed as
// results are stored. What is between the steps belongs to the thread that works on the block:
//
//     data [N, C, H, W] -> spectrum [position][tile][C] x taps [position][C][K] -> products [position][tile][K] ->
//     result
//
// The same for one, two and three axes: all have three here, of which those that a convolution lacks, and those of one
// tap, have tiles of one result, and nothing is transformed along them. Of the others the last two are transformed in
// registers; the depth of 3x3x3 taps goes before the result's and behind the data's, through memory.
//
// Of tiles at the border the address of each pixel is looked up, which is that of zeros where there is none; of tiles
// that reach beyond the result only what is in it is stored.
//
// In bfloat16 the factors of the products are rounded, the spectrum as it is stored and the transformed taps when they
// are packed, and multiplied in pairs of neighbouring channels (bf16_dot.h); all else is float32. Behind an odd
// number of channels are zeros.
#include "backends/native/compiler/convolution/winograd.h"

#include <algorithm>
#include <array>

#include "backends/native/compiler/contraction/bf16_dot.h"
#include "backends/native/compiler/emit/matrix_writer.h"
#include "backends/native/compiler/stages/epilogue.h"
#include "backends/native/compiler/stages/loop_nest.h"
#include "backends/native/compiler/stages/padded_data.h"
#include "backends/native/description/winograd_model.h"
#include "collage/support/error.h"

namespace collage::native {
namespace {

constexpr int64_t kLineFloats = 16;  // of a cache line

int64_t RoundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

/// A length of at least `floats` of an odd number of cache lines: runs that begin at multiples of it fall on different
/// sets of a cache.
int64_t OddLines(int64_t floats) { return (((floats + kLineFloats - 1) / kLineFloats) | 1) * kLineFloats; }

/// The algorithm that has such tiles; 0 where they are not the same along all axes.
int64_t AlgorithmOf(const PlainConvolution& sizes, const PerAxis& tile) {
  for (const int64_t algorithm : {Schedule::kWinograd2, Schedule::kWinograd4}) {
    if (tile == TilesTold(sizes, SideOf(algorithm))) return algorithm;
  }
  return 0;
}

class WinogradEmitter {
 public:
  WinogradEmitter(PartitionState& state, const CallNode& call, const ConvolutionGeometry& conv,
                  const PlainConvolution& sizes, const StageOutput& output, const WinogradPlan& plan, int slots)
      : state_(state),
        e_(state.emitter),
        matrices_(state.math()),
        call_(call),
        conv_(conv),
        sizes_(sizes),
        output_(output),
        plan_(plan),
        transforms_(TransformsOf(sizes, plan.tile)),
        positions_(NumPositions(transforms_)),
        lanes_(e_.lanes()),
        width_(PanelWidth(state, kFloat32)),
        panels_((conv.result[1] + width_ - 1) / width_),
        in_pairs_(sizes.in_bfloat16),
        depth_(in_pairs_ ? (conv.data[1] + 1) / 2 : conv.data[1]),
        slots_(slots) {
    tiles_ = conv.result[0];
    std::vector<size_t> transformed;
    for (size_t a = 0; a < kAxes; ++a) {
      side_[a] = transforms_[a]->side();
      tiles_along_[a] = (sizes.result[a] + plan.tile[a] - 1) / plan.tile[a];
      tiles_ *= tiles_along_[a];
      if (side_[a] > 1) transformed.push_back(a);
      if (a < FirstAxis()) continue;
      length_[a] = conv.data[2 + a - FirstAxis()];
      pad_[a] = conv.pad_before[a - FirstAxis()];
    }
    block_ = std::min(plan.block, RoundUp(tiles_, plan.rows));
    across_ = transformed.back();
    down_ = transformed.size() > 1 ? transformed[transformed.size() - 2] : (across_ + 1) % kAxes;
    through_ = kAxes - across_ - down_;
  }

  void Run(const Tensor& taps) {
    // What lies in memory in 16 bits is widened as it is read.
    const Buffer* own = state_.expressions.FindBuffer(call_.args()[0]);
    data_ = ChannelsLastData(state_, call_.args()[0], own == nullptr ? kFloat32 : own->dtype);
    taps_ = PackTaps(taps);
    const int64_t channels = RoundUp(conv_.data[1], lanes_);
    AddSpectrum(channels);
    products_ = AddBlock(SpreadRow(panels_ * width_));
    zeros_ = state_.AddConstant(Tensor::Zeros({channels}, kFloat32));
    pixels_ = state_.AddWorkspace({slots_, side_[0], side_[1], side_[2]}, Layout::kPlain, kInt64);
    partial_ = state_.AddWorkspace({slots_, plan_.tile[down_], side_[across_], lanes_}, Layout::kPlain);
    // Planes of data before, or of results behind, the transforms through memory.
    planes_ = state_.AddWorkspace({slots_, side_[through_], side_[down_], side_[across_], lanes_}, Layout::kPlain);
    const int64_t blocks = (tiles_ + block_ - 1) / block_;
    const std::vector<int64_t> units{blocks, plan_.channel_parts};
    NoteSpace();
    EmitShares(state_, slots_, NumElements(units), [&](const I64& slot, const I64& unit, const I64&) {
      slot_ = slot;
      const I64s parts = Delinearise(e_, unit, units);
      const I64 first = e_.MulInt(parts[0], block_);
      const I64 left = e_.IntOp("subi", e_.Int(tiles_), first);
      const I64 count = e_.IntOp("minsi", e_.Int(block_), left);
      TransformData(first, count);
      Multiply(count, parts[1]);
      TransformProducts(first, count, parts[1]);
    });
  }

 private:
  void NoteSpace() {
    ProductSpace space;
    space.is_winograd = true;
    space.chosen = state_.schedule().With({.algorithm = AlgorithmOf(sizes_, plan_.tile),
                                           .rows = plan_.rows,
                                           .width = width_ / lanes_,
                                           .block = block_ / plan_.rows,
                                           .parts = plan_.channel_parts});
    space.flops = conv_.flops();
    space.rows = tiles_;
    space.channels = conv_.result[1];
    space.depth = depth_;
    space.chains =
        ChainsOf(plan_.rows * std::min(width_ / lanes_, (space.channels + lanes_ - 1) / lanes_), space.depth);
    space.tiles = (tiles_ + plan_.rows - 1) / plan_.rows;
    space.lanes = static_cast<int>(lanes_);
    state_.space.Note(space);
  }

  /// By axis; an i64 value each.
  using Point = std::array<I64, kAxes>;

  /// The convolution's own axes begin there.
  size_t FirstAxis() const { return kAxes - conv_.rank; }

  /// Indices of the data or the result, channels-last: of an image, a vector of channels, a pixel.
  Indices Pixel(const I64& image, const I64& channel, const Point& point) const {
    Indices at{{image, 0}, {channel, 1, {}, lanes_}};
    for (size_t a = FirstAxis(); a < kAxes; ++a) at.push_back({point[a], 0});
    return at;
  }

  /// [slot][position][tile of the block][row]
  Buffer AddBlock(int64_t row) {
    const int64_t position = OddLines(block_ * row);
    const int64_t slot = positions_ * position;
    Buffer buffer = state_.AddWorkspace({slots_, slot}, Layout::kPlain);
    buffer.shape = {slots_, positions_, block_, row};
    buffer.strides = {slot, position, row, 1};
    return buffer;
  }

  /// Of so many channels. As pairs, it is described twice: as what is written, and as what products read.
  void AddSpectrum(int64_t channels) {
    spectrum_ = AddBlock(SpreadRow(in_pairs_ ? channels / 2 : channels));
    if (!in_pairs_) return;
    bf16_view_ = spectrum_;
    bf16_view_.dtype = kBFloat16;
    bf16_view_.shape.back() *= 2;
    for (size_t d = 0; d + 1 < bf16_view_.strides.size(); ++d) bf16_view_.strides[d] *= 2;
  }

  /// Transformed, as [position][panel][C][width], or as pairs of C.
  Buffer PackTaps(const Tensor& taps) {
    const int64_t inputs = conv_.data[1];
    const int64_t num_taps = sizes_.num_taps();
    const int64_t rows = in_pairs_ ? 2 * depth_ : depth_;
    const Tensor packed = Tensor::Zeros({positions_, panels_, rows, width_}, kFloat32);
    std::vector<double> filters(static_cast<size_t>(num_taps * width_));  // [tap][channel of the panel]
    for (int64_t panel = 0; panel < panels_; ++panel) {
      const int64_t count = std::min(width_, conv_.result[1] - panel * width_);
      std::fill(filters.begin(), filters.end(), 0);
      for (int64_t c = 0; c < inputs; ++c) {
        for (int64_t k = 0; k < count; ++k) {
          const float* from = taps.data<float>() + ((panel * width_ + k) * inputs + c) * num_taps;
          for (int64_t t = 0; t < num_taps; ++t) filters[static_cast<size_t>(t * width_ + k)] = from[t];
        }
        const std::vector<double> transformed = TransformTaps(transforms_, filters, width_);
        for (int64_t p = 0; p < positions_; ++p) {
          std::transform(transformed.begin() + p * width_, transformed.begin() + (p + 1) * width_,
                         packed.data<float>() + ((p * panels_ + panel) * rows + c) * width_,
                         [](double value) { return static_cast<float>(value); });
        }
      }
    }
    return state_.AddConstant(in_pairs_ ? InPairs(packed) : packed);
  }

  // ---- vectors of what is between the steps: whole ones, rows have room for them ----

  Value Read(const Buffer& buffer, const I64s& at) {
    return {e_.VectorAt(e_.Address(buffer, Bases(at)), /*masked=*/false).name()};
  }
  void Write(const Buffer& buffer, const I64s& at, const Value& value) {
    e_.Line(fmt::format("llvm.store {}, {} {{alignment = 4 : i64}} : {}, !llvm.ptr", value.name,
                        e_.Address(buffer, Bases(at)), e_.FloatVector()));
  }

  void WriteSpectrum(const I64s& at, const Value& value) {
    if (!in_pairs_) return Write(spectrum_, at, value);
    const std::string type = fmt::format("vector<{}xbf16>", lanes_);
    const Vector rounded{e_.Def(fmt::format("arith.truncf {} : {} to {}", value.name, e_.FloatVector(), type))};
    e_.Line(fmt::format("llvm.store {}, {} {{alignment = 2 : i64}} : {}, !llvm.ptr", rounded,
                        e_.Address(bf16_view_, Bases(at)), type));
  }

  /// A position within a tile: steps along the axis that goes through memory, down and across.
  I64 Position(const I64& through, const I64& down, const I64& across) {
    Point point;
    point[through_] = through;
    point[down_] = down;
    point[across_] = across;
    return e_.AddInt(e_.MulInt(e_.AddInt(e_.MulInt(point[0], side_[1]), point[1]), side_[2]), point[2]);
  }

  /// `body` for each number below `count`: in a loop when there are several.
  void ForEach(int64_t count, const std::function<void(const I64&)>& body) {
    if (count == 1) return body(e_.Int(0));
    e_.For(e_.Int(0), e_.Int(count), 1, body);
  }

  /// Where a tile is: its image, and its first result by axis.
  struct Place {
    I64 image;
    Point number;  ///< of the tile
    Point first;
  };
  Place PlaceOf(const I64& tile) {
    std::vector<int64_t> counts{conv_.result[0]};
    counts.insert(counts.end(), tiles_along_.begin(), tiles_along_.end());
    const I64s parts = Delinearise(e_, tile, counts);
    Place place{parts[0], {}, {}};
    for (size_t a = 0; a < kAxes; ++a) {
      place.number[a] = parts[a + 1];
      place.first[a] = e_.MulInt(parts[a + 1], plan_.tile[a]);
    }
    return place;
  }

  // ---- data -> spectrum ----

  /// Gives the data at a point of the tile, counted from its first.
  using Loader = std::function<Value(const Point& at, const I64& channel)>;

  void TransformData(const I64& first, const I64& count) {
    e_.For(e_.Int(0), count, 1, [&](const I64& tile) {
      const Place place = PlaceOf(e_.AddInt(first, tile));
      Point from;
      I1 inside = e_.True();
      for (size_t a = 0; a < kAxes; ++a) {
        from[a] = e_.Plus(place.first[a], -pad_[a]);
        const bool is_always = pad_[a] == 0 && (tiles_along_[a] - 1) * plan_.tile[a] + side_[a] <= length_[a];
        if (is_always) continue;
        inside = e_.And(inside, e_.And(e_.IntCompare("sge", from[a], e_.Int(0)),
                                       e_.IntCompare("sle", from[a], e_.Int(length_[a] - side_[a]))));
      }
      const auto point = [&](const Point& at) {
        return Point{e_.AddInt(from[0], at[0]), e_.AddInt(from[1], at[1]), e_.AddInt(from[2], at[2])};
      };
      e_.If(inside, [&] {
        TransformTile(tile, [&](const Point& at, const I64& channel) {
          return e_.Load(data_, Pixel(place.image, channel, point(at)));
        });
      });
      e_.If(e_.Not(inside), [&] {
        NotePixels(place.image, point);
        TransformTile(tile, [&](const Point& at, const I64& channel) {
          const Ptr pixel{e_.Def(fmt::format("llvm.load {} : !llvm.ptr -> !llvm.ptr",
                                             e_.Address(pixels_, Bases({slot_, at[0], at[1], at[2]}))))};
          const char* element = data_.dtype == kFloat32 ? "f32" : "i16";
          return e_.LoadAt(e_.ElementAt(pixel, channel, element), data_.dtype);
        });
      });
    });
  }

  /// The address of each pixel of a tile, that of zeros where there is none.
  void NotePixels(const I64& image, const std::function<Point(const Point&)>& point) {
    e_.For(e_.Int(0), e_.Int(side_[0] * side_[1] * side_[2]), 1, [&](const I64& number) {
      const I64s parts = Delinearise(e_, number, {side_.begin(), side_.end()});
      const Point from = point({parts[0], parts[1], parts[2]});
      I1 exists = e_.True();
      for (size_t a = 0; a < kAxes; ++a) {
        // Numbers below 0 are large without their sign.
        exists = e_.And(exists, e_.IntCompare("ult", from[a], e_.Int(length_[a])));
      }
      const Ptr pixel{e_.Def(fmt::format("arith.select {}, {}, {} : !llvm.ptr", exists,
                                         e_.Address(data_, Pixel(image, e_.Int(0), from)),
                                         e_.Address(zeros_, Bases({e_.Int(0)}))))};
      e_.Line(fmt::format("llvm.store {}, {} : !llvm.ptr, !llvm.ptr", pixel,
                          e_.Address(pixels_, Bases({slot_, parts[0], parts[1], parts[2]}))));
    });
  }

  /// B^T d along all axes, of all channels, d given by `load`.
  void TransformTile(const I64& tile, const Loader& load) {
    const int64_t depth = side_[through_];
    e_.ForLanes(conv_.data[1], [&](const I64& channel) {
      ForEach(depth, [&](const I64& through) {
        TransformPlane(through, channel, load, [&](const I64& down, const I64& across, const Value& v) {
          if (depth == 1) return WriteSpectrum({slot_, Position(through, down, across), tile, channel}, v);
          Write(planes_, {slot_, through, down, across, e_.Int(0)}, v);
        });
      });
      if (depth == 1) return;
      ForEach(side_[down_] * side_[across_], [&](const I64& number) {
        const I64s at = Delinearise(e_, number, {side_[down_], side_[across_]});
        std::vector<Value> line;
        for (int64_t k = 0; k < depth; ++k) line.push_back(Read(planes_, {slot_, e_.Int(k), at[0], at[1], e_.Int(0)}));
        const std::vector<Value> whole = matrices_.Rows(transforms_[through_]->data, line);
        for (int64_t k = 0; k < depth; ++k) {
          WriteSpectrum({slot_, Position(e_.Int(k), at[0], at[1]), tile, channel}, whole[static_cast<size_t>(k)]);
        }
      });
    });
  }

  /// B^T d B of a plane of the tile.
  void TransformPlane(const I64& through, const I64& channel, const Loader& load,
                      const std::function<void(const I64&, const I64&, const Value&)>& store) {
    std::vector<std::vector<Value>> partial;  // columns of B^T d
    for (int64_t j = 0; j < side_[across_]; ++j) {
      std::vector<Value> column;
      for (int64_t i = 0; i < side_[down_]; ++i) {
        Point at;
        at[through_] = through;
        at[down_] = e_.Int(i);
        at[across_] = e_.Int(j);
        column.push_back(load(at, channel));
      }
      partial.push_back(matrices_.Rows(transforms_[down_]->data, column));
    }
    for (int64_t i = 0; i < side_[down_]; ++i) {
      std::vector<Value> row;
      for (const std::vector<Value>& column : partial) row.push_back(column[static_cast<size_t>(i)]);
      const std::vector<Value> whole = matrices_.Rows(transforms_[across_]->data, row);
      for (int64_t j = 0; j < side_[across_]; ++j) store(e_.Int(i), e_.Int(j), whole[static_cast<size_t>(j)]);
    }
  }

  // ---- spectrum x taps -> products ----

  /// The first panel of a part of the channels, or of the one behind it.
  I64 FirstPanel(const I64& part) {
    if (plan_.channel_parts == 1) return e_.MulInt(part, panels_);
    return e_.IntOp("divui", e_.MulInt(part, panels_), e_.Int(plan_.channel_parts));
  }

  void Multiply(const I64& count, const I64& part) {
    Contraction form;
    form.outer = {positions_};
    form.rows = block_;
    form.channels = conv_.result[1];
    form.factors = in_pairs_ ? DotKind::kBFloat16 : DotKind::kOne;
    form.inner = {depth_};
    form.row_stride = spectrum_.strides[2];
    form.a_address = [&](const I64s& outer, const I64& row, const I64s& k) {
      return e_.Address(spectrum_, Bases({slot_, outer[0], row, k[0]}));
    };
    form.b_address = [&](const I64s& outer, const I64& panel, const I64s& k) {
      return e_.Address(taps_, Bases({outer[0], panel, k[0], e_.Int(0)}));
    };
    const int64_t vectors = width_ / lanes_;
    const int64_t whole = conv_.result[1] / width_;  // panels
    const int64_t rest = (conv_.result[1] % width_ + lanes_ - 1) / lanes_;
    // Rows of the last register tile beyond the block's tiles hold whatever was there, and so do their products.
    const I64 register_tiles = e_.IntOp("divui", e_.Plus(count, plan_.rows - 1), e_.Int(plan_.rows));
    const I64 from = FirstPanel(part);
    const I64 to = FirstPanel(e_.Plus(part, 1));
    const auto multiply_panel = [&](const I64& position, const I64& panel, int64_t num_vectors) {
      e_.For(e_.Int(0), register_tiles, 1, [&](const I64& register_tile) {
        const I64 row = e_.MulInt(register_tile, plan_.rows);
        const Vectors sums = EmitRegisterTile(state_, form, {position}, row, plan_.rows, panel,
                                              static_cast<int>(num_vectors), num_vectors * lanes_);
        for (int64_t t = 0; t < plan_.rows; ++t) {
          for (int64_t v = 0; v < num_vectors; ++v) {
            Write(products_, {slot_, position, e_.Plus(row, t), e_.Plus(e_.MulInt(panel, width_), v * lanes_)},
                  {sums[static_cast<size_t>(t * num_vectors + v)].name()});
          }
        }
      });
    };
    e_.For(e_.Int(0), e_.Int(positions_), 1, [&](const I64& position) {
      if (whole > 0) {
        e_.For(from, e_.IntOp("minsi", to, e_.Int(whole)), 1,
               [&](const I64& panel) { multiply_panel(position, panel, vectors); });
      }
      if (rest > 0) {
        e_.If(e_.IntCompare("eq", to, e_.Int(panels_)), [&] { multiply_panel(position, e_.Int(whole), rest); });
      }
    });
  }

  // ---- products -> result ----

  void TransformProducts(const I64& first, const I64& count, const I64& part) {
    const int64_t channels = conv_.result[1];
    const int64_t whole = channels / lanes_ * lanes_;
    const I64 from = e_.MulInt(FirstPanel(part), width_);
    const I64 to = FirstPanel(e_.Plus(part, 1));
    const I64 end = e_.IntOp("minsi", e_.MulInt(to, width_), e_.Int(whole));
    e_.For(e_.Int(0), count, 1, [&](const I64& tile) {
      const Place place = PlaceOf(e_.AddInt(first, tile));
      if (whole > 0) e_.For(from, end, lanes_, [&](const I64& channel) { StoreTile(tile, place, channel); });
      if (whole == channels) return;
      e_.If(e_.IntCompare("eq", to, e_.Int(panels_)),
            [&] { e_.MaskedRest(channels, [&](const I64& channel) { StoreTile(tile, place, channel); }); });
    });
  }

  /// How many results of a tile exist along an axis, as far as the result reaches.
  I64 Count(const Place& place, size_t axis) {
    const int64_t length = sizes_.result[axis];
    if (length % plan_.tile[axis] == 0) return e_.Int(plan_.tile[axis]);
    return e_.IntOp("minsi", e_.Int(plan_.tile[axis]), e_.IntOp("subi", e_.Int(length), place.first[axis]));
  }

  /// A^T m along all axes, m the products of a vector of channels.
  void StoreTile(const I64& tile, const Place& place, const I64& channel) {
    const int64_t depth = side_[through_];
    const auto product = [&](const I64& through, const I64& down, const I64& across) {
      return Read(products_, {slot_, Position(through, down, across), tile, channel});
    };
    if (depth == 1) return StorePlane(place, channel, e_.Int(0), product);
    ForEach(side_[down_] * side_[across_], [&](const I64& number) {
      const I64s at = Delinearise(e_, number, {side_[down_], side_[across_]});
      std::vector<Value> line;
      for (int64_t k = 0; k < depth; ++k) line.push_back(product(e_.Int(k), at[0], at[1]));
      const std::vector<Value> results = matrices_.Columns(transforms_[through_]->result, line);
      for (size_t k = 0; k < results.size(); ++k) {
        Write(planes_, {slot_, e_.Int(static_cast<int64_t>(k)), at[0], at[1], e_.Int(0)}, results[k]);
      }
    });
    e_.For(e_.Int(0), Count(place, through_), 1, [&](const I64& through) {
      StorePlane(place, channel, through, [&](const I64& k, const I64& down, const I64& across) {
        return Read(planes_, {slot_, k, down, across, e_.Int(0)});
      });
    });
  }

  /// A^T m A of plane `through` of the tile, row by row.
  void StorePlane(const Place& place, const I64& channel, const I64& through,
                  const std::function<Value(const I64& through, const I64& down, const I64& across)>& load) {
    const I64 zero = e_.Int(0);
    for (int64_t j = 0; j < side_[across_] && side_[down_] > 1; ++j) {
      std::vector<Value> column;
      for (int64_t i = 0; i < side_[down_]; ++i) column.push_back(load(through, e_.Int(i), e_.Int(j)));
      const std::vector<Value> partial = matrices_.Columns(transforms_[down_]->result, column);
      for (size_t i = 0; i < partial.size(); ++i) {
        Write(partial_, {slot_, e_.Int(static_cast<int64_t>(i)), e_.Int(j), zero}, partial[i]);
      }
    }
    e_.For(zero, Count(place, down_), 1, [&](const I64& i) {
      std::vector<Value> row;
      for (int64_t j = 0; j < side_[across_]; ++j) {
        const I64 column = e_.Int(j);
        row.push_back(side_[down_] > 1 ? Read(partial_, {slot_, i, column, zero}) : load(through, i, column));
      }
      const std::vector<Value> results = matrices_.Columns(transforms_[across_]->result, row);
      Point at;
      at[through_] = e_.AddInt(place.first[through_], through);
      at[down_] = e_.AddInt(place.first[down_], i);
      const auto store = [&](int64_t columns) {
        for (int64_t j = 0; j < columns; ++j) {
          at[across_] = e_.Plus(place.first[across_], j);
          StoreResult(state_, output_, Pixel(place.image, channel, at), results[static_cast<size_t>(j)]);
        }
      };
      const int64_t rest = sizes_.result[across_] % plan_.tile[across_];
      if (rest == 0) return store(plan_.tile[across_]);
      const I64 last = e_.Int(tiles_along_[across_] - 1);
      if (tiles_along_[across_] > 1) {
        e_.If(e_.IntCompare("slt", place.number[across_], last), [&] { store(plan_.tile[across_]); });
      }
      e_.If(e_.IntCompare("eq", place.number[across_], last), [&] { store(rest); });
    });
  }

  PartitionState& state_;
  Emitter& e_;
  MatrixWriter matrices_;
  const CallNode& call_;
  const ConvolutionGeometry& conv_;
  const PlainConvolution& sizes_;
  const StageOutput& output_;
  const WinogradPlan& plan_;
  AxisTransforms transforms_;
  int64_t positions_;  ///< of a tile
  int64_t lanes_;
  int64_t width_;  ///< of a panel
  int64_t panels_;
  bool in_pairs_;  ///< products are those of bfloat16
  int64_t depth_;  ///< what products are summed over: channels, or pairs of them
  int64_t slots_;  ///< threads that have room of their own
  size_t through_ = 0, down_ = 1,
         across_ = 2;  ///< axes: the last that is transformed is across, the one before it down
  PerAxis side_{1, 1, 1};
  PerAxis length_{1, 1, 1};  ///< of the data
  PerAxis pad_{0, 0, 0};
  PerAxis tiles_along_{1, 1, 1};
  int64_t tiles_;
  int64_t block_;
  Buffer data_;
  Buffer taps_;
  Buffer spectrum_;
  Buffer bf16_view_;  ///< of the spectrum, where it is in pairs
  Buffer products_;
  Buffer zeros_;    ///< of a pixel that does not exist
  Buffer pixels_;   ///< addresses of those of a tile at the border
  Buffer partial_;  ///< A^T m, of a plane of one vector
  Buffer planes_;   ///< of one vector, transformed along two axes or along the one through memory
  I64 slot_;        ///< the thread, in the function being written
};

PlainConvolution SizesOf(const ConvolutionGeometry& conv, bool in_bfloat16) {
  PlainConvolution sizes{conv.result[0], conv.data[1], conv.result[1], {1, 1, 1}, {1, 1, 1}, in_bfloat16};
  for (size_t d = 0; d < conv.rank; ++d) {
    sizes.result[kAxes - conv.rank + d] = conv.result[d + 2];
    sizes.taps[kAxes - conv.rank + d] = conv.weight[d + 2];
  }
  return sizes;
}

bool IsSummedInFloat32(const Expr& expr) {
  const DataType dtype = TensorTypeOf(expr).dtype();
  return dtype.is_floating() && SumType(dtype) == kFloat32;
}

bool IsCandidate(const CallNode& call, const ConvolutionGeometry& conv) {
  const auto is_one = [](int64_t value) { return value == 1; };
  return conv.rank <= kAxes && conv.groups == 1 && conv.data[1] > 0 &&
         HasWinograd(SizesOf(conv, /*in_bfloat16=*/false)) &&
         std::all_of(conv.stride.begin(), conv.stride.end(), is_one) &&
         std::all_of(conv.dilation.begin(), conv.dilation.end(), is_one) && IsSummedInFloat32(call.args()[0]) &&
         IsSummedInFloat32(call.args()[1]);
}

/// What the schedule says instead of the model, of which there are so many tiles and panels.
void Apply(const Schedule& schedule, int64_t tiles, int64_t panels, WinogradPlan& plan) {
  const int64_t register_tiles = plan.block / plan.rows;
  if (schedule.rows > 0) plan.rows = schedule.rows;
  const int64_t all = (tiles + plan.rows - 1) / plan.rows;
  plan.block = plan.rows * std::min(schedule.block > 0 ? schedule.block : register_tiles, all);
  if (schedule.parts > 0) plan.channel_parts = std::min(schedule.parts, panels);
}

void NoteAlgorithms(PartitionState& state, const PlainConvolution& sizes) {
  state.space.algorithms = {Schedule::kDirect};
  for (const int64_t algorithm : {Schedule::kWinograd2, Schedule::kWinograd4}) {
    if (MayBeChosen(sizes, TilesTold(sizes, SideOf(algorithm)))) state.space.algorithms.push_back(algorithm);
  }
}

}  // namespace

bool EmitWinograd(PartitionState& state, const CallNode& call, const ConvolutionGeometry& conv,
                  const StageOutput& output) {
  if (state.options.is_exact || !IsCandidate(call, conv) || !IsSummedInFloat32(output.result)) return false;
  Emitter& e = state.emitter;
  const int threads = state.IsParallel(conv.flops()) ? state.num_threads : 1;
  const std::optional<Tensor> taps = ConstantValue(call.args()[1]);
  if (!taps) return false;
  const ProductMachine machine =
      ThisMachine(e.lanes(), MultipliersOf(state), MostTileRows(state, kFloat32), PanelWidth(state, kFloat32), threads);
  const PlainConvolution sizes = SizesOf(conv, IsNarrowed(state, call));
  NoteAlgorithms(state, sizes);
  if (!state.schedule().MayBeWinograd()) return false;
  const int64_t told = ToldSides(state.options);
  std::optional<WinogradPlan> plan;
  if (told == 0) {
    plan = ChooseWinograd(sizes, machine);
  } else if (const PerAxis tile = TilesTold(sizes, told); IsWithinBounds(sizes, tile)) {
    plan = PlanWinograd(sizes, machine, tile);
  }
  if (!plan) return false;
  Apply(state.schedule(), NumTiles(sizes, plan->tile), (conv.result[1] + machine.tile_width - 1) / machine.tile_width,
        *plan);
  state.num_narrow += sizes.in_bfloat16 ? 1 : 0;
  WinogradEmitter(state, call, conv, sizes, output, *plan, threads).Run(taps->Cast(kFloat32));
  return true;
}

}  // namespace collage::native
