// generate.cc: the text of an instance: what its templates are given, between the texts of device/.
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "backends/cutlass/instance.h"
#include "cutlass_device_text.h"

namespace collage::cutlass {
namespace {

const char* TypeOf(Element element) {
  switch (element) {
    case Element::kFloat32: return "float";
    case Element::kFloat16: return "cutlass::half_t";
    case Element::kBFloat16: return "cutlass::bfloat16_t";
    case Element::kInt8: break;
  }
  return "int8_t";
}

/// The shape of the product that one instruction computes.
const char* InstructionOf(const Instance& instance) {
  if (instance.multiplier == Multiplier::kScalar) return "1, 1, 1";
  if (instance.multiplier != Multiplier::kTensor) return "16, 8, 8";
  return instance.element == Element::kInt8 ? "16, 8, 32" : "16, 8, 16";
}

const char* OperatorOf(const Instance& instance) {
  if (instance.element == Element::kInt8) return "OpMultiplyAddSaturate";
  return instance.multiplier == Multiplier::kThreeTf32 ? "OpMultiplyAddFastF32" : "OpMultiplyAdd";
}

std::string TypesOf(const Instance& instance) {
  const bool is_int8 = instance.element == Element::kInt8;
  const auto layout = [](bool is_transposed) { return is_transposed ? "ColumnMajor" : "RowMajor"; };
  const Tile& tile = instance.tile;
  return fmt::format(
      R"(
struct Types {{
  using Element = {element};
  using Result = {result};
  using Sum = {sum};
  using LayoutA = cutlass::layout::{layout_a};
  using LayoutB = cutlass::layout::{layout_b};
  using OperatorClass = cutlass::arch::{operator_class};
  using Operator = cutlass::arch::{operation};
  using Tile = cutlass::gemm::GemmShape<{m}, {n}, {k}>;
  using WarpTile = cutlass::gemm::GemmShape<{warp_m}, {warp_n}, {k}>;
  using Instruction = cutlass::gemm::GemmShape<{instruction}>;
  static int const kStages = {stages};
  static int const kAlignmentA = {alignment_a};
  static int const kAlignmentB = {alignment_b};
  using Behind = collage::Behind<Result, Sum, {alignment_result}, collage::Function({function}),
                                 collage::Combination({combination}), collage::Function({end})>;
}};
using Instance = collage::{family}<Types>;

)",
      fmt::arg("element", TypeOf(instance.element)), fmt::arg("result", is_int8 ? "int32_t" : TypeOf(instance.element)),
      fmt::arg("sum", is_int8 ? "int32_t" : "float"), fmt::arg("layout_a", layout(instance.transposes_a)),
      fmt::arg("layout_b", layout(instance.transposes_b)),
      fmt::arg("operator_class", instance.multiplier == Multiplier::kScalar ? "OpClassSimt" : "OpClassTensorOp"),
      fmt::arg("operation", OperatorOf(instance)), fmt::arg("m", tile.m), fmt::arg("n", tile.n), fmt::arg("k", tile.k),
      fmt::arg("warp_m", tile.warp_m), fmt::arg("warp_n", tile.warp_n),
      fmt::arg("instruction", InstructionOf(instance)), fmt::arg("stages", tile.stages),
      fmt::arg("alignment_a", instance.alignment_a), fmt::arg("alignment_b", instance.alignment_b),
      fmt::arg("alignment_result", instance.alignment_result),
      fmt::arg("function", static_cast<int>(instance.function)),
      fmt::arg("combination", static_cast<int>(instance.combination)), fmt::arg("end", static_cast<int>(instance.end)),
      fmt::arg("family", instance.operation == Operation::kProduct ? "Product" : "Convolution"));
}

constexpr std::string_view kOfProducts =
    R"(#include "cutlass/gemm/kernel/default_gemm_with_broadcast.h"
)";
constexpr std::string_view kOfConvolutions =
    R"(#include "cutlass/conv/kernel/default_conv2d_fprop_with_broadcast.h"
)";

}  // namespace

int BytesOf(Element element) {
  switch (element) {
    case Element::kFloat32: return 4;
    case Element::kFloat16:
    case Element::kBFloat16: return 2;
    case Element::kInt8: break;
  }
  return 1;
}

int ResultBytesOf(Element element) { return element == Element::kInt8 ? 4 : BytesOf(element); }

std::string DeviceText(const Instance& instance) {
  constexpr std::string_view kOnce = "#pragma once\n";
  std::string arguments = kArgumentsText;
  arguments.erase(arguments.find(kOnce), kOnce.size());
  const bool is_product = instance.operation == Operation::kProduct;
  std::string text(is_product ? kOfProducts : kOfConvolutions);
  text += "#include \"cutlass/epilogue/threadblock/default_epilogue_with_broadcast.h\"\n";
  text += "#include \"cutlass/numeric_conversion.h\"\n";
  text += arguments;
  text += kBehindText;
  text += is_product ? kProductText : kConvolutionText;
  text += TypesOf(instance);
  text += kEntryText;
  return text;
}

}  // namespace collage::cutlass
