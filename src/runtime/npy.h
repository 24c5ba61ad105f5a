// npy.h: NumPy's array files, and ONNX tensor files, which tools exchange inputs and outputs in.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "collage/runtime/tensor.h"
#include "collage/support/string_numbers.h"

namespace collage {

/// An array that a file holds; of strings it has the numbers.
struct StoredArray {
  Tensor tensor;
  bool is_text = false;
};
using StoredArrays = std::map<std::string, StoredArray>;

/// Reads one array: .npy, or a serialised ONNX TensorProto (.pb). Throws kInput for files that are neither, and for
/// strings.
Tensor ReadArray(const std::filesystem::path& path);
/// As above; strings get their numbers from `strings`.
StoredArray ReadArray(const std::filesystem::path& path, StringNumbers& strings);
/// Reads all arrays of an .npz file, stored or deflated, by name. Throws kInput for files that are none or damaged.
std::map<std::string, Tensor> ReadNpz(const std::filesystem::path& path);
/// As above; strings get their numbers from `strings`.
StoredArrays ReadNpz(const std::filesystem::path& path, StringNumbers& strings);
/// Writes one array as .npy, whole or not at all.
void WriteArray(const std::filesystem::path& path, const Tensor& array);
/// Writes an .npz file (stored), whole or not at all.
void WriteNpz(const std::filesystem::path& path, const std::map<std::string, Tensor>& arrays);
/// As above; numbers of strings are those of `strings`, and become NumPy's arrays of characters.
void WriteNpz(const std::filesystem::path& path, const StoredArrays& arrays, const StringNumbers& strings);

}  // namespace collage
