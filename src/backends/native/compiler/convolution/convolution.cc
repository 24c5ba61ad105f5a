// convolution.cc: convolutions as products: rows are the pixels of an image row, the inner dimensions are the taps and
// the channels of a group. A transposed convolution is one product for each phase of its output positions modulo the
// strides: the taps that reach a phase are evenly spaced, and so are the inputs that they read. Some convolutions have
// algorithms of their own, which are asked first.
#include "backends/native/compiler/convolution/convolution.h"

#include <algorithm>
#include <numeric>

#include "backends/native/compiler/contraction/bf16_dot.h"
#include "backends/native/compiler/contraction/bias.h"
#include "backends/native/compiler/contraction/int8_dot.h"
#include "backends/native/compiler/contraction/strassen.h"
#include "backends/native/compiler/convolution/winograd.h"
#include "backends/native/compiler/stages/elements.h"
#include "backends/native/compiler/stages/epilogue.h"
#include "backends/native/compiler/stages/loop_nest.h"
#include "backends/native/compiler/stages/materialise.h"
#include "backends/native/compiler/stages/padded_data.h"
#include "backends/native/description/scaled_convolution.h"
#include "collage/support/error.h"

namespace collage::native {

namespace {

/// One spatial dimension of a product: output `first + o * step` reads the padded data at o * stride + j * tap_step +
/// base for j in [0, taps), with the weight's tap first_tap + j * tap_distance.
struct Walk {
  int64_t outputs = 1, first = 0, step = 1;
  int64_t stride = 1, tap_step = 1, base = 0;
  int64_t taps = 1, first_tap = 0, tap_distance = 1;
};

class ConvolutionEmitter {
 public:
  ConvolutionEmitter(PartitionState& state, const CallNode& call, const StageOutput& output)
      : state_(state),
        e_(state.emitter),
        call_(call),
        output_(output),
        conv_(call, output.result),
        is_transposed_(call.op()->name.ends_with("_transpose")),
        dtype_(SumType(TensorTypeOf(call.args()[0]).dtype())),
        channels_(conv_.data[1]) {}

  void Run() {
    if (NumElements(conv_.result) == 0) return;
    if (ReadBytes()) return is_transposed_ ? RunTransposed() : RunPlain();
    if (!is_transposed_ && EmitGroupedConv(state_, call_, conv_, output_)) return;
    const Expr& data = call_.args()[0];
    const bool in_pairs = IsInPairs(state_, call_);
    // A product that somebody else wants, too, is in memory.
    const Result<ChannelScale> scale = ScaleOfWeights(call_);
    if (!IsNarrowed(state_, call_) && scale.ok() && state_.expressions.FindBuffer(data) == nullptr) {
      scale_ = *scale;
    } else if (!is_transposed_ && EmitWinograd(state_, call_, conv_, output_)) {
      return;
    } else if (in_pairs) {
      ++state_.num_narrow;
      per_element_ = 2;
    }
    BeginWithBias();
    is_transposed_ ? RunTransposed() : RunPlain();
  }

 private:
  /// Whether it is a product of integers of 8 bits; if so, how it is computed is kept.
  bool ReadBytes() {
    const auto is_some = [](int64_t pad) { return pad != 0; };
    const bool is_padded = is_transposed_ || std::ranges::any_of(conv_.pad_before, is_some) ||
                           std::ranges::any_of(conv_.pad_after, is_some);
    bytes_ = ReadInt8Dot(state_, call_.args()[0], call_.args()[1], is_transposed_ ? 1 : 0, is_padded,
                         /*may_be_late=*/false);
    if (!bytes_) return false;
    // Words hold channels of one group. Where groups have few, lanes run over several of them instead
    // (EmitGroupedConv).
    const int64_t group_in = conv_.data[1] / conv_.groups;
    const bool fits = group_in % bytes_->per_word == 0 && conv_.result[1] / conv_.groups * 2 >= e_.lanes();
    if (conv_.groups > 1 && !fits) {
      bytes_.reset();
      return false;
    }
    PadWeight(*bytes_, is_transposed_ ? 0 : 1);
    per_element_ = bytes_->per_word;
    channels_ = conv_.groups > 1 ? conv_.data[1] : bytes_->RoundUp(conv_.data[1]);
    dtype_ = kInt32;
    return true;
  }

