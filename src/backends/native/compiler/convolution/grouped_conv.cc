// grouped_conv.cc: depthwise convolutions, and those whose groups have fewer channels than a vector: a vector holds the
// same pixel of neighbouring channels, of several groups; for each channel within the groups, a shuffle spreads it over
// the lanes of its group. Zeros around the data are not stored: taps that would read them are left out.
#include <algorithm>
#include <optional>

#include "backends/native/compiler/contraction/bias.h"
#include "backends/native/compiler/convolution/convolution.h"
#include "backends/native/compiler/stages/elements.h"
#include "backends/native/compiler/stages/epilogue.h"
#include "backends/native/compiler/stages/loop_nest.h"
#include "backends/native/compiler/stages/materialise.h"
#include "backends/native/compiler/stages/padded_data.h"
#include "backends/native/description/narrowing.h"

namespace collage::native {
namespace {

// Tiles at the edges are written out, each by itself. If there are more, zeros are stored around the data.
constexpr int64_t kMostEdgeTiles = 8;

class GroupedConv : public GroupRows {
 public:
  GroupedConv(PartitionState& state, const CallNode& call, const ConvolutionGeometry& conv)
      : state_(state),
        e_(state.emitter),
        call_(call),
        conv_(conv),
        group_(conv.weight[1]),
        channels_(conv.data[1]),
        pad_before_(conv.pad_before) {
    const auto [from, to] = InnerColumns();
    const int64_t width = conv_.result.back();
    const int64_t most = e_.lanes() == 16 ? 8 : 6;  // pixels of a row that are summed at a time
    const int64_t tiles = (width + most - 1) / most;
    const int64_t told = std::min(state_.schedule().rows, width);
    columns_ = told > 0 ? told : (width + tiles - 1) / tiles;
    first_inner_ = std::min((from + columns_ - 1) / columns_ * columns_, width);
    end_inner_ = std::max(first_inner_, to / columns_ * columns_);
  }

  bool has_many_edges() const { return conv_.result.back() - (end_inner_ - first_inner_) > kMostEdgeTiles * columns_; }

  void ReadMemory() {
    // Data kept in fewer bits are widened each time that they are read.
    const DataType kept = KeptType(state_, call_.args()[0]);
    const DataType dtype = kept == kBFloat16 || kept == kFloat16 ? kept : kFloat32;
    if (has_many_edges()) {
      data_ = PaddedData(state_, call_.args()[0], conv_.pad_before, conv_.pad_after, dtype);
      pad_before_.assign(conv_.rank, 0);
      first_inner_ = 0;
      end_inner_ = conv_.result.back() / columns_ * columns_;
    } else {
      data_ = ChannelsLastData(state_, call_.args()[0], dtype);
    }
    extent_.assign(data_.shape.begin() + 2, data_.shape.end());
    PackTaps();
  }

  void ReadRing(const Buffer& ring) {
    data_ = ring;
    ring_rows_ = ring.shape[2];
    extent_.assign(conv_.data.begin() + 2, conv_.data.end());
    PackTaps();
  }

  void Run(const StageOutput& with_bias) {
    NoteSpace();
    ReadMemory();
    const StageOutput output = BeginWithBias(with_bias);
    const int64_t size = ChannelsOfBlock();
    const int64_t whole = channels_ / size;
    EmitBlocks(output, whole, size, 0);
    if (channels_ % size != 0) EmitBlocks(output, 1, channels_ % size, whole * size);
  }

  StageOutput BeginWithBias(const StageOutput& output) override {
    bias_ = BiasOf(state_, output, /*axis=*/1, e_.native_lanes());
    return bias_ ? bias_->output : output;
  }

  int64_t ChannelsOfBlock() const override {
    constexpr int64_t kRoom = 24 << 10;  // of 32 KiB and more
    constexpr int64_t kLine = 16;        // float32
    const int64_t taps = conv_.taps();
    const int64_t rows = NumElements(Shape(conv_.weight.begin() + 2, conv_.weight.end() - 1));
    const int64_t window = rows * conv_.data.back() + taps * group_ + conv_.result.back();
    const int64_t most = std::max<int64_t>(kRoom / (window * kLine * static_cast<int64_t>(sizeof(float))), 1);
    const int64_t lines = (channels_ + kLine - 1) / kLine;
    const int64_t blocks = (lines + most - 1) / most;
    return (lines + blocks - 1) / blocks * kLine;
  }

  void EmitRow(const I64s& outer, const Block& block, const I64& image, const StoreFn& store) override {
    block_ = block;
    image_ = image;
    store_ = &store;
    EmitTapsWithin(outer);
  }

