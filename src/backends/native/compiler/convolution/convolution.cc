// convolution.cc: convolutions as products: rows are the pixels of an image row, the inner dimensions are the taps and
// the channels of a group. A transposed convolution is one product for each of its phases (convolution_phases.h). Some
// convolutions have algorithms of their own, which are asked first.
#include "backends/native/compiler/convolution/convolution.h"

#include <algorithm>

#include "backends/native/compiler/contraction/bias.h"
#include "backends/native/compiler/contraction/block_tile.h"
#include "backends/native/compiler/contraction/strassen.h"
#include "backends/native/compiler/convolution/convolution_factors.h"
#include "backends/native/compiler/convolution/convolution_phases.h"
#include "backends/native/compiler/convolution/winograd.h"
#include "backends/native/compiler/stages/epilogue.h"
#include "backends/native/compiler/stages/loop_nest.h"
#include "backends/native/compiler/stages/padded_data.h"

namespace collage::native {

namespace {

/// Chooses the algorithm of a convolution, and writes it as products of its factors where no other algorithm takes it.
class ConvolutionEmitter {
 public:
  ConvolutionEmitter(PartitionState& state, const CallNode& call, const StageOutput& output)
      : state_(state),
        e_(state.emitter),
        call_(call),
        output_(output),
        conv_(call, output.result),
        factors_(state, call, conv_) {}

  void Run() {
    if (NumElements(conv_.result) == 0) return;
    if (factors_.ReadBytes()) return EmitProducts();
    if (!factors_.is_transposed() && EmitGroupedConv(state_, call_, conv_, output_)) return;
    const Expr& data = call_.args()[0];
    const DotKind pairs = PairsOf(state_, call_);
    // A product that somebody else wants, too, is in memory.
    const Result<ChannelScale> scale = ScaleOfWeights(call_);
    if (!IsNarrowed(state_, call_) && scale.ok() && state_.expressions.FindBuffer(data) == nullptr) {
      factors_.ScaleWeights(*scale);
    } else if (!factors_.is_transposed() && EmitWinograd(state_, call_, conv_, output_)) {
      return;
    } else if (IsPair(pairs)) {
      ++state_.num_narrow;
      factors_.UsePairs(pairs);
    }
    BeginWithBias();
    EmitProducts();
  }

 private:
  void EmitProducts() { factors_.is_transposed() ? EmitTransposed() : EmitPlain(); }

  /// Sums begin with the constants that are added to them. What libraries compute begins with zeros.
  void BeginWithBias() {
    if (conv_.groups > 1 || factors_.dtype() != kFloat32 || state_.options.calls_for_tiles()) return;
    bias_ = BiasOf(state_, output_, /*axis=*/1, PanelWidth(state_, factors_.dtype()));
    if (bias_) output_ = bias_->output;
  }

  void EmitPlain() {
    if (factors_.is_in_pairs() && factors_.SkipsPixels()) {
      data_ = factors_.PixelsThatAreRead();
      std::ranges::fill(conv_.stride, 1);
    } else if (const std::optional<PhaseGrid> parts = PartsOfSparePadding()) {
      return EmitParts(*parts);
    } else {
      data_ = factors_.Data(conv_.pad_before, conv_.pad_after);
    }
    EmitPhase(PlainPhase(conv_));
  }

  /// As PhasesWithoutPadding, for numbers of which zeros in the padding add nothing.
  std::optional<PhaseGrid> PartsOfSparePadding() const {
    if (factors_.is_in_words() || factors_.is_in_pairs() || state_.options.calls_for_tiles()) return std::nullopt;
    return PhasesWithoutPadding(conv_);
  }

  /// Parts of the image, each with its taps of the weights, which are packed once for all.
  void EmitParts(const PhaseGrid& parts) {
    const std::vector<int64_t> none(conv_.rank, 0);
    data_ = factors_.Data(none, none);
    const ConvolutionPhase all = PlainPhase(conv_);
    const PackedWords packed = factors_.Pack(all);
    parts.ForEach([&](const ConvolutionPhase& part) {
      Contraction form = FormOf(packed);
      ReadTaps(form, packed, all, part);
      EmitAllLines(form, part);
    });
  }

  void EmitTransposed() {
    if (!factors_.is_in_words() && HasOnePixel(conv_)) return EmitOnePixel();
    const TransposedPhases phases(conv_);
    data_ = factors_.Data(phases.before, phases.after);
    phases.ForEach([&](const ConvolutionPhase& phase) { EmitPhase(phase); });
  }

