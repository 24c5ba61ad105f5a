// spec.h: what a partition for oneDNN is: one primitive with post-ops. Free of vendor headers; its JSON is the kernel's
// blob.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collage/runtime/layout.h"
#include "collage/runtime/tensor.h"

namespace collage::dnnl_toolchain {

enum class Kind : uint8_t {
  kConv,
  kDeconv,
  kMatMul,
  kMaxPool,
  kAvgPool,
  kSoftmax,
  kLogSoftmax,
  kLayerNorm,
  kInstanceNorm,
  kLrn,
  kReduction,
  kResampling,
  kConcat,
  kBinary,
  kEltwise,  ///< its function is the first post-op
  kReorder,  ///< changes dtype, quantisation or the order of axes
};

/// A tensor that the primitive reads or writes. It stands for scale * (element - zero) when it is quantised.
struct Operand {
  int input = -1;     ///< number of the partition's parameter; -1 for constants and the result
  int constant = -1;  ///< number of the constant; -1 for parameters and the result
  Shape shape;        ///< logical, possibly after a reshape that moves nothing
  Layout layout = Layout::kPlain;
  DataType dtype = kFloat32;
  double scale = 1;
  int64_t zero = 0;
  int scales = -1;      ///< number of a constant that holds a scale per channel, instead of `scale`
  int zero_input = -1;  ///< number of the parameter that holds the zero point, a scalar, instead of `zero`

  bool defined() const { return input >= 0 || constant >= 0; }
  bool is_quantised() const { return scale != 1 || zero != 0 || scales >= 0 || zero_input >= 0; }
};

/// Element-wise functions, named as oneDNN's algorithms.
enum class Eltwise : uint8_t {
  kRelu,    ///< x, or alpha * x for negative x
  kClip,    ///< limited to [alpha, beta]
  kLinear,  ///< alpha * x + beta
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
  kLog,
  kPower,  ///< alpha * x ^ beta
  kRound,  ///< ties to even
  kElu,    ///< x, or alpha * (exp(x) - 1) for negative x
  kSquare,
  kSoftRelu,  ///< log(1 + exp(alpha * x)) / alpha
};

enum class Binary : uint8_t {
  kNone,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kMaximum,
  kMinimum,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kPrelu,  ///< x, or x times the other one for negative x
};

enum class Reduction : uint8_t { kSum, kMean, kMax, kMin, kProduct };

/// Applied to the primitive's result: a function, or an operator with another tensor (when `binary` is not kNone).
struct PostOp {
  Eltwise eltwise = Eltwise::kRelu;
  double alpha = 0;
  double beta = 0;
  Binary binary = Binary::kNone;
  Operand operand;
};

/// One primitive. Weights of convolutions are as in Relay (OI…, transposed ones IO…); matrices are [B,] M, K and [B,]
/// K, N with transposition flags for how they are stored.
struct Primitive {
  Kind kind = Kind::kConv;
  std::vector<int64_t> kernel;  ///< pools only
  std::vector<int64_t> strides;
  std::vector<int64_t> dilation;
  std::vector<int64_t> before;  ///< padding
  std::vector<int64_t> after;
  int64_t groups = 1;
  bool count_include_pad = false;
  bool transpose_a = false;
  bool transpose_b = false;
  int64_t axis = -1;                       ///< softmax, concat
  std::vector<int64_t> axes;               ///< reorder: the source's axis for each of the result's
  double epsilon = 0;                      ///< norms
  double alpha = 0, beta = 0, offset = 0;  ///< LRN, over `axis` neighbours
  Binary binary = Binary::kNone;
  Reduction reduction = Reduction::kSum;
  bool is_linear = false;  ///< resampling; else nearest
  /// Type in which contractions multiply floats: that of their data, or a narrower one, to which data and weights are
  /// rounded. Sums are float32 either way.
  DataType multiplied_as = kFloat32;
  Operand src;
  Operand weights;            ///< second source of a binary operator; layer norm: gamma
  Operand bias;               ///< layer norm: beta
  std::vector<Operand> more;  ///< concat: sources behind `src`
  Operand dst;                ///< the primitive's result; the partition's may be a reshape of it
  std::vector<PostOp> post_ops;

  /// Has channels and spatial dimensions, and is fastest in channels-last.
  bool is_window() const {
    return kind == Kind::kConv || kind == Kind::kDeconv || kind == Kind::kMaxPool || kind == Kind::kAvgPool ||
           kind == Kind::kResampling;
  }
  /// Computes the same in every layout, as long as operands have that of the result.
  bool is_elementwise() const {
    return kind == Kind::kBinary || kind == Kind::kEltwise || (kind == Kind::kReorder && axes.empty());
  }
  bool is_contraction() const { return kind == Kind::kConv || kind == Kind::kDeconv || kind == Kind::kMatMul; }
};

std::string ToJson(const Primitive& primitive);
/// Throws kCorrupt.
Primitive FromJson(std::string_view text);

}  // namespace collage::dnnl_toolchain