 private:
  /// A stage over `count` blocks of `size` channels, from channel `first` on.
  void EmitBlocks(const StageOutput& output, int64_t count, int64_t size, int64_t first) {
    if (count == 0) return;
    std::vector<int64_t> units{conv_.result[0], count};
    for (size_t d = 0; d + 1 < conv_.rank; ++d) units.push_back(conv_.result[d + 2]);
    const std::string name = state_.NextStageName();
    e_.Function(name, [&](const I64& begin, const I64& end) {
      e_.For(begin, end, 1, [&](const I64& unit) {
        I64s outer = Delinearise(e_, unit, units);
        const I64 channel = e_.Plus(e_.MulInt(outer[1], size), first);
        outer.erase(outer.begin() + 1);
        EmitRow(outer, {size, channel, channel}, outer[0],
                [&](const Indices& at, const Value& sum) { StoreResult(state_, output, at, sum); });
      });
    });
    e_.Call(name, NumElements(units),
            state_.IsParallel(conv_.flops() * static_cast<double>(size * count) / static_cast<double>(channels_)));
  }

  void NoteSpace() {
    ProductSpace space;
    space.chosen = state_.schedule().With({.algorithm = Schedule::kDirect, .rows = columns_, .width = 1});
    space.flops = conv_.flops();
    space.rows = conv_.result.back();
    space.channels = channels_;
    space.has_width = space.has_block = false;
    state_.space.Note(space);
  }

  /// Pixels of a row of the result that are summed at a time: where they begin, as a value or, near the edges, as a
  /// number, so that taps beyond them can be left out.
  struct Tile {
    I64 column;
    std::optional<int64_t> number;
    int64_t count = 1;
  };
  /// Which taps of a dimension lie within the data: [from, to).
  struct Taps {
    I64 from, to;
  };

  /// The columns of the result, [first, second), all of whose taps lie within the data.
  std::pair<int64_t, int64_t> InnerColumns() const {
    const int64_t stride = conv_.stride.back();
    const int64_t before = conv_.pad_before.back();
    const int64_t reach = (conv_.weight.back() - 1) * conv_.dilation.back();
    const int64_t last = conv_.data.back() - 1 - reach + before;  // where the last of them may begin, in padded data
    const int64_t from = std::min((before + stride - 1) / stride, conv_.result.back());
    const int64_t to = last < 0 ? 0 : std::min(last / stride + 1, conv_.result.back());
    return {from, std::max(from, to)};
  }

  /// Weights as [taps…][channel within the group][channel].
  void PackTaps() {
    Shape shape(conv_.weight.begin() + 2, conv_.weight.end());
    shape.push_back(group_);
    shape.push_back(channels_);
    const int64_t taps = conv_.taps();
    if (const std::optional<Tensor> value = ConstantValue(call_.args()[1])) {
      const Tensor weight = value->Cast(kFloat32);
      Tensor packed = Tensor::Empty(shape, kFloat32);
      for (int64_t c = 0; c < channels_; ++c) {
        for (int64_t i = 0; i < group_; ++i) {
          for (int64_t tap = 0; tap < taps; ++tap) {
            packed.data<float>()[(tap * group_ + i) * channels_ + c] =
                weight.data<float>()[(c * group_ + i) * taps + tap];
          }
        }
      }
      taps_ = state_.AddConstant(packed);
      return;
    }
    taps_ = state_.AddWorkspace(shape, Layout::kPlain);
    EmitElements(state_, taps_, [&](const Indices& at) {
      Indices from{at[conv_.rank + 1], at[conv_.rank]};
      from.insert(from.end(), at.begin(), at.begin() + static_cast<int64_t>(conv_.rank));
      return state_.math().Convert(state_.expressions.At(call_.args()[1], from), kFloat32);
    });
  }

  /// One row of the result. Taps above and below the data are left out.
  void EmitTapsWithin(const I64s& outer) {
    std::vector<Taps> all;
    std::vector<Taps> within;
    I1 is_inner;  // whether the same
    for (size_t d = 0; d + 1 < conv_.rank; ++d) {
      const int64_t kernel = conv_.weight[d + 2];
      all.push_back({e_.Int(0), e_.Int(kernel)});
      within.push_back(all.back());
      const int64_t reach = (kernel - 1) * conv_.dilation[d] + (conv_.result[d + 2] - 1) * conv_.stride[d];
      if (pad_before_[d] == 0 && reach < extent_[d]) continue;
      within.back() = TapsWithin(d, outer[d + 1], all.back());
      for (const auto& [bound, whole] :
           {std::pair(within.back().from, all.back().from), std::pair(within.back().to, all.back().to)}) {
        const I1 is_whole = e_.IntCompare("eq", bound, whole);
        is_inner = is_inner.is_none() ? is_whole : e_.And(is_inner, is_whole);
      }
    }
    if (is_inner.is_none()) return EmitTiles(outer, all);
    // Loops of known length are unrolled.
    e_.If(is_inner, [&] { EmitTiles(outer, all); });
    e_.If(e_.Not(is_inner), [&] { EmitTiles(outer, within); });
  }

