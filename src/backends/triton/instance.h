// instance.h: a kernel as Triton is given it: one of the programs of kernels/, the numbers that it is specialised for,
// and the function that follows its sum or computes its elements.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "backends/triton/kernel.h"
#include "collage/runtime/data_type.h"

namespace collage::triton {

/// The programs of kernels/.
enum class Program : uint8_t { kProduct, kAttention, kRows, kElements };

constexpr std::array<const char*, 4> NamesOf(Program) { return {"product", "attention", "rows", "elements"}; }

/// How products of float32 are computed.
enum class Multiplier : uint8_t {
  kExact,      ///< by scalar arithmetic; other types by tensor cores, which multiply them as they are
  kThreeTf32,  ///< by tensor cores, factors as sums of two of TF32: three products for each
  kTf32,       ///< by tensor cores, factors rounded to TF32
};

/// In schedules, and as Triton calls them.
constexpr std::array<const char*, 3> NamesOf(Multiplier) { return {"ieee", "tf32x3", "tf32"}; }

/// A tensor that a kernel reads, by its parameter's name; empty: it is one of the parameter `others`.
struct Parameter {
  std::string name;
  DataType dtype;
  ReadTensor read;
};

/// Sizes that schedules are chosen by. Rows and elements use `m` and `n` only.
struct Sizes {
  int64_t batch = 1;
  int64_t m = 1, n = 1;  ///< a matrix of the result; of attention, the scores of one
  int64_t k = 1;         ///< depth of products
  int64_t width = 1;     ///< columns of attention's result
};

struct Instance {
  Program program = Program::kElements;
  std::vector<Parameter> parameters;  ///< in the kernel's order
  DataType result;
  DataType factor = kFloat32;                                  ///< the type of what is multiplied
  std::vector<std::pair<std::string, std::string>> constants;  ///< names and values, as Python's texts
  std::string behind;                                          ///< the function `behind`, as Python's text
  Sizes sizes;
};

/// "*fp32": the type of an address of such elements. Bools are bytes.
std::string PointerType(DataType dtype);

/// The text of the program.
const char* ProgramText(Program program);

}  // namespace collage::triton
