// build.h: from an Operation to XNNPACK's objects.
#pragma once

#include <xnnpack.h>

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backends/xnnpack/spec.h"

namespace collage::xnnpack_toolchain {

struct DeleteOperator {
  void operator()(xnn_operator_t op) const { xnn_delete_operator(op); }
};

/// An operator with its weights packed, and what gives it addresses.
struct Part {
  std::unique_ptr<xnn_operator, DeleteOperator> op;
  /// `data` has one address per operand in Operation::data.
  std::function<xnn_status(xnn_operator_t op, const void* const* data, void* result, pthreadpool_t pool)> set_up;
};

/// The parts in the order in which they run; a concatenation has one per operand. Throws Error when XNNPACK makes no
/// such operator: kUnavailable.
std::vector<Part> Build(const Operation& operation, std::span<const Tensor> constants);

std::vector<Part> BuildContraction(const Operation& operation, std::span<const Tensor> constants);
std::vector<Part> BuildPool(const Operation& operation);
std::vector<Part> BuildElementWise(const Operation& operation, std::span<const Tensor> constants);
std::vector<Part> BuildMovement(const Operation& operation);

/// Throws unless `status` is success; `what` says what was tried.
void Check(xnn_status status, const char* what);

/// A part from a function of XNNPACK and its arguments but the last, which is where the operator goes.
template <typename Create, typename... Arguments>
std::unique_ptr<xnn_operator, DeleteOperator> Make(Create create, Arguments... arguments) {
  xnn_operator_t op = nullptr;
  Check(create(arguments..., &op), "make the operator");
  return std::unique_ptr<xnn_operator, DeleteOperator>(op);
}

/// The clamp in the result's quantised integers, within their range.
struct Range {
  int low = 0;
  int high = 0;
};
Range QuantisedRange(const Operation& operation);

/// The tensor of a constant operand; throws kCorrupt when it is not there.
const Tensor& ConstantOf(const Operand& operand, std::span<const Tensor> constants);

inline size_t Size(int64_t value) { return static_cast<size_t>(value); }
inline uint32_t U32(int64_t value) { return static_cast<uint32_t>(value); }
inline std::vector<size_t> Sizes(const Shape& shape) { return {shape.begin(), shape.end()}; }

}  // namespace collage::xnnpack_toolchain
