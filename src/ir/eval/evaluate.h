// evaluate.h: the reference interpreter: what every toolchain's results are compared with. Slow and plainly right.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/ir/op.h"
#include "collage/runtime/tensor.h"

namespace collage {

class RandomDraws;

/// How operators round, to integers and to floats.
enum class Rounding : uint8_t {
  kNearest,  ///< as their reference evaluation says
  /// Rounds at random: to integers up or down, by OpDef::random_rounding; floats by as much as kernels may deviate that
  /// sum in their own order (random_rounding.h). Values of constants alone are exact.
  kRandom,
};

struct EvaluateOptions {
  Rounding rounding = Rounding::kNearest;
  uint64_t seed = 0;  ///< seed of random rounding
  /// For random rounding: a type below float32 that kernels round float32 values to, constants included.
  std::optional<DataType> computed_in;
  /// Called after each operator; what it throws ends the evaluation. Empty: nothing is.
  std::function<void()> on_operator;
  /// For operators that draw random numbers; null: numbers of a new run.
  RandomDraws* draws = nullptr;
};

/// Evaluates one call of `op` with complete attributes; tuple arguments flattened into `inputs`, of types `arg_types`.
std::vector<Tensor> EvaluateOp(const OpDef& op, const Attrs& attrs, std::span<const Type> arg_types,
                               std::span<const Tensor> inputs, const EvaluateOptions& options = {});

/// Whether a call of `op` on constants is worth computing ahead. Dequantising is not: weights stay 8-bit integers, of
/// which toolchains make 8-bit kernels, and which take a quarter of the memory. Random numbers are not: each run has
/// its own.
bool ShouldFold(const OpDef& op, std::span<const Tensor> inputs);

/// Evaluates `function` on its flattened inputs; returns its flattened results. Dataflow and calls of inner
/// functions are evaluated here, in the order of the graph; functions with control flow are left to the interpreter.
/// Throws kInput when the inputs do not fit.
std::vector<Tensor> Evaluate(const Function& function, std::span<const Tensor> inputs,
                             const EvaluateOptions& options = {});

}  // namespace collage
