// translations.h: what a call of an operator becomes in the library's graph: a function for each kind of operator, by
// family, and what they share.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "backends/onednn_graph/builder.h"
#include "backends/onednn_graph/operators.h"
#include "collage/ir/op.h"
#include "collage/ir/type.h"

namespace collage::onednn_graph {

bool IsFloat(DataType dtype);
bool IsByte(DataType dtype);
/// The dtype of all arguments and the result; a Refusal where there are several, or others than floats.
DataType RequireFloats(const Call& call);

int64_t NormalAxis(int64_t axis, size_t rank);
/// Whether a value and the tensor that holds it, of shape `own`, have the innermost dimension in common.
bool KeepsLast(const Value& value, const Shape& own);

// elementwise.cc
TranslateFn Unary;
TranslateFn LeakyRelu;
TranslateFn Clip;
TranslateFn Cast;
TranslateFn Binary;
TranslateFn AddOrBias;
TranslateFn BiasAdd;
TranslateFn Prelu;

// products.cc
TranslateFn Dense;
TranslateFn MatMul;
TranslateFn BatchMatMul;

// windows.cc
TranslateFn Convolution;
TranslateFn Pool;
TranslateFn GlobalPool;

// normalisations.cc
TranslateFn Softmax;
TranslateFn LayerNorm;
TranslateFn Reduce;

// movement.cc
TranslateFn Concatenate;
TranslateFn Transpose;
TranslateFn Reshape;

// quantisation.cc
TranslateFn Quantize;
TranslateFn Dequantize;

}  // namespace collage::onednn_graph
