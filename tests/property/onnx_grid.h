// onnx_grid.h: ONNX models of one operator with operands and attributes at their edges.
#pragma once

#include <cstdint>
#include <string>

#include "onnx/onnx-ml.pb.h"
#include "property/random_source.h"

namespace collage {

/// A model with a node of one of the operators that can be imported, in turn; equal seeds make equal models.
///
/// A quarter of the models are right but for their opset. The others differ in one thing, some things or most:
/// numbers of inputs and outputs, empty names, ranks from 0 to 7, sizes of 0 and of 10^12, symbolic sizes, element
/// types, attributes and their types. Operands are inputs of the model, initializers, or computed.
onnx::ModelProto MakeGridModel(uint64_t seed);
/// One for the operator of that number, modulo how many there are, by the numbers of `random`.
onnx::ModelProto MakeGridModel(uint64_t op, RandomSource random);

/// The operator that MakeGridModel tries with this seed.
std::string GridOperatorOf(uint64_t seed);

/// The model's opset, inputs, constants, nodes and outputs, one a line.
std::string TextOf(const onnx::ModelProto& model);

}  // namespace collage