  /// Tap j of output `o` reads the data at o * stride - padding + j * dilation.
  Taps TapsWithin(size_t d, const I64& o, const Taps& all) {
    const int64_t dilation = conv_.dilation[d];
    const I64 first = e_.Plus(e_.MulInt(o, conv_.stride[d]), -pad_before_[d]);
    const auto taps_before = [&](const I64& distance) {  // how many taps cover it
      const I64 positive = e_.IntOp("maxsi", distance, e_.Int(0));
      const I64 count = dilation == 1 ? positive : e_.IntOp("divsi", e_.Plus(positive, dilation - 1), e_.Int(dilation));
      return e_.IntOp("minsi", count, all.to);
    };
    const I64 beyond = e_.IntOp("subi", e_.Int(extent_[d]), first);
    return {taps_before(e_.IntOp("subi", e_.Int(0), first)), taps_before(beyond)};
  }

  void EmitTiles(const I64s& outer, const std::vector<Taps>& taps) {
    const int64_t width = conv_.result.back();
    const auto at_edges = [&](int64_t from, int64_t to) {
      for (int64_t at = from; at < to; at += columns_) {
        EmitTile(outer, taps, {e_.Int(at), at, std::min(columns_, to - at)});
      }
    };
    at_edges(0, first_inner_);
    e_.For(e_.Int(first_inner_), e_.Int(end_inner_), columns_, [&](const I64& column) {
      EmitTile(outer, taps, {column, {}, columns_});
    });
    at_edges(end_inner_, width);
  }

  /// The tile's pixels, all channels.
  void EmitTile(const I64s& outer, const std::vector<Taps>& taps, const Tile& tile) {
    e_.ForLanes(block_.size, [&](const I64& lane) {
      const I64 channel = e_.AddInt(block_.first, lane);
      of_data_ = block_.of_data == block_.first ? channel : e_.AddInt(block_.of_data, lane);
      const Vector start = bias_ ? bias_->At(e_, channel) : e_.Splat(0);
      const Vectors sums = SumTaps(outer, taps, tile, channel, {}, Vectors(static_cast<size_t>(tile.count), start));
      for (int64_t t = 0; t < tile.count; ++t) {
        Indices at{{outer[0], 0}, {channel, 1, {}, e_.lanes()}};
        for (size_t d = 1; d < outer.size(); ++d) at.push_back({outer[d], 0});
        at.push_back({e_.Plus(tile.column, t), 0});
        (*store_)(at, {sums[static_cast<size_t>(t)].name()});
      }
    });
  }

  /// Loops over the taps of all dimensions but the last, whose taps are written out.
  Vectors SumTaps(const I64s& outer, const std::vector<Taps>& taps, const Tile& tile, const I64& channel,
                  const I64s& chosen, const Vectors& sums) {
    const size_t d = chosen.size();
    if (d + 1 < conv_.rank) {
      return e_.ForCarrying(taps[d].from, taps[d].to, sums, e_.FloatVector(),
                            [&](const I64& tap, const Vectors& carried) {
                              I64s deeper = chosen;
                              deeper.push_back(tap);
                              return SumTaps(outer, taps, tile, channel, deeper, carried);
                            });
    }
    Indices pixel{{image_, 0}, {of_data_, 1}};
    for (size_t i = 0; i < d; ++i) {
      const I64 first = e_.Plus(e_.MulInt(outer[i + 1], conv_.stride[i]), -pad_before_[i]);
      const I64 at = e_.AddInt(first, e_.MulInt(chosen[i], conv_.dilation[i]));
      pixel.push_back({ring_rows_ == 0 ? at : e_.IntOp("remui", at, e_.Int(ring_rows_)), 0});
    }
    pixel.push_back({});
    const std::vector<Vectors> weights = WeightsAt(chosen, channel);
    // Each pixel is read and spread once, for all results that it is part of.
    const int64_t stride = conv_.stride.back();
    const int64_t dilation = conv_.dilation.back();
    const int64_t extent = (tile.count - 1) * stride + (conv_.weight.back() - 1) * dilation + 1;
    Vectors next = sums;
    for (int64_t offset = 0; offset < extent; ++offset) {
      if (tile.number) {
        const int64_t column = *tile.number * stride + offset - pad_before_.back();
        if (column < 0 || column >= extent_.back()) continue;
      }
      std::vector<std::pair<int64_t, int64_t>> uses;  // tap, result
      for (int64_t tap = 0; tap < conv_.weight.back(); ++tap) {
        const int64_t from = offset - tap * dilation;
        if (from >= 0 && from % stride == 0 && from / stride < tile.count) uses.emplace_back(tap, from / stride);
      }
      if (uses.empty()) continue;
      pixel.back() = {e_.Plus(e_.MulInt(tile.column, stride), offset - pad_before_.back()), 0};
      const Vector value{e_.Load(data_, pixel).name};
      for (int64_t i = 0; i < group_; ++i) {
        const Vector spread = Spread(value, i);
        for (const auto& [tap, t] : uses) {
          Vector& sum = next[static_cast<size_t>(t)];
          const Vector& weight = weights[static_cast<size_t>(tap)][static_cast<size_t>(i)];
          sum = Vector{e_.Def(fmt::format("math.fma {}, {}, {} : {}", spread, weight, sum, e_.FloatVector()))};
        }
      }
    }
    return next;
  }

