// build.h: from a Primitive to oneDNN's objects.
#pragma once

#include <dnnl.hpp>
#include <string>
#include <utility>
#include <vector>

#include "backends/dnnl/spec.h"
#include "backends/onednn/engine.h"

namespace collage::dnnl_toolchain {

using onednn::Engine;
using onednn::Stream;
using onednn::UseThreads;

/// An argument of the primitive that a boundary or constant operand feeds.
struct Binding {
  int argument = 0;  ///< DNNL_ARG_…
  Operand operand;
  dnnl::memory::desc given;   ///< as it lies in memory
  dnnl::memory::desc wanted;  ///< as the primitive reads it; constants are reordered once, inputs at each run
  int scale_mask = 0;         ///< dimensions of `given` that a constant's `operand.scales` belong to, in oneDNN's bits
};

/// A primitive with all that is needed to run it. Not changed by running: kernels of equal specs share one.
struct Built {
  dnnl::primitive primitive;
  std::string implementation;
  std::vector<Binding> bindings;
  std::vector<std::pair<int, dnnl::memory>> numbers;  ///< arguments whose values are the spec's: scales, zero points
  dnnl::memory::desc dst;
  dnnl::memory::desc scratchpad;

  bool is_reference() const { return implementation.starts_with("ref") || implementation.ends_with(":ref"); }
};

/// Throws dnnl::error when oneDNN has no implementation.
Built Build(const Primitive& primitive);

}  // namespace collage::dnnl_toolchain
