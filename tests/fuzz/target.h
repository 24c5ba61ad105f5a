// target.h: what is fuzzed. A target reads bytes; Error is a right answer, unless it says that Collage is wrong.
#pragma once

#include <string>

namespace collage::fuzz {

// Each in the source of its name.
void ReadText(const std::string& bytes);        ///< Relay text, printed and read again
void ReadOnnx(const std::string& bytes);        ///< ONNX models: bytes, or a node with operands at their edges
void ReadExecutable(const std::string& bytes);  ///< .clg files with checksums that fit
void ReadJson(const std::string& bytes);        ///< rules, costs, targets, limits, partitionings, tuning records
void ReadArrays(const std::string& bytes);      ///< .npy, .npz, .pb
void ReadWords(const std::string& bytes);       ///< targets, patterns, explanations
void RunPasses(const std::string& bytes);       ///< a random module through random passes

/// Aborts, with a text, unless `holds`.
void Require(bool holds, const std::string& what);

/// The first of `bytes` as a number, which is taken off; 0 where there is none.
int TakeNumber(std::string& bytes);

}  // namespace collage::fuzz
