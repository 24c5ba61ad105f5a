// sums.h: what is added to a product: a bias, or a matrix that may be broadcast.
#pragma once

#include "backends/cublas/product.h"
#include "backends/fused_matches/match_reader.h"

namespace collage::cublas {

struct Sum {
  matches::Operand operand;
  Along along = Along::kNone;  ///< kNone: a matrix
  int64_t row = 0;             ///< for a matrix, elements from a row to the next; 0: all are the same
  int64_t stride = 0;          ///< elements from one of the batch to the next; 0: all are the same

  bool is_bias() const { return along != Along::kNone; }
};

/// `operand`, which `call` (add or nn.bias_add) adds to a value of `shape`, that is `product` with its batch and rows
/// in dimensions of their own. Throws a Refusal where it is broadcast in a way that the library has not.
Sum ReadSum(matches::Operand operand, const CallNode& call, const Shape& shape, const Product& product);

}  // namespace collage::cublas
