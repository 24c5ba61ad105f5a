// python_kernel.h: kernels that Python runs: blobs that say what arrays a kernel is called with, and their loader.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "collage/runtime/kernel.h"
#include "collage/target/toolchain.h"

namespace collage::python {

/// Returns the beginning of a blob for `request`: the length of a text (8 bytes), and the text, which describes the
/// arrays at the partition's boundary. The payload, which the toolchain gave, follows.
std::vector<std::byte> DescribePorts(const PartitionRequest& request);
/// The payload of a blob that begins so. Throws kCorrupt.
std::span<const std::byte> PayloadOf(std::span<const std::byte> blob);

/// The loader of such blobs: `toolchain.load` turns a payload into a callable. `toolchain` lives as long as the
/// process.
std::unique_ptr<KernelLoader> MakePythonLoader(nanobind::handle toolchain);

}  // namespace collage::python
