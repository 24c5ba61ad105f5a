// quantised.h: what operators on quantised values share. An integer q stands for the number (q - zero point) * scale;
// scales and zero points are one for all of a tensor, or one for each index of one of its axes.
#pragma once

#include <cstdint>

#include "collage/ir/op.h"
#include "ir/ops/rounding.h"

namespace collage {

/// Fails unless arguments `scale` and `zero_point` are floats and integers, and scalars (or of one element) or of one
/// element per index of `axis` of a tensor of type `data`.
void CheckParameters(const OpCall& call, const TensorTypeNode& data, int64_t axis, size_t scale, size_t zero_point);

/// Which element of a scale or zero point belongs to an element of the data.
class Channels {
 public:
  Channels(const Shape& shape, int64_t axis);
  int64_t Of(const Tensor& parameter, int64_t element) const {
    return parameter.num_elements() == 1 ? 0 : element / inner_ % length_;
  }

 private:
  int64_t length_ = 1;
  int64_t inner_ = 1;
};

/// The numbers that `data` stands for, rounded to the dtype of `output`.
void Dequantise(const Tensor& data, const Tensor& scale, const Tensor& zero_point, int64_t axis, const Tensor& output);
/// The same as a tensor of float32.
Tensor Dequantised(const Tensor& data, const Tensor& scale, const Tensor& zero_point, int64_t axis = -1);

/// round(data / scale) + zero_point, limited to the range of `output`'s dtype. The quotient of float32 is a float32: at
/// ties it decides which integer is nearest.
void Quantise(const Tensor& data, const Tensor& scale, const Tensor& zero_point, int64_t axis, Rounder& round,
              const Tensor& output);

}  // namespace collage
