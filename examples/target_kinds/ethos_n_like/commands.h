// commands.h: what the compiler writes for the device: a list of commands, and weights in blocks.
#pragma once

#include <cstdint>

namespace ethos_n_like {

/// A value's place: input or output number `at` of the partition, or byte `at` of the device's memory.
struct Place {
  enum Kind : int64_t { kInput, kOutput, kMemory };
  int64_t kind = kInput;
  int64_t at = 0;
};

/// A fully connected layer, to[row][o] = bias[o] + sum over i of from[row][i] * weight[o][i]. The weights of command N
/// are constant N of the partition.
struct Command {
  int64_t num_rows = 0;
  int64_t num_inputs = 0;
  int64_t num_outputs = 0;
  int64_t has_relu = 0;
  Place from;
  Place to;
};

/// Outputs that the device computes at once. Weights lie [block of outputs][input][output in the block]; the last of
/// the inputs is the bias. Outputs that fill up the last block have weights of 0.
inline constexpr int64_t kBlock = 16;

inline int64_t NumBlocks(const Command& command) { return (command.num_outputs + kBlock - 1) / kBlock; }
inline int64_t NumWeights(const Command& command) { return NumBlocks(command) * (command.num_inputs + 1) * kBlock; }

}  // namespace ethos_n_like
