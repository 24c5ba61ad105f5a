// file_format.h: what writing programs to files and reading them share.
//
//   "CLGVM", two zeros, the version   little-endian integers of 64 bits, texts and blobs with their length before them
//   signatures                        types travel as Relay text, in the signatures of functions
//   globals, functions, constants, operators, constructors, kernels (whole executables), kernels that are told shapes
//   the checksum of all before it
#pragma once

#include <cstdint>
#include <string_view>

#include "bytecode/bytecode.h"

namespace collage::vm {

inline constexpr std::string_view kHeader{"CLGVM\0\0\3", 8};
inline constexpr std::string_view kMagic = kHeader.substr(0, 7);
inline constexpr size_t kVersionAt = 7;
// Attributes of a function's signature. Parameters have names of their own, as the program's author wrote them: those
// of the signature, being Relay text, are identifiers.
inline constexpr const char* kResultNames = "output_names";
inline constexpr const char* kParameterNames = "input_names";

/// Stands before an attribute's value and says of which kind it is.
enum class AttrTag : int64_t { kNone = 0, kBool = 1, kInt = 2, kDouble = 3, kText = 4, kList = 5 };

/// A digest of the code of `kernel` and of all that it may rely on: the types of its parameters, how its results'
/// shapes follow from them, constants and workspace; stored beside each piece of code
/// (runtime/plan/kernel_signature.h).
uint64_t SignatureOf(const DynamicKernel& kernel);

}  // namespace collage::vm
