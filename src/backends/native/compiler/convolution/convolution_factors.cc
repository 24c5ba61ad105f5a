// convolution_factors.cc: lays out the data and packs the weights of convolutions.
#include "backends/native/compiler/convolution/convolution_factors.h"

#include <algorithm>

#include "backends/native/compiler/stages/elements.h"
#include "backends/native/compiler/stages/materialise.h"
#include "backends/native/compiler/stages/padded_data.h"

namespace collage::native {

ConvolutionFactors::ConvolutionFactors(PartitionState& state, const CallNode& call, const ConvolutionGeometry& conv)
    : state_(state),
      e_(state.emitter),
      call_(call),
      conv_(conv),
      is_transposed_(call.op()->name.ends_with("_transpose")),
      dtype_(SumType(TensorTypeOf(call.args()[0]).dtype())),
      channels_(conv.data[1]) {}

bool ConvolutionFactors::ReadBytes() {
  const auto is_some = [](int64_t pad) { return pad != 0; };
  const bool is_padded =
      is_transposed_ || std::ranges::any_of(conv_.pad_before, is_some) || std::ranges::any_of(conv_.pad_after, is_some);
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

// ---- data ----

Buffer ConvolutionFactors::Data(const std::vector<int64_t>& before, const std::vector<int64_t>& after) {
  const Expr& data = call_.args()[0];
  if (bytes_) return WordImage(state_, *bytes_, before, after);
  const Layout layout = ReadsPlainData() ? Layout::kPlain : Layout::kChannelsLast;
  if (per_element_ == 1) return PaddedData(state_, scale_ ? scale_->data : data, before, after, dtype_, {}, layout);
  return AsPairs(PaddedData(state_, data, before, after, HalfOf(pairs_)), 1);
}

bool ConvolutionFactors::ReadsPlainData() const {
  constexpr int64_t kFew = 8;
  const Buffer* data = state_.expressions.FindBuffer(call_.args()[0]);
  return data != nullptr && data->dtype == dtype_ && conv_.data[1] <= kFew && data->is_contiguous();
}

bool ConvolutionFactors::SkipsPixels() const {
  const auto all_are = [](const std::vector<int64_t>& values, int64_t wanted) {
    return std::ranges::all_of(values, [&](int64_t value) { return value == wanted; });
  };
  const Buffer* data = state_.expressions.FindBuffer(call_.args()[0]);
  return conv_.taps() == 1 && !all_are(conv_.stride, 1) && all_are(conv_.pad_before, 0) &&
         all_are(conv_.pad_after, 0) && data != nullptr && data->strides[1] == 1;
}

Buffer ConvolutionFactors::PixelsThatAreRead() {
  Shape shape = conv_.data;
  for (size_t d = 0; d < conv_.rank; ++d) shape[d + 2] = conv_.result[d + 2];
  const Buffer pixels = state_.AddWorkspace(shape, Layout::kChannelsLast, HalfOf(pairs_));
  EmitElements(state_, pixels, [&](Indices at) {
    for (size_t d = 0; d < conv_.rank; ++d) at[d + 2] = e_.Scaled(at[d + 2], conv_.stride[d]);
    return state_.expressions.At(call_.args()[0], at);
  });
  return AsPairs(pixels, 1);
}

// ---- weights ----

PackedWeights ConvolutionFactors::PackingOf(const ConvolutionPhase& phase) const {
  const int64_t group_in = channels_ / conv_.groups;
  const int64_t group_out = conv_.result[1] / conv_.groups;
  PackedWeights packing;
  packing.groups = conv_.groups;
  packing.channels = group_out;
  for (const PhaseAxis& axis : phase) packing.inner.push_back(axis.taps);
  packing.inner.push_back(group_in);
  packing.at = [this, phase, group_in, group_out](const Index& group, const Index& channel, const Indices& inner) {
    Indices at;
    if (is_transposed_) {
      at = {e_.Sum(e_.Scaled(group, group_in), inner.back()), channel};
    } else {
      at = {e_.Sum(e_.Scaled(group, group_out), channel), inner.back()};
    }
    for (size_t d = 0; d < phase.size(); ++d)
      at.push_back(e_.Shifted(e_.Scaled(inner[d], phase[d].tap_distance), phase[d].first_tap));
    return at;
  };
  packing.offset = [this, phase, group_in, group_out](const Shape& shape, int64_t group, int64_t channel,
                                                      const std::vector<int64_t>& inner) {
    int64_t at = is_transposed_ ? (group * group_in + inner.back()) * shape[1] + channel
                                : (group * group_out + channel) * shape[1] + inner.back();
    for (size_t d = 0; d < phase.size(); ++d)
      at = at * shape[d + 2] + phase[d].first_tap + inner[d] * phase[d].tap_distance;
    return at;
  };
  return packing;
}

PackedWords ConvolutionFactors::Pack(const ConvolutionPhase& phase) {
  const PackedWeights packing = PackingOf(phase);
  if (bytes_) return PackWords(state_, *bytes_, packing);
  if (is_in_pairs()) return {PackPairs(state_, call_.args()[1], packing, pairs_), {}, {}};
  const Buffer packed = PackWeights(state_, call_.args()[1], packing, dtype_);
  return {scale_ ? Scaled(packed) : packed, {}, {}};
}

Buffer ConvolutionFactors::Scaled(const Buffer& packed) {
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

void ConvolutionFactors::SetTypes(Contraction& form) const {
  form.dtype = dtype_;
  form.factors = kind();
  form.flips_signs = bytes_ && bytes_->flips_signs;
}

}  // namespace collage::native
