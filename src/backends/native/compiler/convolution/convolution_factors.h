// convolution_factors.h: the two factors of a convolution's products, data and weights: their element type, and how
// each lies in memory.
#pragma once

#include <optional>
#include <vector>

#include "backends/native/compiler/contraction/int8_dot.h"
#include "backends/native/compiler/contraction/pair_dot.h"
#include "backends/native/compiler/convolution/convolution.h"
#include "backends/native/compiler/convolution/convolution_phases.h"
#include "backends/native/description/scaled_convolution.h"

namespace collage::native {

/// The factors of one convolution. An element of a product is one number, a pair of floats of 16 bits, or a word of
/// integers of 8 or 16 bits (`per_element` channels). `state` and `call` must outlive it.
class ConvolutionFactors {
 public:
  ConvolutionFactors(PartitionState& state, const CallNode& call, const ConvolutionGeometry& conv);

  /// Decides whether this is a product of integers of 8 bits, and remembers how it is computed.
  bool ReadBytes();
  /// Multiplies the weights by `scale`, not the data.
  void ScaleWeights(const ChannelScale& scale) { scale_ = scale; }
  /// Rounds both factors, in pairs of channels.
  void UsePairs(DotKind pairs) {
    pairs_ = pairs;
    per_element_ = 2;
  }

  bool is_transposed() const { return is_transposed_; }
  bool is_in_words() const { return bytes_.has_value(); }
  /// Returns what an element of a product has.
  DotKind kind() const { return bytes_ ? bytes_->factors : pairs_; }
  bool is_in_pairs() const { return IsPair(pairs_); }
  bool is_scaled() const { return scale_.has_value(); }
  /// Returns the dtype of the sums.
  DataType dtype() const { return dtype_; }
  /// Returns the number of elements that the data's channels make, with the last one filled.
  int64_t num_elements() const { return channels_ / per_element_; }

  /// Lays out the data with zeros around it: `before` and `after` by spatial dimension. Writes a stage where it must.
  Buffer Data(const std::vector<int64_t>& before, const std::vector<int64_t>& after);
  /// Whether there is one tap, which steps over pixels of data that lie in memory channels-last.
  bool SkipsPixels() const;
  /// Lays out only the pixels that are read, in pairs: the pixels between them need not be rounded.
  Buffer PixelsThatAreRead();

  /// Returns the weights of `phase` in the order in which products read them.
  PackedWeights PackingOf(const ConvolutionPhase& phase) const;
  /// Packs the weights of `phase`: integers with their corrections and scales, all others as weights alone.
  PackedWords Pack(const ConvolutionPhase& phase);
  /// Sets the types of a product's elements.
  void SetTypes(Contraction& form) const;

 private:
  /// Whether the data, of a few channels, lie in memory as planes: their elements are read one by one, so that it costs
  /// more to turn them than it helps.
  bool ReadsPlainData() const;
  /// Multiplies packed weights by the scale of the channel that each is multiplied with.
  Buffer Scaled(const Buffer& packed);

  PartitionState& state_;
  Emitter& e_;
  const CallNode& call_;
  ConvolutionGeometry conv_;
  bool is_transposed_;
  DataType dtype_;
  std::optional<Int8Dot> bytes_;
  int64_t channels_;               ///< channels of the data, and zeros that fill the last word
  DotKind pairs_ = DotKind::kOne;  ///< kinds of pairs, or none
  int64_t per_element_ = 1;        ///< channels in an element of the product
  std::optional<ChannelScale> scale_;
};

}  // namespace collage::native
