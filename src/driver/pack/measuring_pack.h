// measuring_pack.h: the file with all that a machine needs to measure the candidates of models that are not there: the
// candidates' functions, what they were compiled to, and which costs a search may ask for; or the covers that meet in a
// play-off there.
//
// A container of pieces (runtime/plan/piece_file.h): texts of functions, tensors and blobs, each distinct one once. The
// index is JSON of the structs below. Inputs and reference results are not in it: both follow from the function
// (ir/eval/sample_inputs.h), wherever it is measured.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collage/target/toolchain.h"
#include "cost/machine/roofline.h"
#include "driver/play_off/play_off.h"
#include "support/file.h"

namespace collage {

/// A toolchain, by its name or a configuration's text, as it was where the pack was made.
struct PackedToolchain {
  std::string name;
  std::string compiler;       ///< version (CompilerOf)
  std::string revision;       ///< the revision of our code for it
  bool for_processor = true;  ///< CompilesForThisProcessor
};

/// A way to compile a partition.
struct PackedCode {
  std::string schedule;
  int compiled = -1;    ///< an index into `MeasuringPack::compiled`; -1: it declined, or failed
  std::string failure;  ///< why
};

/// A partition of some toolchain: a candidate's, or one that tells what any call of the toolchain takes.
struct PackedPartition {
  PartitionRequest request;  ///< by the first schedule of `codes`, which a file has alone
  int toolchain = -1;
  std::vector<PackedCode> codes;  ///< the toolchain's own choice first, then the schedules near it
};

/// How soon a cost is worth knowing.
struct PackedRank {
  int stage = 0;     ///< 0: costs of which there is a cover; 1: of what may be better; 2: of other schedules
  double share = 0;  ///< the share of its model's work, all places where it is asked for together
};

/// A candidate of a model: what a CostQuery has.
struct PackedCandidate {
  int partition = -1;
  std::string workload;
  Work work;
  std::string label;
  std::string target;
  PackedRank rank;
};

/// Changing the layout of a value.
struct PackedConversion {
  Shape shape;
  DataType dtype;
  Layout from = Layout::kPlain;
  Layout to = Layout::kPlain;
  auto operator<=>(const PackedConversion&) const = default;
};

/// A model, or a static graph of one.
struct PackedModel {
  std::string name;
  int64_t footprint_bytes = 0;  ///< bytes that a run touches: decides where operands are in the caches of a machine
  std::string operands;         ///< CompileOptions::operands
  int percentile = 50;
  std::vector<PackedCandidate> candidates;
  std::vector<PackedConversion> conversions;
};

/// Covers of a model, or of a static graph of one, that meet in a play-off.
struct PackedPlayOff {
  std::string model;
  IRModule original;  ///< contenders must have its results
  std::vector<ContenderModule> contenders;
  std::string machine;                          ///< fingerprint of the one by whose costs they were chosen
  std::map<std::string, std::string> versions;  ///< toolchains' there, as in the keys of costs
};

struct MeasuringPack {
  std::string collage;  ///< its version
  std::string machine;  ///< fingerprint of the one that made it
  std::string cpu;
  int num_threads = 1;
  std::vector<PackedToolchain> toolchains;
  std::vector<CompiledPartition> compiled;
  std::vector<std::string> compiled_names;  ///< CompiledStore::NameOf, parallel
  std::vector<PackedPartition> partitions;
  std::vector<PackedModel> models;
  std::vector<PackedPlayOff> play_offs;
  std::shared_ptr<void> owner;  ///< keeps the mapped file in which tensors lie
};

/// Returns the version of this Collage.
std::string CollageVersion();

/// Writes the whole file, or nothing. Throws kResource.
void WritePack(const MeasuringPack& pack, const std::filesystem::path& path);
/// Reads all of it: a damaged file is never taken for a candidate's failure. Throws kCorrupt, kUnavailable for a file
/// of another version of the format or of Collage, kInput where it cannot be opened.
MeasuringPack ReadPack(const std::filesystem::path& path);

}  // namespace collage
