// graph.h: what a match is for cuDNN: a graph of its operations. Free of vendor headers and of the IR.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/fused_matches/pointwise.h"
#include "collage/runtime/tensor.h"

namespace collage::cudnn {

using matches::Pointwise;
using matches::PointwiseMode;

/// The place of a value's elements.
enum class Source : uint8_t {
  kInside,    ///< nowhere: one operation hands them to the next
  kInput,     ///< at the address of a parameter of the partition
  kConstant,  ///< in a constant of the kernel
  kResult,    ///< at the address of the partition's result
  kNumber,    ///< a float32 number in the kernel itself
  kScratch,   ///< in the kernel's workspace, where nothing reads it
};

/// A tensor of the graph, of rank 3 to 5: [N, C, spatial…], [batch, rows, columns] or [B, H, S, D].
struct Value {
  Shape dims;
  Shape strides;  ///< in elements
  DataType dtype = kFloat32;
  Source source = Source::kInside;
  int64_t number = 0;  ///< the parameter's or constant's
  float value = 0;     ///< kNumber's
};

enum class Kind : uint8_t {
  kConvolution,            ///< y = x * b, b being weights [O, I / groups, kernel…]
  kTransposedConvolution,  ///< y = x * b, b being weights [I, O / groups, kernel…]
  kProduct,                ///< y = x b
  kPointwise,              ///< y = function(x), or x + b
  kMaxPool,
  kAvgPool,
  kLayerNorm,     ///< y = x, normalised over all but axis 0, times b, plus c; d is epsilon
  kInstanceNorm,  ///< as kLayerNorm, over all but axes 0 and 1
  kAttention,     ///< y = softmax(d * x transpose(b) + e) c; with e, `sums` gets the logarithms of sums of rows
};

/// Windows of convolutions and pools: a number for each spatial dimension.
struct Window {
  Shape kernel;  ///< pools only
  Shape strides;
  Shape dilation;
  Shape before;  ///< padding
  Shape after;
  bool counts_padding = false;  ///< average pools only
};

/// An operation. Operands are numbers of values; -1 stands for none.
struct Operation {
  Kind kind = Kind::kConvolution;
  int x = -1, b = -1, c = -1, d = -1, e = -1;
  int y = -1;
  int sums = -1;
  Window window = {};
  Pointwise pointwise = {};
};

/// Operations in the order of computation. All are computed in float32, and rounded where a value is stored.
struct Graph {
  std::vector<Value> values;
  std::vector<Operation> operations;
  bool may_round_factors = false;  ///< float32 factors may be rounded to TF32, for tensor cores
  bool is_exact = false;           ///< no algorithms with fewer products than the definition has
};

}  // namespace collage::cudnn
