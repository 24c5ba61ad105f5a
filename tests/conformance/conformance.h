// conformance.h: compiles a function with one toolchain, runs it, and compares with the reference evaluation.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "collage/ir/op.h"
#include "collage/target/toolchain.h"

namespace collage::conformance {

/// How a comparison is done.
struct Options {
  BoundaryLayouts layouts;  ///< empty: all plain
  int num_threads = 1;
  std::string schedule;     ///< PartitionRequest::schedule
  double tolerance = 1e-4;  ///< relative to the largest reference result (at least 1), beside what rounding leaves open
  double low = -1.0;        ///< inputs are drawn from [low, high]
  double high = 1.0;
  bool all_bytes = false;  ///< 8-bit inputs are drawn from all of their range instead
  /// Share of a result's bytes that may be one off, in place of what rounding leaves open, which is more. A byte is a
  /// rounded quotient, and sums in another order fall on the other side of a tie now and then: of float32 sums of some
  /// hundred terms no more than one in thousands does.
  double share_one_off = 0;
};

/// The built-in toolchain called `name`; in place of "native" the one that $COLLAGE_TEST_NATIVE names.
const Toolchain& BuiltinToolchain(const std::string& name);

/// Compiles `function` (parameters are tensors; typed here) and compares two runs, the second on other addresses, with
/// the reference. A refusal is a failure.
void ExpectAgrees(const Toolchain& toolchain, const Function& function, const Options& options = {});

/// Compiles `function`, of one float32 parameter and one result, and expects four threads with a kernel each to
/// compute, 200 times, the same bytes as one thread alone.
void ExpectThreadsAgree(const Toolchain& toolchain, const Function& function);

/// As ExpectAgrees for one of the toolchain's pattern rows: `function` becomes its composite, checked by its predicate.
void ExpectPatternAgrees(const Toolchain& toolchain, const std::string& pattern, const Function& function,
                         const Options& options = {});

/// A function of one operator call with the example's arguments as parameters. `constant_from`: arguments from this one
/// on are random constants.
Function ExampleFunction(const OpDef& op, const OpExample& example, size_t constant_from = SIZE_MAX);

/// Values in [low, high], whole numbers for integers; the same for the same seed.
Tensor RandomTensor(const Shape& shape, DataType dtype, double low, double high, uint32_t seed);
Constant RandomConstant(const Shape& shape, uint32_t seed, double low = -1, double high = 1);
Var Input(const std::string& name, const Shape& shape, DataType dtype = kFloat32);

}  // namespace collage::conformance
