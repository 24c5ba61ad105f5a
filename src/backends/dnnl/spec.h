// spec.h: what a partition for oneDNN is: one primitive with post-ops. Free of vendor headers; its JSON is the kernel's blob.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collage/runtime/layout.h"
#include "collage/runtime/tensor.h"

namespace collage::dnnl_toolchain {

enum class Kind : uint8_t { kConv, kDeconv, kMatMul, kMaxPool, kAvgPool, kSoftmax, kLogSoftmax, kLayerNorm };

/// A tensor that the primitive reads: a parameter of the partition or a constant beside the blob.
struct Operand {
  int input = -1;     ///< number of the partition's parameter; -1 for constants
  int constant = -1;  ///< number of the constant; -1 for parameters
  Shape shape;        ///< logical, possibly after a reshape that moves nothing
  Layout layout = Layout::kPlain;

  bool defined() const { return input >= 0 || constant >= 0; }
};

/// Element-wise functions, named as oneDNN's algorithms.
enum class Eltwise : uint8_t {
  kRelu,       ///< x, or alpha * x for negative x
  kClip,       ///< limited to [alpha, beta]
  kLinear,     ///< alpha * x + beta
  kLogistic,
  kTanh,
  kAbs,
  kExp,
  kSqrt,
  kGeluErf,
  kGeluTanh,
  kSwish,      ///< x * logistic(alpha * x)
  kHardSwish,  ///< x * limited(alpha * x + beta) to [0, 1]
  kMish,
};

enum class Binary : uint8_t { kNone, kAdd, kSubtract, kMultiply, kDivide, kMaximum, kMinimum };

/// Applied to the primitive's result: a function, or an operator with another tensor (when `binary` is not kNone).
struct PostOp {
  Eltwise eltwise = Eltwise::kRelu;
  double alpha = 0;
  double beta = 0;
  Binary binary = Binary::kNone;
  Operand operand;
};

/// One primitive. Weights of convolutions are as in Relay (OI…, transposed ones IO…); matrices are [B,] M, K and [B,] K, N with
/// transposition flags for how they are stored.
struct Primitive {
  Kind kind = Kind::kConv;
  std::vector<int64_t> kernel;    ///< pools only
  std::vector<int64_t> strides;
  std::vector<int64_t> dilation;
  std::vector<int64_t> before;    ///< padding
  std::vector<int64_t> after;
  int64_t groups = 1;
  bool count_include_pad = false;
  bool transpose_a = false;
  bool transpose_b = false;
  int64_t axis = -1;
  double epsilon = 0;
  Operand src;
  Operand weights;  ///< layer norm: gamma
  Operand bias;     ///< layer norm: beta
  Shape dst_shape;  ///< of the primitive; the partition's result may be a reshape of it
  Layout dst_layout = Layout::kPlain;
  std::vector<PostOp> post_ops;

  bool is_window() const {
    return kind == Kind::kConv || kind == Kind::kDeconv || kind == Kind::kMaxPool || kind == Kind::kAvgPool;
  }
};

std::string ToJson(const Primitive& primitive);
/// Throws kCorrupt.
Primitive FromJson(std::string_view text);

}  // namespace collage::dnnl_toolchain
