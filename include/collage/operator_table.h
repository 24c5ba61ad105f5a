// operator_table.h: what each toolchain takes, operator by operator, dtype by dtype, layout by layout, and whether it
// then computes what the reference evaluation does. Rows are asked of the toolchain, none is written down by hand.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "collage/compile.h"

namespace collage {

/// One operator on one dtype with one choice of layouts at its boundary.
struct OperatorRow {
  std::string op;
  std::string dtype;                  ///< type of the data; indices have types of their own
  std::string layouts;                ///< "plain", "channels-last", or "IN → OUT" where they differ
  int num_calls = 0;                  ///< calls that were compiled, run and compared
  double max_error = 0;               ///< against the reference, relative to its largest result
  std::vector<std::string> failures;  ///< "Tensor[(2, 3), float32]: wrong result 0, …"; empty: all calls agree
};

struct OperatorTable {
  ToolchainReport toolchain;
  std::vector<OperatorRow> rows;  ///< by operator, dtype, layouts; empty for a toolchain that is not available
  int64_t num_declined = 0;       ///< calls that its predicates took and its compiler then declined
};

struct OperatorTableOptions {
  std::vector<std::string> toolchains;  ///< empty: all
  std::vector<std::string> operators;   ///< empty: all of the op table
  std::vector<std::string> dtypes;      ///< "float32", …; empty: all
  int num_calls = 1;                    ///< tried for a row, at most, each of other shapes
  uint32_t seed = 1;                    ///< seed of random shapes and values
  int num_threads = 1;
  /// Told before a toolchain's rows are checked, and now and then while they are.
  std::function<void(const std::string& toolchain, size_t done, size_t all)> on_progress;
};

/// Makes random calls of every operator (its row's examples with other sizes and dtypes, the second and later arguments
/// once as parameters and once as constants), asks each toolchain for candidates that hold the call and for their
/// layouts, compiles these in a worker, runs them, and compares. Throws kInput for a toolchain or operator that there
/// is not.
std::vector<OperatorTable> TabulateOperators(const OperatorTableOptions& options);

}  // namespace collage
