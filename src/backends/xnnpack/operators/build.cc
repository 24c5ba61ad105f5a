// build.cc: what the families of operators share.
#include "backends/xnnpack/operators/build.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "collage/support/error.h"

namespace collage::xnnpack_toolchain {
namespace {

const char* TextOf(xnn_status status) {
  switch (status) {
    case xnn_status_uninitialized: return "is not initialised";
    case xnn_status_invalid_parameter: return "finds a parameter out of range";
    case xnn_status_unsupported_parameter: return "has no such combination of parameters";
    case xnn_status_unsupported_hardware: return "has no kernels for this processor";
    case xnn_status_out_of_memory: return "ran out of memory";
    default: return "is in a wrong state";
  }
}

}  // namespace

void Check(xnn_status status, const char* what) {
  if (status == xnn_status_success) return;
  throw Error(ErrorCategory::kUnavailable, fmt::format("XNNPACK cannot {}: it {}", what, TextOf(status)));
}

Range QuantisedRange(const Operation& operation) {
  const bool is_signed = operation.element == Element::kInt8;
  const Range all{is_signed ? -128 : 0, is_signed ? 127 : 255};
  const Quantisation& q = operation.result_quantisation;
  if (q.scales.empty()) return all;
  const auto quantised = [&](double bound) {
    const double value = std::nearbyint(static_cast<float>(bound) / static_cast<float>(q.scale())) + q.zero_point;
    return static_cast<int>(std::clamp<double>(value, all.low, all.high));
  };
  return {std::isinf(operation.low) ? all.low : quantised(operation.low),
          std::isinf(operation.high) ? all.high : quantised(operation.high)};
}

const Tensor& ConstantOf(const Operand& operand, std::span<const Tensor> constants) {
  if (operand.constant < 0 || Size(operand.constant) >= constants.size()) {
    throw Error(ErrorCategory::kCorrupt, "an XNNPACK kernel lacks a constant");
  }
  return constants[Size(operand.constant)];
}

std::vector<Part> Build(const Operation& operation, std::span<const Tensor> constants) {
  switch (operation.kind) {
    case Kind::kConv:
    case Kind::kDeconv:
    case Kind::kDense: return BuildContraction(operation, constants);
    case Kind::kMaxPool:
    case Kind::kAvgPool:
    case Kind::kGlobalAvgPool:
    case Kind::kResizeBilinear: return BuildPool(operation);
    case Kind::kPad:
    case Kind::kConcatenate: return BuildMovement(operation);
    default: return BuildElementWise(operation, constants);
  }
}

}  // namespace collage::xnnpack_toolchain
