// onnx_export.h: Relay → ONNX models.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "collage/ir/module.h"
#include "collage/support/result.h"

namespace collage {

struct OnnxExportOptions {
  std::string graph_name = "main";
  /// Names of the parameters, tuples flattened. Empty: their own.
  std::vector<std::string> input_names;
  /// Names of the results; as many as there are tensors in what the function returns. Empty: what the function's
  /// attribute `output_names` says, else output, output_1, …
  std::vector<std::string> output_names;
};

/// The ONNX model (ai.onnx, opset 17, or newer where an operator is younger) that computes what `@main` does,
/// serialised.
///
/// Parameters become inputs by their names, `?` dimensions become dynamic ones, constants become initializers, tuples
/// of results are flattened; functions that are called are inlined. `if` becomes If; a let-bound function that calls
/// itself last, and only there, becomes Loop. Several Relay operators for which ONNX has one are written as that one,
/// which engines' optimisers recognise: biases in their convolutions and products, scales and shifts per channel as
/// BatchNormalization, products of sequences as MatMul. Throws kUnsupported for constructs that ONNX lacks (data types,
/// references, closures as values, other recursion, an attribute that no operator of ONNX has), naming the operator;
/// kInput for modules that do not type; kResource above 2 GB, where ONNX needs files beside the model (WriteOnnx).
std::string ExportOnnx(const IRModule& module, const OnnxExportOptions& options = {});
/// Exports a closed function, such as a partition, in the same way.
std::string ExportOnnx(const Function& function, const OnnxExportOptions& options = {});

/// Writes the model to `path`, whole or not at all. Constants of 1 KiB and more go to a file beside it, `path` with
/// ".data" added, when all of them are more than `most_inside_bytes`. Returns the bytes of both.
int64_t WriteOnnx(const IRModule& module, const std::filesystem::path& path, const OnnxExportOptions& options = {},
                  int64_t most_inside_bytes = int64_t{1} << 30);

/// Whether a typed call of an operator can be exported, or why not. It is tried.
Result<void> CanExportOnnx(const CallNode& call);

/// The operators of Relay that have a row, in alphabetical order.
std::vector<std::string> OnnxExportableOps();

}  // namespace collage
