// file_format.h: what writing programs to files and reading them share.
//
//   pieces   bytecode, constants, and code with what it was compiled for (runtime/plan/kernel_signature.h): equal ones
//            once, whatever refers to them, so that functions for several sizes share the weights of a model
//   index    {"bytecode": PLACE, "constants": [{"shape", "dtype", "place"}, …], "code": [PLACE, …],
//             "kernels": [the index of an executable, …], "nodes": [[the model's nodes in a kernel that is told
//             shapes, …], …]}
//
// The bytecode has little-endian integers of 64 bits, and texts with their length before them: signatures (types travel
// as Relay text, in the signatures of functions), globals, functions, constants, operators, constructors, kernels
// (whole executables) and kernels that are told shapes. It refers to constants and code by their number in the index.
//
// The index, bytecode and code are checked when a file is loaded, a constant when it is first used.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "bytecode/bytecode.h"
#include "runtime/plan/piece_file.h"

namespace collage::vm {

inline constexpr PieceFormat kProgramFormat{
    .magic = 0x50474c43,  // "CLGP"
    .version = 5,
    .index = "index",
    .other_file = "this is no bytecode",
    .damaged = "the bytecode is damaged",
    .truncated = "the bytecode is truncated",
    .other_version = "the bytecode has format {}, this Collage reads {}",
    .remedy = "compile the program again",
};
inline constexpr std::string_view kProgramMagic = "CLGP";
/// Formats 1 to 3 began so; their number is the byte behind it.
inline constexpr std::string_view kFormerMagic{"CLGVM\0\0", 7};
/// Whether a file that begins so is bytecode, of whatever format.
inline bool IsProgramFile(std::string_view begin) {
  return begin.starts_with(kProgramMagic) || begin.starts_with(kFormerMagic);
}

// Attributes of a function's signature. Parameters have names of their own, as the program's author wrote them: those
// of the signature, being Relay text, are identifiers.
inline constexpr const char* kResultNames = "output_names";
inline constexpr const char* kParameterNames = "input_names";

/// Stands before an attribute's value and says of which kind it is.
enum class AttrTag : int64_t { kNone = 0, kBool = 1, kInt = 2, kDouble = 3, kText = 4, kList = 5 };

/// A digest of the code of `kernel` and of all that it may rely on: the types of its parameters, how its results'
/// shapes follow from them, constants, whose checksums are given, and workspace; stored beside each piece of code
/// (runtime/plan/kernel_signature.h).
uint64_t SignatureOf(const DynamicKernel& kernel, std::span<const uint64_t> constants,
                     std::span<const uint64_t> step_constants);

}  // namespace collage::vm
