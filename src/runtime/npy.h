// npy.h: NumPy's array files, and ONNX tensor files, which tools exchange inputs and outputs in.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "collage/runtime/tensor.h"

namespace collage {

/// Reads one array: .npy, or a serialised ONNX TensorProto (.pb). Throws kInput for files that are neither.
Tensor ReadArray(const std::filesystem::path& path);
/// Reads all arrays of an .npz file, stored or deflated, by name. Throws kInput for files that are none or damaged.
std::map<std::string, Tensor> ReadNpz(const std::filesystem::path& path);
/// Writes one array as .npy, whole or not at all.
void WriteArray(const std::filesystem::path& path, const Tensor& array);
/// Writes an .npz file (stored), whole or not at all.
void WriteNpz(const std::filesystem::path& path, const std::map<std::string, Tensor>& arrays);

}  // namespace collage
