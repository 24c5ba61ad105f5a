// small_groups.cc: depthwise convolutions, and those whose groups have fewer channels than a vector: a vector holds the
// same pixel of neighbouring channels, of several groups; for each channel within the groups, a shuffle spreads it over
// the lanes of its group.
#include "backends/native/compiler/convolution.h"

namespace collage::native {
namespace {

constexpr int64_t kMostColumns = 6;  // pixels of a row that are summed at a time

class SmallGroups {
 public:
  SmallGroups(PartitionState& state, const CallNode& call, const ConvolutionGeometry& conv, const StageOutput& output)
      : state_(state),
        e_(state.emitter),
        call_(call),
        conv_(conv),
        output_(output),
        group_(conv.weight[1]),
        channels_(conv.data[1]) {}

  void Run() {
    data_ = PaddedData(state_, call_.args()[0], conv_.pad_before, conv_.pad_after, kFloat32);
    PackTaps();
    const size_t rank = conv_.rank;
    std::vector<int64_t> units{conv_.result[0]};
    for (size_t d = 0; d + 1 < rank; ++d) units.push_back(conv_.result[d + 2]);
    const int64_t width = conv_.result.back();
    const int64_t tiles = (width + kMostColumns - 1) / kMostColumns;
    const int64_t columns = (width + tiles - 1) / tiles;
    const std::string name = state_.NextStageName();
    e_.Function(name, [&](const std::string& begin, const std::string& end) {
      e_.For(begin, end, 1, [&](const std::string& unit) {
        const Names outer = Delinearise(e_, unit, units);
        const int64_t whole = width / columns * columns;
        e_.For(e_.Int(0), e_.Int(whole), columns, [&](const std::string& column) { EmitTile(outer, column, columns); });
        if (whole < width) EmitTile(outer, e_.Int(whole), width - whole);
      });
    });
    e_.Call(name, NumElements(units), state_.IsParallel(conv_.flops()));
  }

 private:
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

  /// `count` pixels of one row of the result, all channels.
  void EmitTile(const Names& outer, const std::string& column, int64_t count) {
    e_.ForLanes(channels_, [&](const std::string& channel) {
      const Names sums = Taps(outer, column, count, channel, {}, Names(static_cast<size_t>(count), e_.Splat(0)));
      for (int64_t t = 0; t < count; ++t) {
        Indices at{{outer[0], 0}, {channel, 1, "", e_.lanes()}};
        for (size_t d = 1; d < outer.size(); ++d) at.push_back({outer[d], 0});
        at.push_back({e_.Plus(column, t), 0});
        StoreResult(state_, output_, at, {sums[static_cast<size_t>(t)]});
      }
    });
  }

  /// Loops over the taps of all dimensions but the last, whose taps are written out.
  Names Taps(const Names& outer, const std::string& column, int64_t count, const std::string& channel,
             const Names& taps, const Names& sums) {
    const size_t d = taps.size();
    if (d + 1 < conv_.rank) {
      return e_.ForCarrying(e_.Int(0), e_.Int(conv_.weight[d + 2]), sums, e_.FloatVector(),
                            [&](const std::string& tap, const Names& carried) {
                              Names deeper = taps;
                              deeper.push_back(tap);
                              return Taps(outer, column, count, channel, deeper, carried);
                            });
    }
    Indices pixel{{outer[0], 0}, {channel, 1}};
    for (size_t i = 0; i < d; ++i) {
      pixel.push_back({e_.AddInt(e_.MulInt(outer[i + 1], conv_.stride[i]), e_.MulInt(taps[i], conv_.dilation[i])), 0});
    }
    pixel.push_back({});
    Names next = sums;
    for (int64_t tap = 0; tap < conv_.weight.back(); ++tap) {
      for (int64_t t = 0; t < count; ++t) {
        pixel.back() = {
            e_.Plus(e_.MulInt(column, conv_.stride.back()), t * conv_.stride.back() + tap * conv_.dilation.back()), 0};
        const std::string value = e_.Load(data_, pixel).name;
        for (int64_t i = 0; i < group_; ++i) {
          Indices at = Bases(taps);
          at.insert(at.end(), {{e_.Int(tap), 0}, {e_.Int(i), 0}, {channel, 1}});
          const std::string weight = e_.Load(taps_, at).name;
          std::string& sum = next[static_cast<size_t>(t)];
          sum = e_.Def(fmt::format("math.fma {}, {}, {} : {}", Spread(value, i), weight, sum, e_.FloatVector()));
        }
      }
    }
    return next;
  }

  /// Channel `i` of each group in all lanes of the group.
  std::string Spread(const std::string& value, int64_t i) {
    if (group_ == 1) return value;
    std::string lanes;
    for (int64_t lane = 0; lane < e_.lanes(); ++lane)
      lanes += fmt::format("{}{}", lane ? ", " : "", lane / group_ * group_ + i);
    return e_.Def(fmt::format("vector.shuffle {0}, {0} [{1}] : {2}, {2}", value, lanes, e_.FloatVector()));
  }

  PartitionState& state_;
  Emitter& e_;
  const CallNode& call_;
  const ConvolutionGeometry& conv_;
  const StageOutput& output_;
  int64_t group_;
  int64_t channels_;
  Buffer data_;
  Buffer taps_;
};

}  // namespace

bool EmitSmallGroups(PartitionState& state, const CallNode& call, const ConvolutionGeometry& conv,
                     const StageOutput& output) {
  const int64_t group = conv.weight[1];
  const int64_t lanes = state.emitter.lanes();
  const bool is_square = conv.data[1] == conv.result[1] && conv.groups > 1;
  const bool fits = group == 1 || (group < lanes && lanes % group == 0);
  if (!is_square || !fits || SumType(TensorTypeOf(call.args()[0]).dtype()) != kFloat32) return false;
  SmallGroups(state, call, conv, output).Run();
  return true;
}

}  // namespace collage::native
