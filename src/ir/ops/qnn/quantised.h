// quantised.h: what operators on quantised values share. An integer q stands for the number (q - zero point) * scale;
// scales and zero points are one for all of a tensor, or one for each index of one of its axes.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "collage/ir/op.h"
#include "ir/eval/rounding.h"

namespace collage {

/// Fails unless arguments `scale` and `zero_point` are floats and integers, and scalars (or of one element) or of one
/// element per index of `axis` of a tensor of type `data`.
void CheckParameters(const OpCall& call, const TensorTypeNode& data, int64_t axis, size_t scale, size_t zero_point);
/// Checks a scale and a zero point for a whole tensor.
void CheckParameters(const OpCall& call, size_t scale, size_t zero_point);
/// Argument `index` as a tensor of integers; fails when it is none.
const TensorTypeNode& IntegersArg(const OpCall& call, size_t index);

/// Which element of a scale or zero point belongs to an element of the data.
class Channels {
 public:
  Channels(const Shape& shape, int64_t axis);
  int64_t Of(const Tensor& parameter, int64_t element) const { return parameter.num_elements() == 1 ? 0 : Of(element); }
  int64_t Of(int64_t element) const { return element / inner_ % length_; }
  /// Behind the elements from `element` on that belong to the same.
  int64_t EndOfRun(int64_t element) const { return (element / inner_ + 1) * inner_; }

 private:
  int64_t length_ = 1;
  int64_t inner_ = 1;
};

/// The numbers that `data` stands for, rounded to the dtype of `output`.
void Dequantise(const Tensor& data, const Tensor& scale, const Tensor& zero_point, int64_t axis, const Tensor& output);
/// Returns the dequantised data as a tensor of float32.
Tensor Dequantised(const Tensor& data, const Tensor& scale, const Tensor& zero_point, int64_t axis = -1);

/// round(data / scale) + zero_point, limited to the range of `output`'s dtype. The quotient of float32 is a float32: at
/// ties it decides which integer is nearest.
void Quantise(const Tensor& data, const Tensor& scale, const Tensor& zero_point, int64_t axis, Rounder& round,
              const Tensor& output);

/// The result of operator `name` on `inputs`: its arguments, or the fields of its tuple.
Tensor Apply(std::string_view name, const std::vector<Tensor>& inputs, Attrs attrs = {});

/// A factor as whole numbers, factor = whole * 2^(exponent - 31): how requantising multiplies in integers.
struct FixedPoint {
  int64_t whole;  ///< below 2^31
  int exponent;

  static FixedPoint Of(double factor);
  /// Bits by which data are shifted to the left before they are multiplied by `whole`, and to the right afterwards.
  int64_t left_shift() const { return exponent > 0 ? exponent : 0; }
  int64_t right_shift() const { return exponent > -31 ? 31 + (exponent < 0 ? -exponent : 0) : 62; }
};

}  // namespace collage
