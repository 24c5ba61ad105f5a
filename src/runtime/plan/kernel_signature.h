// kernel_signature.h: what a kernel's code was compiled for, kept beside the code so that a plan which says something
// else is refused. Machine code cannot be asked how far it reads: it does what it was compiled to do on whatever
// addresses it gets.
//
//     piece of the file:  code | signatures, 8 bytes each, rising | their number, 8 bytes
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "collage/runtime/executable.h"

namespace collage {

/// A digest of what the kernel of `step` may rely on: its code and loader, the number of threads, shape, dtype and
/// layout of all that it reads and writes, its constants to the byte, and the size of its workspace. `code_checksum` is
/// of the code alone, `constant_checksums` are of all the plan's constants. `plan` has passed `FindPlanProblem`.
uint64_t SignatureOf(const ExecutionPlan& plan, const ExecutionPlan::Step& step, uint64_t code_checksum,
                     std::span<const uint64_t> constant_checksums);

/// `code` with the signatures of all that use it behind it.
std::vector<std::byte> SealCode(std::span<const std::byte> code, const std::set<uint64_t>& signatures);

/// Such a piece taken apart.
struct SealedCode {
  std::span<const std::byte> code;
  std::vector<uint64_t> signatures;  ///< rising

  /// Throws kCorrupt without a place when `piece` is none.
  explicit SealedCode(std::span<const std::byte> piece);
  bool IsFor(uint64_t signature) const;
};

}  // namespace collage
