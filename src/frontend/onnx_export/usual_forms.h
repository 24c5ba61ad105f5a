// usual_forms.h: a graph of ONNX in the forms in which models are usually written, which engines' optimisers look for.
#pragma once

#include <map>
#include <string>

#include "collage/runtime/tensor.h"
#include "onnx/onnx-ml.pb.h"

namespace collage {

class OnnxGraphWriter;

/// Static shapes of values by name, as far as they are known.
using OnnxShapes = std::map<std::string, Shape>;

/// Relay says in several operators what ONNX has one for, and an engine's optimiser knows that one: it folds a batch
/// norm into a convolution, and leaves a multiplication and an addition alone. Rewrites, in one pass over `graph` in
/// its order:
///
///     Conv, ConvTranspose or Gemm, then Add of a constant per channel    → its own bias
///     Mul, then Add of constants per channel                             → BatchNormalization
///     Reshape, Gemm, Reshape around a product of sequences                → MatMul of their last dimension
///     Reshape, MatMul, Reshape around a product of batches of batches     → MatMul of all dimensions
///     Clip(alpha * x + beta, 0, 1)                                        → HardSigmoid
///     0.5 * x * (erf(x / sqrt(2)) + 1), as Gelu is imported              → Gelu
///     Relu(x) + slope * Min(x, 0)                                         → PRelu
///
/// Values that anything else reads stay; what nothing reads any more is to be dropped afterwards. Nested graphs are
/// left as they are.
void WriteUsualForms(OnnxGraphWriter& writer, onnx::GraphProto& graph, const OnnxShapes& shapes);

}  // namespace collage