  /// Sums begin with the constants that are added to them. What libraries compute begins with zeros.
  void BeginWithBias() {
    if (conv_.groups > 1 || dtype_ != kFloat32 || !state_.options.libraries.empty()) return;
    bias_ = BiasOf(state_, output_, /*axis=*/1, PanelWidth(state_, dtype_));
    if (bias_) output_ = bias_->output;
  }

  void RunPlain() {
    if (!bytes_ && per_element_ == 2 && SkipsPixels()) {
      data_ = AsPairs(PixelsThatAreRead(), 1);
      std::ranges::fill(conv_.stride, 1);
    } else {
      data_ = Data(conv_.pad_before, conv_.pad_after);
    }
    std::vector<Walk> walks;
    for (size_t d = 0; d < conv_.rank; ++d) {
      Walk walk;
      walk.outputs = conv_.result[d + 2];
      walk.stride = conv_.stride[d];
      walk.tap_step = conv_.dilation[d];
      walk.taps = conv_.weight[d + 2];
      walks.push_back(walk);
    }
    EmitWalks(walks);
  }

  void RunTransposed() {
    if (!bytes_ && IsOnePixel()) return EmitOnePixel();
    std::vector<std::vector<Walk>> phases;
    std::vector<int64_t> before;
    std::vector<int64_t> after;
    for (size_t d = 0; d < conv_.rank; ++d) {
      phases.push_back(Phases(d));
      int64_t low = 0;
      int64_t high = conv_.data[d + 2] - 1;
      for (const Walk& walk : phases.back()) {
        if (walk.taps == 0) continue;
        const int64_t reach = (walk.taps - 1) * walk.tap_step;
        low = std::min(low, walk.base + std::min<int64_t>(reach, 0));
        high = std::max(high, walk.base + std::max<int64_t>(reach, 0) + walk.outputs - 1);
      }
      before.push_back(-low);
      after.push_back(high - conv_.data[d + 2] + 1);
      for (Walk& walk : phases.back()) walk.base -= low;
    }
    data_ = Data(before, after);
    std::vector<Walk> walks(conv_.rank);
    const std::function<void(size_t)> choose = [&](size_t d) {
      if (d == conv_.rank) return EmitWalks(walks);
      for (const Walk& walk : phases[d]) {
        walks[d] = walk;
        choose(d + 1);
      }
    };
    choose(0);
  }

  Buffer Data(const std::vector<int64_t>& before, const std::vector<int64_t>& after) {
    const Expr& data = call_.args()[0];
    if (bytes_) return WordImage(state_, *bytes_, before, after);
    const Layout layout = ReadsPlainData() ? Layout::kPlain : Layout::kChannelsLast;
    if (per_element_ == 1) return PaddedData(state_, scale_ ? scale_->data : data, before, after, dtype_, {}, layout);
    return AsPairs(PaddedData(state_, data, before, after, kBFloat16), 1);
  }

  /// Whether the data, of a few channels, lie in memory as planes: their elements are read one by one, so that it costs
  /// more to turn them than it helps.
  bool ReadsPlainData() const {
    constexpr int64_t kFew = 8;
    const Buffer* data = state_.expressions.FindBuffer(call_.args()[0]);
    return data != nullptr && data->dtype == dtype_ && conv_.data[1] <= kFew && data->is_contiguous();
  }

  /// Whether there is one tap, which steps over pixels of data that lie in memory channels-last.
  bool SkipsPixels() const {
    const auto all_are = [](const std::vector<int64_t>& values, int64_t wanted) {
      return std::ranges::all_of(values, [&](int64_t value) { return value == wanted; });
    };
    const Buffer* data = state_.expressions.FindBuffer(call_.args()[0]);
    return conv_.taps() == 1 && !all_are(conv_.stride, 1) && all_are(conv_.pad_before, 0) &&
           all_are(conv_.pad_after, 0) && data != nullptr && data->strides[1] == 1;
  }

