// kernel.h: what a toolchain's compiled partition looks like to the executor, and how it is loaded from an executable.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collage/runtime/tensor.h"

namespace collage {

/// A result of a partition that may lie where one of its parameters does, both plain: numbers of flattened parameters
/// and results. Only what differs is then written to the parameter's memory; a second run there gives the same.
struct InPlaceResult {
  int input = 0;
  int output = 0;
  friend bool operator==(const InPlaceResult&, const InPlaceResult&) = default;
};

/// One compiled partition, ready to run.
///
/// The executor binds addresses once and then calls `Run` for each inference, so that a call costs no more than the
/// toolchain's own. Not thread-safe; one instance belongs to one execution instance.
class Kernel {
 public:
  virtual ~Kernel() = default;

  /// Remembers where the partition reads and writes. `inputs` and `outputs` are in the order of the partition's
  /// flattened parameters and results, 64-byte aligned, laid out in the boundary layouts it was compiled for, each in
  /// the memory that its layout says; none overlap but a result and the parameter that it may replace
  /// (`InPlaceResult`), which then begin at one address; `workspace`, in the main memory of the kernel's device, has
  /// the bytes that the compiled partition asked for (null when none). May be called again.
  virtual void Bind(std::span<void* const> inputs, std::span<void* const> outputs, void* workspace) = 0;

  /// Results that may lie where parameters do, at most one for each.
  virtual std::vector<InPlaceResult> in_place() const { return {}; }

  /// Computes the outputs. Throws Error when the toolchain fails. A device may still compute when this returns
  /// (collage/runtime/device.h).
  virtual void Run() = 0;
};

/// Code and constants that a kernel is loaded from. The memory outlives the kernel.
struct KernelImage {
  std::span<const std::byte> blob;    ///< written by the toolchain's compiler, meaningful to its loader only
  std::span<const Tensor> constants;  ///< weights kept outside the blob, in the order the compiler listed them
  int num_threads = 1;                ///< threads that the kernel may use
  bool in_place = false;              ///< few runs follow: constants are best read where they are
};

/// Turns blobs of one kind into kernels. Loaders of toolchains that need a vendor's library live in modules of their
/// own (`libcollage_rt_NAME.so`), opened when the first blob of that kind is met.
class KernelLoader {
 public:
  virtual ~KernelLoader() = default;
  /// Throws kCorrupt for a blob it cannot read, kUnavailable when its library is missing or of another version.
  virtual std::unique_ptr<Kernel> Load(const KernelImage& image) = 0;
};

/// The loader called `name`: one that was added, or the one of module `libcollage_rt_NAME.so`, looked for beside
/// libcollage_runtime.so and in $COLLAGE_MODULE_PATH. Throws kUnavailable with the reason when there is none.
KernelLoader& GetKernelLoader(std::string_view name);

/// Adds a loader to this process, replacing one of the same name (used by tests and by statically linked programs).
void AddKernelLoader(std::string name, std::unique_ptr<KernelLoader> loader);

/// Signature of `collage_make_kernel_loader`, the C symbol that a loader module exports.
using MakeKernelLoaderFn = KernelLoader*();

}  // namespace collage
