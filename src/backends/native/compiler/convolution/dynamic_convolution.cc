// dynamic_convolution.cc: convolutions of images whose sizes a run knows. Lanes run along rows of the result. What the
// pixels of a piece of such a row are made of lies tap by tap in a panel, zeros where a tap is outside of the image; a
// panel is a thread's own, and is multiplied by all weights of its group before the next one takes its place.
#include <algorithm>

#include "backends/native/compiler/convolution/convolution.h"
#include "backends/native/compiler/stages/epilogue.h"
#include "backends/native/compiler/stages/loop_nest.h"
#include "collage/support/error.h"

namespace collage::native {
namespace {

class DynamicConvolution {
 public:
  DynamicConvolution(PartitionState& state, const CallNode& call, const StageOutput& output)
      : state_(state),
        e_(state.emitter),
        output_(output),
        conv_(call, output.result),
        weight_(call.args()[1]),
        last_(conv_.rank + 1),
        channels_in_(conv_.weight[1]),
        channels_out_(conv_.weight[0] / conv_.groups) {
    const Buffer* data = state.expressions.FindBuffer(call.args()[0]);
    if (data == nullptr) throw Error(ErrorCategory::kUnsupported, "a convolution of what is not in memory");
    data_ = *data;
    form_.dtype = TensorTypeOf(call.args()[0]).dtype();
    width_ = PanelWidth(state, form_.dtype);
    tile_ = std::min(MostTileRows(state, form_.dtype), channels_out_);
  }

  void Run() {
    depth_ = channels_in_ * conv_.taps();
    const int64_t tiles = (channels_out_ + tile_ - 1) / tile_;
    form_.inner = {depth_};
    SetWeights();
    form_.b_address = [this](const I64s&, const I64&, const I64s& k) { return PanelAddress(e_.MulInt(k[0], width_)); };
    // Images, groups, rows of the result, pieces of such rows.
    std::vector<int64_t> units{conv_.result[0], conv_.groups};
    units.insert(units.end(), conv_.result.begin() + 2, conv_.result.end() - 1);
    units.push_back(e_.CeilDivided(conv_.result.back(), width_));
    const std::string name = state_.NextStageName();
    e_.Function(name, [&](const I64& begin, const I64& end) {
      panel_ = e_.Scratch(depth_ * width_ * static_cast<int64_t>(form_.dtype.size_bytes()));
      e_.For(begin, end, 1, [&](const I64& unit) {
        place_ = Delinearise(e_, unit, units);
        first_ = e_.MulInt(place_.back(), width_);
        const I64 left = e_.IntOp("subi", e_.Int(conv_.result.back()), first_);
        there_ = e_.IntOp("minsi", left, e_.Int(width_));
        FillTaps(0, e_.Int(0), {}, {{place_[0]}, e_.Zero()});
        const int64_t whole = channels_out_ / tile_;
        e_.For(e_.Int(0), e_.Int(whole), 1, [&](const I64& tile) { EmitTile(tile, tile_); });
        if (whole < tiles) EmitTile(e_.Int(whole), channels_out_ - whole * tile_);
      });
    });
    e_.Call(name, e_.Product(units), state_.IsParallel(1e6));
  }

 private:
  /// A row of the form is a tile of output channels. Constants lie as [group][tile][tap][channel of the tile].
  void SetWeights() {
    PackedWeights packing;
    packing.inner = {depth_};
    packing.groups = conv_.groups;
    packing.channels = channels_out_;
    packing.offset = [this](const Shape&, int64_t group, int64_t channel, const std::vector<int64_t>& k) {
      return (group * channels_out_ + channel) * depth_ + k[0];
    };
    if (const std::optional<Tensor> packed = PackedConstant(weight_, packing, form_.dtype, tile_)) {
      form_.row_stride = 1;
      form_.a_address = [this, tiles = state_.AddConstant(*packed)](const I64s& outer, const I64& tile, const I64s& k) {
        return e_.Address(tiles, Bases({outer[1], tile, k[0], e_.Int(0)}));
      };
      return;
    }
    const Buffer* place = state_.expressions.FindBuffer(weight_);
    if (place == nullptr) throw Error(ErrorCategory::kUnsupported, "a convolution by what is not in memory");
    Buffer rows = *place;
    rows.shape = {conv_.groups, channels_out_, depth_};
    rows.strides = e_.Strides(rows.shape);
    form_.row_stride = depth_;
    form_.a_address = [this, rows](const I64s& outer, const I64& tile, const I64s& k) {
      return e_.Address(rows, Bases({outer[1], e_.MulInt(tile, tile_), k[0]}));
    };
  }

  Ptr PanelAddress(const I64& element) {
    return e_.ElementAt(panel_, element, form_.dtype == kFloat64 ? "f64" : "f32");
  }

  /// The input position that a tap of dimension `d` reads for output position 0.
  I64 Shift(size_t d, const I64& tap) { return e_.Plus(e_.MulInt(tap, conv_.dilation[d]), -conv_.pad_before[d]); }