  /// These alone, rounded to bfloat16: those between them need not be.
  Buffer PixelsThatAreRead() {
    Shape shape = conv_.data;
    for (size_t d = 0; d < conv_.rank; ++d) shape[d + 2] = conv_.result[d + 2];
    const Buffer pixels = state_.AddWorkspace(shape, Layout::kChannelsLast, kBFloat16);
    EmitElements(state_, pixels, [&](Indices at) {
      for (size_t d = 0; d < conv_.rank; ++d) at[d + 2] = e_.Scaled(at[d + 2], conv_.stride[d]);
      return state_.expressions.At(call_.args()[0], at);
    });
    return pixels;
  }

  /// Output o gets tap k of input i where i * stride = o + pad - k * dilation: with o + pad = q * stride + phase, the
  /// taps of the phase are every (stride / g)-th, g = gcd(stride, dilation), and each step of them goes dilation / g
  /// inputs back.
  std::vector<Walk> Phases(size_t d) const {
    const int64_t stride = conv_.stride[d];
    const int64_t dilation = conv_.dilation[d];
    const int64_t pad = conv_.pad_before[d];
    const int64_t kernel = conv_.weight[d + 2];
    const int64_t common = std::gcd(stride, dilation);
    std::vector<Walk> phases;
    for (int64_t first = 0; first < std::min(stride, conv_.result[d + 2]); ++first) {
      Walk walk;
      walk.first = first;
      walk.step = stride;
      walk.outputs = (conv_.result[d + 2] - first + stride - 1) / stride;
      const int64_t phase = (first + pad) % stride;
      walk.first_tap = 0;
      while (walk.first_tap < kernel && (walk.first_tap * dilation) % stride != phase) ++walk.first_tap;
      walk.tap_distance = stride / common;
      walk.taps = walk.first_tap < kernel ? (kernel - walk.first_tap + walk.tap_distance - 1) / walk.tap_distance : 0;
      walk.tap_step = -(dilation / common);
      walk.base = (first + pad - walk.first_tap * dilation) / stride;
      // The division is exact but for phases without taps, where it does not matter.
      phases.push_back(walk);
    }
    return phases;
  }

  /// Whether a transposed convolution's images are single pixels, so that each of its outputs gets one tap of it.
  bool IsOnePixel() const {
    for (size_t d = 0; d < conv_.rank; ++d) {
      const bool has_gaps = conv_.dilation[d] > 1 && conv_.weight[d + 2] > 1;
      if (conv_.data[d + 2] != 1 || has_gaps) return false;
      if (conv_.pad_before[d] + conv_.result[d + 2] > conv_.weight[d + 2]) return false;
    }
    return true;
  }

  /// Rows are images, and each output is a product with a tap of its own.
  void EmitOnePixel() {
    const std::vector<int64_t> none(conv_.rank, 0);
    data_ = Data(none, none);
    std::vector<Walk> walks(conv_.rank);
    for (size_t d = 0; d < conv_.rank; ++d) {
      walks[d].first_tap = conv_.pad_before[d];
      walks[d].taps = conv_.result[d + 2];
    }
    const PackedWords packed = Pack(walks);
    const int64_t group_in = channels_ / per_element_ / conv_.groups;
    Contraction form = FormOf(packed);
    form.outer = {conv_.groups};
    for (const Walk& walk : walks) form.outer.push_back(walk.taps);
    form.rows = conv_.result[0];
    form.inner = {group_in};
    form.row_stride = data_.strides[0];
    form.result_row_stride = output_.buffer.strides[0];
    form.a_address = [&](const I64s& outer, const I64& row, const I64s& k) {
      I64s at(conv_.rank + 2, e_.Int(0));
      at[0] = row;
      at[1] = e_.AddInt(e_.MulInt(outer[0], group_in), k[0]);
      return e_.Address(data_, Bases(at));
    };
    form.b_address = [&](const I64s& outer, const I64& panel, const I64s& k) {
      I64 flat = e_.Int(0);
      for (size_t d = 0; d < walks.size(); ++d) flat = e_.AddInt(e_.MulInt(flat, walks[d].taps), outer[d + 1]);
      flat = e_.AddInt(e_.MulInt(flat, group_in), k[0]);
      return e_.Address(packed.words, Bases({outer[0], panel, flat, e_.Int(0)}));
    };
    form.result = [&](const I64s& outer, const I64& row, const Index& channel) {
      Indices at{{row, 0}, ChannelOf(outer[0], channel)};
      for (size_t d = 0; d < conv_.rank; ++d) at.push_back({outer[d + 1], 0});
      return at;
    };
    EmitContraction(state_, form, output_);
  }

