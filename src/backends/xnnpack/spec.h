// spec.h: what a partition for XNNPACK is: one of its operators with a fused clamp. Free of vendor headers; its JSON is
// the kernel's blob.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "collage/runtime/tensor.h"

namespace collage::xnnpack_toolchain {

enum class Kind : uint8_t {
  kConv,
  kDeconv,
  kDense,
  kMaxPool,
  kAvgPool,
  kGlobalAvgPool,
  kSoftmax,
  kResizeBilinear,
  kPad,
  kConcatenate,
  kPRelu,
  kUnary,
  kBinary,
  kQuantize,
  kDequantize,
};

enum class Unary : uint8_t {
  kClamp,
  kAbs,
  kNegate,
  kFloor,
  kCeiling,
  kRound,  ///< ties to even
  kTruncate,
  kSquare,
  kSquareRoot,
  kSigmoid,
  kTanh,  ///< 8 bits only
  kElu,
  kHardSwish,
  kLeakyRelu,
};

enum class Binary : uint8_t { kAdd, kSubtract, kMultiply, kDivide, kMaximum, kMinimum, kSquaredDifference };

/// Element types. Eight bits: q = round(x / scale) + zero point, signed or not.
enum class Element : uint8_t { kFloat32, kInt8, kUInt8 };

struct Quantisation {
  std::vector<double> scales;  ///< one, or one per output channel; empty for floats
  int zero_point = 0;

  double scale() const { return scales.at(0); }
};

/// A tensor that the operator reads: a parameter of the partition or a constant beside the blob.
struct Operand {
  int input = -1;     ///< number of the partition's parameter; -1 for constants
  int constant = -1;  ///< number of the constant; -1 for parameters
  Shape shape;        ///< in memory order: channels are last; of weights as in Relay
  Element element = Element::kFloat32;
  Quantisation quantisation;

  bool defined() const { return input >= 0 || constant >= 0; }
};

/// One operator. Windows have two dimensions, height and width; of what has one, the height is 1.
struct Operation {
  Kind kind = Kind::kConv;
  Unary unary = Unary::kClamp;
  Binary binary = Binary::kAdd;
  Element element = Element::kFloat32;
  std::vector<Operand> data;  ///< two of kBinary, any number of kConcatenate, else one
  Operand weights;            ///< convolutions OI…, transposed ones IO…, dense [N, K], kPRelu: slopes
  Operand bias;               ///< [O], float32, whatever `element` is
  Shape result;               ///< in memory order
  Quantisation result_quantisation;

  std::vector<int64_t> kernel, strides, dilation;
  std::vector<int64_t> before, after;  ///< padding; kPad: of every dimension in memory order
  std::vector<int64_t> adjustment;     ///< kDeconv: Relay's output_padding
  int64_t groups = 1;
  int64_t axis = 0;            ///< kConcatenate: in memory order
  bool align_corners = false;  ///< kResizeBilinear; neither: centres of pixels
  bool asymmetric = false;
  double alpha = 0;  ///< kElu, kLeakyRelu; kPad: the value
  /// The fused clamp, in real numbers.
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
};

std::string ToJson(const Operation& operation);
/// Throws kCorrupt.
Operation FromJson(std::string_view text);

}  // namespace collage::xnnpack_toolchain
