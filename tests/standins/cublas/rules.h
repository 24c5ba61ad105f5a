// rules.h: products that cuBLASLt's documentation has, and those that it forbids.
#pragma once

#include "descriptors.h"

namespace standin::cublas {

/// kSuccess, kInvalidValue where sizes, leading dimensions or strides do not fit, kNotSupported where the documentation
/// lists no such combination.
int Check(const Product& product, const Matrix& a, const Matrix& b, const Matrix& c, const Matrix& d, Sizes& sizes);

}  // namespace standin::cublas