  /// What products of all kinds have in common.
  Contraction FormOf(const PackedWords& packed) {
    Contraction form = FormWithoutWeights();
    packed.ReadBy(form, state_);
    form.b_row_stride = packed.words.shape.back();
    StartWithBias(form);
    return form;
  }

  Contraction FormWithoutWeights() {
    Contraction form;
    form.dtype = dtype_;
    form.factors = bytes_ ? bytes_->factors : per_element_ == 2 ? DotKind::kBFloat16 : DotKind::kOne;
    form.flips_signs = bytes_ && bytes_->flips_signs;
    form.channels = conv_.result[1] / conv_.groups;
    form.depth_stride = data_.shape[1] == 1 ? 1 : data_.strides[1];
    return form;
  }

  void StartWithBias(Contraction& form) {
    if (bias_) {
      form.start = [&](const I64s&, const I64& panel, int64_t first) {
        return bias_->At(e_, e_.Plus(e_.MulInt(panel, PanelWidth(state_, dtype_)), first));
      };
    }
  }

  /// The result's channel of a group's.
  Index ChannelOf(const I64& group, const Index& channel) {
    return conv_.groups == 1 ? channel : e_.Sum(e_.Scaled({group, 0}, conv_.result[1] / conv_.groups), channel);
  }

  PackedWeights PackingOf(const std::vector<Walk>& walks) {
    const int64_t group_in = channels_ / conv_.groups;
    const int64_t group_out = conv_.result[1] / conv_.groups;
    PackedWeights packing;
    packing.groups = conv_.groups;
    packing.channels = group_out;
    for (const Walk& walk : walks) packing.inner.push_back(walk.taps);
    packing.inner.push_back(group_in);
    packing.at = [this, walks, group_in, group_out](const Index& group, const Index& channel, const Indices& inner) {
      Indices at;
      if (is_transposed_) {
        at = {e_.Sum(e_.Scaled(group, group_in), inner.back()), channel};
      } else {
        at = {e_.Sum(e_.Scaled(group, group_out), channel), inner.back()};
      }
      for (size_t d = 0; d < walks.size(); ++d)
        at.push_back(e_.Shifted(e_.Scaled(inner[d], walks[d].tap_distance), walks[d].first_tap));
      return at;
    };
    packing.offset = [this, walks, group_in, group_out](const Shape& shape, int64_t group, int64_t channel,
                                                        const std::vector<int64_t>& inner) {
      int64_t at = is_transposed_ ? (group * group_in + inner.back()) * shape[1] + channel
                                  : (group * group_out + channel) * shape[1] + inner.back();
      for (size_t d = 0; d < walks.size(); ++d)
        at = at * shape[d + 2] + walks[d].first_tap + inner[d] * walks[d].tap_distance;
      return at;
    };
    return packing;
  }

  /// Where they are no bytes, the packed weights alone.
  PackedWords Pack(const std::vector<Walk>& walks) {
    const PackedWeights packing = PackingOf(walks);
    if (bytes_) return PackWords(state_, *bytes_, packing);
    if (per_element_ == 2) return {PackPairs(state_, call_.args()[1], packing), {}, {}};
    const Buffer packed = PackWeights(state_, call_.args()[1], packing, dtype_);
    return {scale_ ? Scaled(packed) : packed, {}, {}};
  }

  /// Packed weights, each times the scale of the channel that it is multiplied with.
  Buffer Scaled(const Buffer& packed) {
    const Buffer of_channels = Materialise(state_, scale_->scale, Layout::kPlain);
    const size_t missing = conv_.rank + 2 - of_channels.shape.size();
    const Buffer scaled = state_.AddWorkspace(packed.shape, Layout::kPlain, dtype_);
    EmitElements(state_, scaled, [&](const Indices& at) {
      Indices channel(of_channels.shape.size(), e_.Zero());
      channel[1 - missing] = e_.Divided(at[2], channels_).second;
      return state_.math().Multiply(e_.Load(packed, at), e_.Load(of_channels, channel));
    });
    return scaled;
  }

