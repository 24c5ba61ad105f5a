// limits.cc: what single operators cannot do in TensorRT, one function per family.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "backends/tensorrt/support.h"
#include "collage/ir/type.h"

namespace collage::tensorrt {
namespace {

Reason No(std::string text) { return Reason{std::move(text), "tensorrt"}; }

DataType DTypeOf(const Type& type) { return AsTensorType(FlattenTensorTypes(type).at(0))->dtype(); }

bool IsConstant(const Expr& expr) { return As<ConstantNode>(expr) != nullptr; }

bool IsZero(const Expr& expr) {
  const ConstantNode* constant = As<ConstantNode>(expr);
  for (int64_t i = 0; constant != nullptr && i < constant->value().num_elements(); ++i) {
    if (constant->value().At(i) != 0) return false;
  }
  return constant != nullptr;
}

/// Quantisation to int8 around 0, by constant scales.
Result<void> CheckQuantisation(const CallNode& call) {
  if (!IsConstant(call.args()[1])) return No("quantises with constant scales only");
  if (!IsZero(call.args()[2])) return No("quantises with zero points of 0 only");
  const DataType bytes = std::min(DTypeOf(call.args()[0]->checked_type()), DTypeOf(call.checked_type()),
                                  [](DataType a, DataType b) { return a.bits < b.bits; });
  if (bytes != kInt8) return No("quantises to int8 only, not " + bytes.ToString());
  return {};
}

/// The place of an extreme value, along an axis of several.
Result<void> CheckPlace(const CallNode& call) {
  const Shape all = AsTensorType(call.args()[0]->checked_type())->static_shape();
  const Shape kept = AsTensorType(call.checked_type())->static_shape();
  // All that is reduced becomes one axis, and TensorRT wants another one beside it.
  if (all.size() < 2 || NumElements(kept) == 1) return No("finds no place in all of a tensor");
  return {};
}

}  // namespace

Result<void> CheckLimits(const CallNode& call, std::string_view name) {
  if (name == "qnn.quantize" || name == "qnn.dequantize") return CheckQuantisation(call);
  if (name == "argmax" || name == "argmin") return CheckPlace(call);
  if (name == "einsum" && call.attrs().String("equation").find("...") != std::string::npos) {
    return No("broadcasts no axes that an equation leaves out");
  }
  const bool scatters = name == "scatter_elements" || name == "scatter_nd";
  if (scatters && call.attrs().String(name == "scatter_nd" ? "mode" : "reduction") != "update") {
    return No("overwrites elements, but combines them with nothing");
  }
  const DataType dtype = FirstDType(call);
  const bool is_transposed = name.starts_with("nn.conv") && name.ends_with("_transpose");
  if (dtype == kBFloat16 && (is_transposed || name == "nn.gru")) return No("has no kernels for it in bfloat16");
  return {};
}

}  // namespace collage::tensorrt
