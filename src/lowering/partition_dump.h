// partition_dump.h: what each partition is made of and compiled to, as files for people to read.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "collage/target/toolchain.h"

namespace collage {

/// Writes one set of files for each partition into a folder, numbered in the order of their computation, as in
/// `collage info` and `collage run --steps`:
///
///     000-native-nn.conv2d+nn.relu.relay   the function; constants by their types only
///     000-native-nn.conv2d+nn.relu.json    toolchain, schedule, layouts, nodes of the model, sizes of code and memory
///     000-native-nn.conv2d+nn.relu.mlir    the steps to its code (Toolchain::Listings), each under its own extension
///
/// A partition that differs from an earlier one by the values of its weights alone has only the .json, which says from
/// which.
class PartitionDump {
 public:
  /// Makes `folder` where it does not exist. Throws kInput when it has files already, since those of an earlier dump
  /// could not be told from new ones.
  explicit PartitionDump(std::filesystem::path folder);

  /// `nodes`: names of the model's nodes inside. Throws kResource when a file cannot be written.
  void Add(const Toolchain& toolchain, const PartitionRequest& request, const CompiledPartition& compiled,
           const std::vector<std::string>& nodes);

 private:
  std::filesystem::path folder_;
  int count_ = 0;
  std::map<std::string, std::string> first_by_content_;  ///< content but for weights → name of the first with it
};

/// Operators of `function` joined by '+', as RFC 0.81 labels sub-graphs.
std::string OperatorLabel(const Function& function);

}  // namespace collage
