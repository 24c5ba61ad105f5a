// factors.h: the matrices of a match that are multiplied.
#pragma once

#include "backends/cublas/product.h"
#include "backends/fused_matches/match_reader.h"

namespace collage::cublas {

/// The library multiplies 8-bit integers where leading dimensions, the result's columns and the depth are multiples of
/// it.
inline constexpr int64_t kIntegersTogether = 4;

/// Scales of quantised values around a zero point of 0.
struct Quantisation {
  Tensor scale;      ///< one element, or one for each index of `axis`
  int64_t axis = 0;  ///< an axis of the values
};

/// A matrix, or one for each of a batch.
struct Factor {
  matches::Operand values;
  bool is_transposed = false;
  Tensor scale;            ///< not defined unless values are quantised
  int64_t scale_axis = 0;  ///< the axis along which there are several scales

  /// Transposes a constant, unless it lies so. Throws a Refusal for an input that lies otherwise.
  void Require(bool transposed);
  /// Transposes a constant if its rows are then whole units of 16 bytes, by which tensor cores are fed, and are not so
  /// as it lies.
  void Prefer(bool transposed);

 private:
  void Transpose();
};

/// `expr` as the product reads it: floats, int8, int8 that is widened to int32, an int32 constant whose values fit
/// int8, or int8 that is dequantised. Throws a Refusal for anything else.
Factor ReadFactor(const matches::MatchReader& reader, const Expr& expr);

/// Scale and axis of a call of qnn.quantize or qnn.dequantize. Throws a Refusal unless they are constant, and zero
/// points are 0.
Quantisation ReadQuantisation(const matches::MatchReader& reader, const CallNode& call);

}  // namespace collage::cublas
