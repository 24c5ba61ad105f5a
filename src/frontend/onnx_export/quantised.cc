// quantised.cc: quantisation and dequantisation; contractions between them stay what they are.
#include <fmt/format.h>

#include "frontend/onnx_export/exporter.h"

namespace collage {
namespace {

/// The axis of scales per channel; none for one scale.
AttrValue ScaleAxis(OnnxExportCall& call) {
  if (call.Rank(1) == 0 || call.TypeOf(1).shape()[0] == Dim(1)) return {};
  return call.Axis("axis", call.Rank(0));
}

/// Integers of 16 bits and scales of 16 bits came late.
void NeedOpsetFor(OnnxExportCall& call, DataType integers) {
  if (call.DTypeOf(1) != kFloat32 || (call.DTypeOf(0).is_floating() && call.DTypeOf(0) != kFloat32))
    call.NeedsOpset(19);
  if (integers.bits == 16) call.NeedsOpset(21);
}

/// The zero point in the dtype of the integers, which ONNX tells theirs from.
std::string ZeroPoint(OnnxExportCall& call, DataType dtype) {
  std::string zero = call.Cast(call.Arg(2), call.DTypeOf(2), dtype);
  // One for all channels where there is a scale for each, or the other way round.
  if (call.Rank(1) != call.Rank(2)) zero = call.Node("Expand", {zero, call.Node("Shape", {call.Arg(1)})});
  return zero;
}

OnnxNames Quantize(OnnxExportCall& call) {
  const DataType dtype = call.ResultType().dtype();
  if (dtype.bits > 16) call.Unsupported(fmt::format("out_dtype {}", dtype.ToString()));
  NeedOpsetFor(call, dtype);
  return {call.Node("QuantizeLinear", {call.Arg(0), call.Arg(1), ZeroPoint(call, dtype)}, {{"axis", ScaleAxis(call)}})};
}

OnnxNames Dequantize(OnnxExportCall& call) {
  const DataType dtype = call.DTypeOf(0);
  if (dtype.bits > 16 && dtype != kInt32) call.Unsupported(fmt::format("data of {}", dtype.ToString()));
  NeedOpsetFor(call, dtype);
  const std::string made =
      call.Node("DequantizeLinear", {call.Arg(0), call.Arg(1), ZeroPoint(call, dtype)}, {{"axis", ScaleAxis(call)}});
  return {call.Cast(made, call.DTypeOf(1), call.ResultType().dtype())};
}

}  // namespace

void AddQuantisedRows(OnnxExportRows& rows) {
  rows["qnn.quantize"] = Quantize;
  rows["qnn.dequantize"] = Dequantize;
}

}  // namespace collage
