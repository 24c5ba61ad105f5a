// whole_model_check.h: how far executables of a whole model are from its reference evaluation.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/runtime/executable.h"
#include "ir/reference.h"

namespace collage {

/// What a function computes on certain inputs, which are the same each time. Slow to make, where the model is large.
class WholeModelCheck {
 public:
  /// `max_error`: CompileOptions::max_error.
  WholeModelCheck(const Function& main, std::optional<double> max_error);

  void SetInputs(ExecutionInstance& instance) const;
  /// Runs `instance`, whose inputs were set, twice. Empty when all results may be what they are, else why not;
  /// `error` becomes no less than the largest error, relative to the largest element of its result. Values that are
  /// kept as float16 must be so small that they would not overflow were the inputs, which are within 1, as large as
  /// bytes.
  std::string Check(ExecutionInstance& instance, double& error) const;

 private:
  /// Runs once. Empty when what is kept as float16 is far enough from the largest that this holds.
  static std::string RunLookingForOverflow(ExecutionInstance& instance);
  std::string FindDifference(size_t index, const Tensor& actual, double& error) const;

  std::optional<double> max_error_;
  std::vector<Tensor> inputs_;
  Reference reference_;
};

}  // namespace collage
