// onnx.h: ONNX models → Relay.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "collage/ir/module.h"
#include "collage/ir/symbolic_size.h"

namespace collage {

struct ImportOptions {
  /// Shapes of inputs, by input name; also of one that the model gives another shape of the same rank. A size of -1
  /// stays as it is.
  std::map<std::string, Shape> shapes;
  /// Sizes of dimensions: by the names that the model gives them, or "x[0]", by input and axis, which may also be one
  /// to which the model gives a size. A range of more than one size leaves the dimension open within it.
  std::map<std::string, SizeRange> dims;
  /// Values of inputs that are the same in every run; they become constants and are no parameters any more. An input
  /// that says how something is shaped (where to slice, how far to pad) must be given so.
  std::map<std::string, Tensor> constants;
  /// Such values as text: a number or numbers separated by commas, or a file (.npy, .pb).
  std::map<std::string, std::string> constant_texts;
  /// Numbers of elements of inputs that are sequences; 0 for an optional input that is not there. A sequence x has the
  /// parameters x.0, x.1, …; those for which shapes or constants are given are counted otherwise.
  std::map<std::string, int64_t> lengths;
};

/// Reads an ONNX model (ai.onnx, opset 7 and newer, local functions and external data included) into a typed module
/// with one `@main`. Dimensions that neither the model nor the options give become `?`. One that `shapes` gives is
/// given for all inputs where the model calls it by the same name. They are 1 or more where the model
/// can be imported for no other sizes, which runs check.
///
/// Whatever follows from constants and shapes is computed while importing, so that shape arithmetic vanishes. Every
/// expression's span is the name of its ONNX node; `@main` has the attribute `output_names`. Throws kInput for files
/// that cannot be read and inputs that do not fit, kUnsupported for unknown operators, all of them at once.
IRModule ImportOnnx(const std::filesystem::path& path, const ImportOptions& options = {});

/// A node of a model that cannot be converted.
struct RefusedOnnxNode {
  size_t place;  ///< among the nodes of the model's graph, as the file has them
  std::string reason;
};

/// The nodes that cannot be converted. For those behind them, what they make is taken for inputs of the types that the
/// file states; a node that reads what has no such type is refused, too. Throws as ImportOnnx does for files that
/// cannot be read, and for inputs.
std::vector<RefusedOnnxNode> RefusedOnnxNodes(const std::filesystem::path& path);

/// The names of the model's inputs, in its order; initializers that are listed as inputs are none. Throws as ImportOnnx
/// does for files that cannot be read.
std::vector<std::string> OnnxInputNames(const std::filesystem::path& path);

}  // namespace collage
