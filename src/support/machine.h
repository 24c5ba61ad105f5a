// machine.h: which machine this is, for tuning keys, reports and executables that must not run elsewhere.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace collage {

struct MachineInfo {
  std::string cpu;                    ///< "AMD EPYC"
  std::string isa;                    ///< "x86-64"
  std::vector<std::string> features;  ///< features that generated code may use, sorted: avx2, avx512f, fma …
  int processors = 1;                 ///< processors that this process may use
  /// Short text that is equal on machines of one kind: model numbers and features, caches.
  std::string fingerprint;
};

const MachineInfo& ThisMachine();

/// Whether `name`, in LLVM's words ("sse4.1", "avx512vnni"), is a set of instructions that code for this kind of
/// processor may use or not; how the processor is tuned for is none.
bool IsInstructionSet(std::string_view name);
/// Whether this processor has it; false for what is none.
bool HasInstructionSet(std::string_view name);
/// Whether a processor with `features` (MachineInfo) has VNNI, instructions that add up products of bytes in 32 bits.
/// Without them libraries add in 16 bits, which overflow.
bool HasVnni(std::span<const std::string> features);

/// Bytes of the first processor's cache of `level`; `usual` where the system does not say. (sysconf adds up last level
/// caches that no processor can use at once.)
int64_t CacheSize(int level, int64_t usual);

}  // namespace collage