  /// Goes through the taps of dimension `d` and those behind it. `tap`: their number so far; `inside`: whether all so
  /// far are inside of the image, none while they must be; `at`: what they read.
  void FillTaps(size_t d, const I64& tap, const I1& inside, const Indices& at) {
    e_.For(e_.Int(0), e_.Int(conv_.weight[d + 2]), 1, [&](const I64& own) {
      const I64 number = e_.AddInt(e_.MulInt(tap, conv_.weight[d + 2]), own);
      const I64 shift = Shift(d, own);
      Indices next = at;
      if (d + 1 == conv_.rank) {
        next.push_back({shift});
        return FillTap(number, inside, next);
      }
      const I64 from = e_.AddInt(e_.MulInt(place_[d + 2], conv_.stride[d]), shift);
      const I1 is_in = e_.IntCompare("ult", from, e_.Int(conv_.data[d + 2]));
      next.push_back({from});
      FillTaps(d + 1, number, inside.is_none() ? is_in : e_.And(inside, is_in), next);
    });
  }

  /// One tap of all input channels: `at` with its shift along the row in place of the last coordinate.
  void FillTap(const I64& tap, const I1& inside, const Indices& at) {
    const size_t d = conv_.rank - 1;
    const I64 shift = at.back().base;
    // Pixels `low` to `high` of the piece read the image: 0 <= pixel * stride + shift < size.
    const auto pixels_before = [&](const I64& distance) {
      const I64 above = e_.IntOp("maxsi", e_.Plus(distance, conv_.stride[d] - 1), e_.Int(0));
      const I64 pixel = e_.IntOp("divui", above, e_.Int(conv_.stride[d]));
      return e_.IntOp("minsi", e_.IntOp("maxsi", e_.IntOp("subi", pixel, first_), e_.Int(0)), there_);
    };
    I64 low = pixels_before(e_.IntOp("subi", e_.Int(0), shift));
    I64 high = pixels_before(e_.IntOp("subi", e_.Int(conv_.data[last_]), shift));
    high = e_.IntOp("maxsi", low, high);
    if (!inside.is_none()) {
      const I64 none = e_.Int(0);
      low = e_.SelectInt(inside, low, none);
      high = e_.SelectInt(inside, high, none);
    }
    const Value zero = state_.math().Number(0, KindOf(form_.dtype));
    e_.For(e_.Int(0), e_.Int(channels_in_), 1, [&](const I64& channel) {
      const I64 row = e_.MulInt(e_.AddInt(e_.MulInt(channel, conv_.taps()), tap), width_);
      const auto store = [&](const I64& pixel, const Value& value) {
        e_.StoreAt(PanelAddress(e_.AddInt(row, pixel)), value, form_.dtype);
      };
      Indices from = at;
      from[1] = {e_.AddInt(e_.MulInt(place_[1], channels_in_), channel)};
      e_.ForLanesBetween(e_.Int(0), low, [&](const I64& pixel) { store(pixel, zero); });
      e_.ForLanesBetween(low, high, [&](const I64& pixel) {
        const Index lanes = e_.Scaled({e_.AddInt(first_, pixel), 1, {}, 1}, conv_.stride[d]);
        from.back() = e_.Sum(lanes, {shift});
        store(pixel, e_.Load(data_, from));
      });
      e_.ForLanesBetween(high, there_, [&](const I64& pixel) { store(pixel, zero); });
    });
  }

  void EmitTile(const I64& tile, int64_t rows) {
    const auto vectors = static_cast<int>(width_ / e_.lanes());
    const Vectors sums = EmitRegisterTile(state_, form_, place_, tile, rows, place_.back(), vectors, width_);
    const I64 group = e_.MulInt(place_[1], channels_out_);
    Indices at{{place_[0]}, e_.Zero()};
    for (size_t d = 2; d < last_; ++d) at.push_back({place_[d]});
    at.push_back(e_.Zero());
    for (int v = 0; v < vectors; ++v) {
      const I64 pixel = e_.Plus(first_, static_cast<int64_t>(v) * e_.lanes());
      at.back() = {pixel, 1, {}, 1};
      e_.MaskedBefore(pixel, e_.Int(conv_.result.back()), [&] {
        for (int64_t t = 0; t < rows; ++t) {
          at[1] = {e_.Plus(e_.AddInt(group, e_.MulInt(tile, tile_)), t)};
          StoreResult(state_, output_, at, {sums[static_cast<size_t>(t * vectors + v)].name(), KindOf(form_.dtype)});
        }
      });
    }
  }

  PartitionState& state_;
  Emitter& e_;
  const StageOutput& output_;
  ConvolutionGeometry conv_;
  Expr weight_;
  size_t last_;           ///< axis of the lanes
  int64_t channels_in_;   ///< of a group
  int64_t channels_out_;  ///< of a group
  Buffer data_;
  Contraction form_;
  int64_t width_ = 0;  ///< of a panel: pixels
  int64_t tile_ = 0;   ///< of register tiles: output channels
  int64_t depth_ = 0;  ///< what a sum is of
  // The unit that is written:
  Ptr panel_;   ///< address
  I64s place_;  ///< image, group, coordinates of the row, piece
  I64 first_;   ///< pixel of the row
  I64 there_;   ///< how many pixels the piece has
};

}  // namespace

void EmitDynamicConvolution(PartitionState& state, const CallNode& call, const StageOutput& output) {
  DynamicConvolution(state, call, output).Run();
}

}  // namespace collage::native
