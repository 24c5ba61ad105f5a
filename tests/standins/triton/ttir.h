// ttir.h: Triton's intermediate representation (the dialects tt, arith, math and scf of MLIR), read from its text.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace standin::ttir {

/// Ends a kernel: why.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class Element : uint8_t { kFloat32, kFloat16, kBFloat16, kInt1, kInt8, kInt32, kInt64, kPointer };

/// A number, an address, or a tensor of such.
struct Type {
  Element element = Element::kInt32;
  Element pointee = Element::kInt32;  ///< the type that an address is of
  std::vector<int64_t> shape;         ///< empty: one
};

inline bool IsFloat(Element element) { return element <= Element::kBFloat16; }
size_t BytesOf(Element element);
/// "tensor<64x32x!tt.ptr<f16>>", "i32". Throws Failure.
Type ParseType(std::string_view text);

struct Operation;

struct Block {
  std::vector<int> arguments;
  std::vector<Operation> operations;
};

struct Operation {
  std::string name;           ///< "arith.addi"
  std::vector<int> results;   ///< numbers of values
  std::vector<int> operands;  ///< likewise
  std::string text;           ///< attributes and numbers: all between the name and the types
  Type type;                  ///< the result's; of a store, and of an operation without a result, nothing
  Block body;                 ///< a loop has one, and a reduction
};

struct Argument {
  int value = 0;
  Type type;
  int64_t divisibility = 1;  ///< its address is a multiple of it
};

struct Function {
  std::string name;
  std::vector<Argument> arguments;
  Block body;
  int num_values = 0;
};

/// The function of a module that has one. Throws Failure for what is not understood.
Function Parse(std::string_view text);

/// The word behind `mark` in `text`, up to a comma, a bracket or a space; empty without it.
std::string WordBehind(std::string_view text, std::string_view mark);

}  // namespace standin::ttir
