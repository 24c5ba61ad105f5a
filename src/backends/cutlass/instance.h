// instance.h: a kernel of CUTLASS by what its templates are given.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>

#include "backends/cutlass/arguments.h"
#include "collage/runtime/tensor.h"
#include "support/json_fields.h"

namespace collage::cutlass {

using cutlass_interface::Combination;
using cutlass_interface::Function;
using cutlass_interface::Problem;

/// The beginning of an image for the emulated architecture; the instance as JSON follows, and a 0.
inline constexpr const char* kEmulatedText = "instance of CUTLASS: ";

enum class Operation : uint8_t { kProduct, kConvolution };

/// Types of factors. Results have the same, those of int8 are int32.
enum class Element : uint8_t { kFloat32, kFloat16, kBFloat16, kInt8 };

/// The unit that multiplies, and how.
enum class Multiplier : uint8_t {
  kScalar,     ///< float32, by fused multiply-adds
  kTf32,       ///< tensor cores, factors of float32 rounded to TF32
  kThreeTf32,  ///< tensor cores, factors of float32 as sums of two of TF32: three products for each
  kTensor,     ///< tensor cores, factors as they are
};

constexpr std::array<const char*, 2> NamesOf(Operation) { return {"product", "convolution"}; }
constexpr std::array<const char*, 4> NamesOf(Element) { return {"float32", "float16", "bfloat16", "int8"}; }
constexpr std::array<const char*, 4> NamesOf(Multiplier) { return {"scalar", "tf32", "3xtf32", "tensor"}; }

/// The tile of the result that a block of threads computes, by `k` factors at a time, and that of a warp.
struct Tile {
  int m = 128, n = 128, k = 32;
  int warp_m = 64, warp_n = 64;
  int stages = 4;  ///< tiles of factors that are in shared memory

  int threads() const { return m / warp_m * (n / warp_n) * 32; }
  auto operator<=>(const Tile&) const = default;
};

struct Instance {
  Operation operation = Operation::kProduct;
  Element element = Element::kFloat32;
  Multiplier multiplier = Multiplier::kScalar;
  bool transposes_a = false;  ///< products: A is stored as [k, m]
  bool transposes_b = false;  ///< products: B is stored as [n, k]
  /// Elements that are read or written at a time: addresses and rows are multiples of them.
  int alignment_a = 1, alignment_b = 1, alignment_result = 1;
  Function function = Function::kNone;
  Combination combination = Combination::kNone;
  Function end = Function::kNone;
  Tile tile = {};

  auto operator<=>(const Instance&) const = default;
};

int BytesOf(Element element);
/// Bytes of an element of the result.
int ResultBytesOf(Element element);

/// The CUDA text that nvcc compiles.
std::string DeviceText(const Instance& instance);

template <typename Self, typename Visitor>
requires IsMessage<Self, Tile>
void VisitFields(Self& tile, Visitor& visit) {
  visit.Field("m", tile.m);
  visit.Field("n", tile.n);
  visit.Field("k", tile.k);
  visit.Field("warp_m", tile.warp_m);
  visit.Field("warp_n", tile.warp_n);
  visit.Field("stages", tile.stages);
}

template <typename Self, typename Visitor>
requires IsMessage<Self, Instance>
void VisitFields(Self& instance, Visitor& visit) {
  visit.Field("operation", instance.operation);
  visit.Field("element", instance.element);
  visit.Field("multiplier", instance.multiplier);
  visit.Field("transposes_a", instance.transposes_a);
  visit.Field("transposes_b", instance.transposes_b);
  visit.Field("alignment_a", instance.alignment_a);
  visit.Field("alignment_b", instance.alignment_b);
  visit.Field("alignment_result", instance.alignment_result);
  visit.Field("function", instance.function);
  visit.Field("combination", instance.combination);
  visit.Field("end", instance.end);
  visit.Field("tile", instance.tile);
}

}  // namespace collage::cutlass

namespace collage::cutlass_interface {

constexpr std::array<const char*, 9> NamesOf(Function) {
  return {"none", "relu", "clip", "sigmoid", "tanh", "swish", "gelu", "gelu_tanh", "hardswish"};
}
constexpr std::array<const char*, 3> NamesOf(Combination) { return {"none", "add", "multiply"}; }

}  // namespace collage::cutlass_interface