  void EmitWalks(const std::vector<Walk>& walks) {
    const size_t rank = walks.size();
    const int64_t group_in = channels_ / per_element_ / conv_.groups;
    const bool is_pointwise = IsPointwise(walks);
    if (is_pointwise && EmitInHalves(walks)) return;
    const PackedWords packed = Pack(walks);
    const Buffer& b = packed.words;
    Contraction form = FormOf(packed);
    // [groups, panels, taps and channels flattened, width]
    form.b_address = [&, walks](const I64s& outer, const I64& panel, const I64s& k) {
      I64 flat = k[0];
      for (size_t d = 1; d < k.size(); ++d)
        flat = e_.AddInt(e_.MulInt(flat, d < walks.size() ? walks[d].taps : group_in), k[d]);
      return e_.Address(b, Bases({outer[0], panel, flat, e_.Int(0)}));
    };
    if (is_pointwise) {
      TakePixels(form);
      return EmitContraction(state_, form, output_);
    }
    const int64_t all = rank > 1 ? walks[rank - 2].outputs : 1;
    const int64_t lines = rank > 1 ? LinesPerTile(walks.back().outputs, all) : 1;
    EmitLines(form, walks, {0, all / lines, lines});
    if (all % lines != 0) EmitLines(form, walks, {all - all % lines, 1, all % lines});
  }

  /// Rows of an image that share a register tile, `count` times, from row `first` on.
  struct Lines {
    int64_t first = 0, count = 1, per_tile = 1;
  };

  /// Of images so small that a register tile has room for several rows of `width` pixels: each vector of weights, which
  /// are many where images are small, is read once for all of them.
  int64_t LinesPerTile(int64_t width, int64_t all) const {
    if (!state_.options.libraries.empty()) return 1;
    const int64_t most = std::clamp<int64_t>(MostTileRows(state_, dtype_) / width, 1, all);
    for (int64_t lines = most; lines * 2 > most; --lines) {
      if (all % lines == 0) return lines;
    }
    return most;
  }

  void EmitLines(Contraction form, const std::vector<Walk>& walks, const Lines& lines) {
    const size_t rank = walks.size();
    const int64_t group_in = channels_ / per_element_ / conv_.groups;
    const int64_t width = walks.back().outputs;
    form.outer = {conv_.groups, conv_.result[0]};
    for (size_t d = 0; d + 1 < rank; ++d) form.outer.push_back(d + 2 < rank ? walks[d].outputs : lines.count);
    form.rows = width * lines.per_tile;
    for (const Walk& walk : walks) form.inner.push_back(walk.taps);
    form.inner.push_back(group_in);
    form.row_stride = data_.strides[rank + 1] * walks.back().stride;
    if (lines.per_tile > 1) {
      form.line = width;
      form.line_stride = data_.strides[rank] * walks[rank - 2].stride;
    }
    form.result_row_stride = output_.buffer.strides[rank + 1] * walks.back().step;
    // The output of dimension d at `row` of a tile, which is all that there are in one where lines share it.
    const auto output_at = [&](size_t d, const I64s& outer, const I64& row) {
      if (d + 2 < rank) return outer[d + 2];
      if (d + 1 == rank) return lines.per_tile == 1 ? row : e_.IntOp("remui", row, e_.Int(width));
      const I64 first = e_.Plus(e_.MulInt(outer[d + 2], lines.per_tile), lines.first);
      return lines.per_tile == 1 ? first : e_.AddInt(first, e_.IntOp("divui", row, e_.Int(width)));
    };
    form.a_address = [&](const I64s& outer, const I64& row, const I64s& k) {
      I64s at{outer[1], e_.AddInt(e_.MulInt(outer[0], group_in), k.back())};
      for (size_t d = 0; d < rank; ++d) {
        const I64 first = e_.MulInt(output_at(d, outer, row), walks[d].stride);
        at.push_back(e_.Plus(e_.AddInt(first, e_.MulInt(k[d], walks[d].tap_step)), walks[d].base));
      }
      return e_.Address(data_, Bases(at));
    };
    form.result = [&](const I64s& outer, const I64& row, const Index& channel) {
      Indices at{{outer[1], 0}, ChannelOf(outer[0], channel)};
      for (size_t d = 0; d < rank; ++d) {
        at.push_back({e_.Plus(e_.MulInt(output_at(d, outer, row), walks[d].step), walks[d].first), 0});
      }
      return at;
    };
    EmitContraction(state_, form, output_);
  }

