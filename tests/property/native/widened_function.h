// widened_function.h: how far from the reference the results of a right kernel may lie, measured.
//
// A function is evaluated as it stands, where each operator rounds to its own type, and with all floats widened to 64
// bits. The difference is what the reference itself loses by rounding. A kernel rounds at other places, and its
// elementary functions are good to a few places of float32, so it may lose some times as much; but no more than that.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/runtime/tensor.h"
#include "ir/eval/reference.h"

namespace collage {

/// `function` with float64 in place of all other float types, parameters included.
Function Widened(const Function& function);

class ExpectedResults {
 public:
  /// `function` must not jump where its arguments were rounded (function_generator.h), quantising excepted.
  ExpectedResults(const Function& function, const std::vector<Tensor>& inputs);

  const std::vector<Tensor>& results() const { return results_; }
  /// Returns the defect of result `index`; empty if there is none.
  std::string Compare(size_t index, const Tensor& actual) const;

 private:
  std::vector<Tensor> results_;
  std::vector<double> allowed_;         ///< by result: the largest absolute error
  std::optional<Reference> reference_;  ///< for functions that quantise
};

}  // namespace collage