  /// Rows are images, and each output is a product with a tap of its own.
  void EmitOnePixel() {
    const std::vector<int64_t> none(conv_.rank, 0);
    data_ = factors_.Data(none, none);
    const ConvolutionPhase phase = OnePixelPhase(conv_);
    const PackedWords packed = factors_.Pack(phase);
    const int64_t group_in = GroupElements();
    Contraction form = FormOf(packed);
    form.outer = {conv_.groups};
    for (const PhaseAxis& axis : phase) form.outer.push_back(axis.taps);
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
      for (size_t d = 0; d < phase.size(); ++d) flat = e_.AddInt(e_.MulInt(flat, phase[d].taps), outer[d + 1]);
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

  /// Returns the number of elements that a sum of one tap adds up.
  int64_t GroupElements() const { return factors_.num_elements() / conv_.groups; }

  /// Returns the fields that products of all kinds share.
  Contraction FormOf(const PackedWords& packed) {
    Contraction form = FormWithoutWeights();
    packed.ReadBy(form, state_);
    form.b_row_stride = packed.words.shape.back();
    form.b_panel_stride = packed.words.strides[1];
    form.b_constant = ConstantNumber(packed.words);
    // A group begins with its first word.
    form.a_is_aligned = HasAlignedRows(data_, 1) && (conv_.groups == 1 || GroupElements() % 4 == 0);
    StartWithBias(form);
    return form;
  }

  Contraction FormWithoutWeights() {
    Contraction form;
    factors_.SetTypes(form);
    form.channels = conv_.result[1] / conv_.groups;
    form.depth_stride = data_.shape[1] == 1 ? 1 : data_.strides[1];
    return form;
  }

  void StartWithBias(Contraction& form) {
    if (bias_) {
      form.start = [&](const I64s&, const I64& panel, int64_t first) {
        return bias_->At(e_, e_.Plus(e_.MulInt(panel, PanelWidth(state_, factors_.dtype())), first));
      };
    }
  }

  /// The result's channel of a group's.
  Index ChannelOf(const I64& group, const Index& channel) {
    return conv_.groups == 1 ? channel : e_.Sum(e_.Scaled({group, 0}, conv_.result[1] / conv_.groups), channel);
  }

  void EmitPhase(const ConvolutionPhase& phase) {
    const bool is_pointwise = IsPointwise(phase);
    if (is_pointwise && EmitInHalves(phase)) return;
    const PackedWords packed = factors_.Pack(phase);
    Contraction form = FormOf(packed);
    ReadTaps(form, packed, phase, phase);
    if (is_pointwise) {
      TakePixels(form);
      return EmitContraction(state_, form, output_);
    }
    if (const std::optional<Contraction> image = ImageOf(form, phase)) return EmitContraction(state_, *image, output_);
    EmitAllLines(form, phase);
  }

  /// Lets `form` read the taps of `phase` from weights that were packed with all taps of `packed_for`.
  void ReadTaps(Contraction& form, const PackedWords& packed, const ConvolutionPhase& packed_for,
                const ConvolutionPhase& phase) {
    // [groups, panels, taps and channels flattened, width]
    form.b_address = [this, &packed, packed_for, phase](const I64s& outer, const I64& panel, const I64s& k) {
      I64 flat = e_.Int(0);
      for (size_t d = 0; d < k.size(); ++d) {
        const bool is_tap = d < phase.size();
        const I64 at = is_tap ? e_.Plus(k[d], phase[d].first_tap - packed_for[d].first_tap) : k[d];
        flat = d == 0 ? at : e_.AddInt(e_.MulInt(flat, is_tap ? packed_for[d].taps : GroupElements()), at);
      }
      return e_.Address(packed.words, Bases({outer[0], panel, flat, e_.Int(0)}));
    };
  }

  void EmitAllLines(const Contraction& form, const ConvolutionPhase& phase) {
    const size_t rank = phase.size();
    const int64_t all = rank > 1 ? phase[rank - 2].outputs : 1;
    const int64_t lines = rank > 1 ? LinesPerTile(phase.back().outputs, all) : 1;
    EmitLines(form, phase, {0, all / lines, lines});
    if (all % lines != 0) EmitLines(form, phase, {all - all % lines, 1, all % lines});
  }

  /// `form` with all pixels of all images as rows of one product, for blocks of a GPU's warps; nothing where none
  /// compute it.
  std::optional<Contraction> ImageOf(Contraction form, const ConvolutionPhase& phase) {
    const size_t rank = phase.size();
    std::vector<int64_t> pixels{conv_.result[0]};
    form.outer = {conv_.groups};
    form.row_parts = {{conv_.result[0], data_.strides[0]}};
    for (size_t d = 0; d < rank; ++d) {
      pixels.push_back(phase[d].outputs);
      form.row_parts.push_back({phase[d].outputs, data_.strides[d + 2] * phase[d].stride});
      form.inner.push_back(phase[d].taps);
    }
    form.rows = NumElements(pixels);
    form.inner.push_back(GroupElements());
    // Taps of few channels follow each other within a step of the sum.
    constexpr int64_t kManyChannels = 32;
    if (form.inner.back() % kManyChannels != 0) {
      for (const PhaseAxis& axis : phase) {
        form.depth_parts.push_back({axis.taps, axis.tap_step * data_.strides[form.depth_parts.size() + 2]});
      }
      form.depth_parts.push_back({GroupElements(), form.depth_stride});
      form.a_is_aligned = form.a_is_aligned && GroupElements() % 4 == 0;
      form.inner = {NumElements(form.inner)};
      form.b_address = [flat = form.b_address, inner = form.depth_parts.size(), this](const I64s& outer,
                                                                                      const I64& panel, const I64s& k) {
        I64s at(inner, e_.Int(0));
        at.back() = k[0];
        return flat(outer, panel, at);
      };
    }
    form.a_address = [this, phase, rank, is_flat = !form.depth_parts.empty()](const I64s& outer, const I64&,
                                                                              const I64s& k) {
      const I64 channel = is_flat ? e_.Int(0) : k.back();
      I64s at{e_.Int(0), e_.AddInt(e_.MulInt(outer[0], GroupElements()), channel)};
      for (size_t d = 0; d < rank; ++d) {
        at.push_back(is_flat ? e_.Int(phase[d].base) : e_.Plus(e_.MulInt(k[d], phase[d].tap_step), phase[d].base));
      }
      return e_.Address(data_, Bases(at));
    };
    form.result = [this, phase, rank, pixels](const I64s& outer, const I64& row, const Index& channel) {
      const I64s parts = Delinearise(e_, row, pixels);
      Indices at{{parts[0], 0}, ChannelOf(outer[0], channel)};
      for (size_t d = 0; d < rank; ++d) {
        at.push_back({e_.Plus(e_.MulInt(parts[d + 1], phase[d].step), phase[d].first), 0});
      }
      return at;
    };
    if (!BlockTile::Takes(state_, form)) return std::nullopt;
    return form;
  }

  /// Rows of an image that share a register tile, `count` times, from row `first` on.
  struct Lines {
    int64_t first = 0, count = 1, per_tile = 1;
  };

  /// Returns the number of rows of `width` pixels that share a register tile, out of `all`. Small images have many
  /// weights: each vector of them is read once for all rows of the tile.
  int64_t LinesPerTile(int64_t width, int64_t all) const {
    if (state_.options.calls_for_tiles()) return 1;
    const int64_t most = std::clamp<int64_t>(MostTileRows(state_, factors_.dtype(), factors_.kind()) / width, 1, all);
    for (int64_t lines = most; lines * 2 > most; --lines) {
      if (all % lines == 0) return lines;
    }
    return most;
  }

  void EmitLines(Contraction form, const ConvolutionPhase& phase, const Lines& lines) {
    const size_t rank = phase.size();
    const int64_t group_in = GroupElements();
    const int64_t width = phase.back().outputs;
    form.outer = {conv_.groups, conv_.result[0]};
    for (size_t d = 0; d + 1 < rank; ++d) form.outer.push_back(d + 2 < rank ? phase[d].outputs : lines.count);
    form.rows = width * lines.per_tile;
    for (const PhaseAxis& axis : phase) form.inner.push_back(axis.taps);
    form.inner.push_back(group_in);
    form.row_stride = data_.strides[rank + 1] * phase.back().stride;
    if (lines.per_tile > 1) {
      form.line = width;
      form.line_stride = data_.strides[rank] * phase[rank - 2].stride;
    }
    form.result_row_stride = output_.buffer.strides[rank + 1] * phase.back().step;
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
        const I64 first = e_.MulInt(output_at(d, outer, row), phase[d].stride);
        at.push_back(e_.Plus(e_.AddInt(first, e_.MulInt(k[d], phase[d].tap_step)), phase[d].base));
      }
      return e_.Address(data_, Bases(at));
    };
    form.result = [&](const I64s& outer, const I64& row, const Index& channel) {
      Indices at{{outer[1], 0}, ChannelOf(outer[0], channel)};
      for (size_t d = 0; d < rank; ++d) {
        at.push_back({e_.Plus(e_.MulInt(output_at(d, outer, row), phase[d].step), phase[d].first), 0});
      }
      return at;
    };
    EmitContraction(state_, form, output_);
  }

  /// One tap, each pixel of the result the same pixel of the data: all pixels of all images are one column of rows.
  bool IsPointwise(const ConvolutionPhase& phase) const {
    return std::all_of(phase.begin(), phase.end(),
                       [](const PhaseAxis& axis) {
                         return axis.taps == 1 && axis.stride == 1 && axis.base == 0 && axis.step == 1;
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
  bool EmitInHalves(const ConvolutionPhase& phase) {
    if (factors_.is_scaled()) return false;
    Contraction form = FormWithoutWeights();
    StartWithBias(form);
    TakePixels(form);
    return EmitStrassen(state_, form, call_.args()[1], factors_.PackingOf(phase), output_);
  }

  /// All pixels of all images are rows of one matrix.
  void TakePixels(Contraction& form) {
    const int64_t channels = factors_.num_elements();
    const int64_t group_in = GroupElements();
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
  ConvolutionFactors factors_;
  Buffer data_;
  std::optional<Bias> bias_;  ///< the sums begin with it
};

}  // namespace

void EmitConvolution(PartitionState& state, const CallNode& call, const StageOutput& output) {
  ConvolutionEmitter(state, call, output).Run();
}

}  // namespace collage::native