  /// One tap, each pixel of the result the same pixel of the data: all pixels of all images are one column of rows.
  bool IsPointwise(const std::vector<Walk>& walks) const {
    return std::all_of(walks.begin(), walks.end(),
                       [](const Walk& walk) {
                         return walk.taps == 1 && walk.stride == 1 && walk.base == 0 && walk.step == 1;
                       }) &&
           Shape(data_.shape.begin() + 2, data_.shape.end()) == Shape(conv_.result.begin() + 2, conv_.result.end()) &&
           IsDense(data_);
  }

  /// The dimension along which a pixel's number may stand for all its coordinates, since every value of the epilogue
  /// has its pixels one after the other; nothing where some value has not.
  std::optional<size_t> ColumnOfPixels() const {
    std::vector<int> axes{0};
    for (size_t d = 2; d < conv_.result.size(); ++d) axes.push_back(static_cast<int>(d));
    if (!CanMerge(state_, output_, axes, conv_.result[1])) return {};
    // Coordinates of dimensions of size 1 are not looked at.
    while (axes.size() > 1 && conv_.result[static_cast<size_t>(axes.back())] == 1) axes.pop_back();
    return static_cast<size_t>(axes.back());
  }

  /// By Strassen's algorithm, where that is possible and faster.
  bool EmitInHalves(const std::vector<Walk>& walks) {
    if (scale_) return false;
    Contraction form = FormWithoutWeights();
    StartWithBias(form);
    TakePixels(form);
    return EmitStrassen(state_, form, call_.args()[1], PackingOf(walks), output_);
  }

  /// All pixels of all images are rows of one matrix.
  void TakePixels(Contraction& form) {
    const int64_t channels = channels_ / per_element_;
    const int64_t group_in = channels / conv_.groups;
    form.outer = {conv_.groups};
    form.rows = NumElements(conv_.result) / conv_.result[1];
    form.inner = {group_in};
    form.row_stride = channels;
    if (IsDense(output_.buffer)) form.result_row_stride = conv_.result[1];
    Buffer flat = data_;
    flat.shape = {form.rows, channels};
    flat.strides = {channels, 1};
    form.a_address = [this, flat, group_in](const I64s& outer, const I64& row, const I64s& k) {
      return e_.Address(flat, Bases({row, e_.AddInt(e_.MulInt(outer[0], group_in), k[0])}));
    };
    Shape pixels{conv_.result[0]};
    pixels.insert(pixels.end(), conv_.result.begin() + 2, conv_.result.end());
    const std::optional<size_t> column = ColumnOfPixels();
    form.result = [this, pixels, column](const I64s& outer, const I64& row, const Index& channel) {
      if (column) {
        Indices at(conv_.result.size(), e_.Zero());
        at[1] = ChannelOf(outer[0], channel);
        at[*column] = {row, 0};
        return at;
      }
      const I64s parts = Delinearise(e_, row, pixels);
      Indices at{{parts[0], 0}, ChannelOf(outer[0], channel)};
      for (size_t d = 1; d < parts.size(); ++d) at.push_back({parts[d], 0});
      return at;
    };
  }

  PartitionState& state_;
  Emitter& e_;
  const CallNode& call_;
  StageOutput output_;
  ConvolutionGeometry conv_;
  bool is_transposed_;
  DataType dtype_;
  std::optional<Int8Dot> bytes_;
  int64_t channels_;         ///< of the data, with those that fill the last word
  int64_t per_element_ = 1;  ///< channels in an element of the product: 2 in pairs
  Buffer data_;
  std::optional<Bias> bias_;           ///< what sums begin with
  std::optional<ChannelScale> scale_;  ///< where the weights are multiplied by it, not the data
};

}  // namespace

void EmitConvolution(PartitionState& state, const CallNode& call, const StageOutput& output) {
  ConvolutionEmitter(state, call, output).Run();
}

}  // namespace collage::native