  /// Weights of the taps at `chosen`, by tap of the last dimension, by channel within the group.
  std::vector<Vectors> WeightsAt(const I64s& chosen, const I64& channel) {
    std::vector<Vectors> weights;
    for (int64_t tap = 0; tap < conv_.weight.back(); ++tap) {
      weights.emplace_back();
      for (int64_t i = 0; i < group_; ++i) {
        Indices at = Bases(chosen);
        at.insert(at.end(), {{e_.Int(tap), 0}, {e_.Int(i), 0}, {channel, 1}});
        weights.back().emplace_back(e_.Load(taps_, at).name);
      }
    }
    return weights;
  }

  /// Channel `i` of each group in all lanes of the group.
  Vector Spread(const Vector& value, int64_t i) {
    if (group_ == 1) return value;
    std::string lanes;
    for (int64_t lane = 0; lane < e_.lanes(); ++lane)
      lanes += fmt::format("{}{}", lane ? ", " : "", lane / group_ * group_ + i);
    return Vector{e_.Def(fmt::format("vector.shuffle {0}, {0} [{1}] : {2}, {2}", value, lanes, e_.FloatVector()))};
  }

  PartitionState& state_;
  Emitter& e_;
  const CallNode& call_;
  const ConvolutionGeometry& conv_;
  int64_t group_;
  int64_t channels_;
  std::vector<int64_t> pad_before_;  ///< zeros that data_ lacks
  std::vector<int64_t> extent_;      ///< of the data without those
  int64_t columns_ = 1;              ///< of a tile
  int64_t first_inner_ = 0;          ///< tiles in [first_inner_, end_inner_) need no zeros
  int64_t end_inner_ = 0;
  Buffer data_;
  int64_t ring_rows_ = 0;  ///< of data_, where it is a ring
  Buffer taps_;
  std::optional<Bias> bias_;
  // The row that is written:
  Block block_;
  I64 image_;
  I64 of_data_;  ///< first channel of the vector, in data_
  const StoreFn* store_ = nullptr;
};

}  // namespace

bool EmitGroupedConv(PartitionState& state, const CallNode& call, const ConvolutionGeometry& conv,
                     const StageOutput& output) {
  const bool fits = HasSmallGroups(conv.groups, conv.data[1], conv.result[1], state.emitter.lanes());
  if (!fits || SumType(TensorTypeOf(call.args()[0]).dtype()) != kFloat32) return false;
  GroupedConv(state, call, conv).Run(output);
  return true;
}

std::unique_ptr<GroupRows> RowsOfMemory(PartitionState& state, const CallNode& call, const ConvolutionGeometry& conv) {
  auto rows = std::make_unique<GroupedConv>(state, call, conv);
  rows->ReadMemory();
  return rows;
}

std::unique_ptr<GroupRows> RowsOfRing(PartitionState& state, const CallNode& call, const ConvolutionGeometry& conv,
                                      const Buffer& ring) {
  auto rows = std::make_unique<GroupedConv>(state, call, conv);
  rows->ReadRing(ring);
  return rows;
}

bool NeedsStoredZeros(PartitionState& state, const CallNode& call, const ConvolutionGeometry& conv) {
  return GroupedConv(state, call, conv).has_many_edges();
}

}  // namespace collage::native
