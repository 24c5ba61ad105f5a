// symbolic_sizes.h: toolchains that compile functions of any size.
#pragma once

#include "collage/support/result.h"
#include "collage/target/toolchain.h"

namespace collage {

/// Base class of a `Toolchain` whose compiler takes functions with parameters of symbolic sizes (`?`), whole sub-graphs
/// of them, and whose kernels run at any size. Without it a toolchain sees functions of static shapes only.
///
/// Such a partition comes to `RelayToRuntime` as any other; all layouts are plain. Its kernel has one more input,
/// behind those of the parameters: an int64 tensor with every dimension of the parameters and then of the results,
/// flattened and in order. A partition of one parameter [?, 8] and one result [?, 4], run on three rows, gets [3, 8, 3,
/// 4]. The numbers are there when `Kernel::Run` is called, and may be others in the next run.
class HasSymbolicSizes {
 public:
  virtual ~HasSymbolicSizes() = default;

  /// False for a decorator of a toolchain that compiles no such functions.
  virtual bool compiles_symbolic_sizes() const { return true; }
  /// Whether a partition may have `call`, which is typed and has a dimension `?` in an argument or its result. Cheap,
  /// as `SupportsCall` is: asked in the process that searches.
  virtual Result<void> SupportsSymbolicSizes(const CallNode& call) const = 0;
};

/// Whether `toolchain` compiles functions of symbolic sizes.
bool CompilesSymbolicSizes(const Toolchain& toolchain);
/// The toolchain's SupportsSymbolicSizes; a reason where it has no such base.
Result<void> SupportsSymbolicSizes(const Toolchain& toolchain, const CallNode& call);

}  // namespace collage
