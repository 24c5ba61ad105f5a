// libraries.h: libraries of other toolchains that native kernels call (target option `libs`): for tiles of products,
// and in place of Composite functions.
#pragma once

#include <string>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/target/composite_calls.h"
#include "collage/target/micro_kernels.h"

namespace collage::native {

/// One of them, as its toolchain describes it.
struct CalledLibrary {
  std::string name;  ///< the toolchain's name
  const Toolchain* toolchain;
  std::string version;               ///< the library's, and the state of our code for it
  std::vector<MicroKernel> kernels;  ///< for tiles
  std::vector<CompositeCall> calls;  ///< for Composites, the table's rows

  /// Whether a row has `label`.
  bool Has(const std::string& label) const;
};

/// The first of `libraries` with a row for what `expr` calls; null where `expr` calls no Composite function, and where
/// none has its label.
const CalledLibrary* LibraryOf(const Expr& expr, const std::vector<CalledLibrary>& libraries);

/// Returns the libraries that "NAME,NAME" lists, in its order. Throws kInput for a name that is given twice, or whose
/// toolchain has functions of neither kind, listing the toolchains that have; kUnavailable, with the toolchain's
/// reason, for a library that cannot be used here.
std::vector<CalledLibrary> ReadLibraries(const std::string& text);

}  // namespace collage::native
