// onnx_operators.h: operands and attributes with which operators of ONNX are right.
#pragma once

#include <string>
#include <vector>

namespace collage {

/// An operator with operands that it accepts, which the grid changes.
struct GridOperator {
  std::string op;
  /// Shapes: "2x3", "()" for a scalar, "?" for an absent one. "=[1,-1]" is a constant vector, "=3" a constant scalar,
  /// of floats where there is a point in it.
  std::string inputs;
  /// NAME:KIND, with the value that is right. The kinds: i an integer, I integers, f a float, F floats, s a string, S
  /// strings, t a tensor, g a graph.
  std::string attributes;
};

const std::vector<GridOperator>& GridOperators();

/// Values of the string attribute `attribute` that some operator has.
const std::vector<std::string>& GridStrings(const std::string& attribute);

}  // namespace collage
