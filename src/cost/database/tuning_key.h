// tuning_key.h: the keys of the tuning database: a struct for each kind of measurement and of other result.
//
// A key holds everything that its answer depends on, so a hit is valid by construction. It is stored as one line of
// JSON, its text, and found by the digest of that text:
//
//     {"kind": "partition", "workload": "dd82…", "layouts": "p:p", "toolchain": "native", "version": "22.1.8+23f5a120",
//      "method": "m5.0", "machine": "x86-64-…", "threads": 2}
//
// A new kind is a struct here, its fields in tuning_key.cc, and its place in one of the two variants.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace collage {

// Keys of times. `toolchain` is a name with options, `version` that of its library and of our code for it; `method`
// states how the time was taken, "m5.2.p90" (MeasuringEstimator).

/// A partition, compiled by a toolchain.
struct PartitionKey {
  static constexpr const char* kKind = "partition";
  std::string workload;  ///< digest of the structure: operators, types, attributes, shapes of constants, never weights
  std::string layouts;   ///< layouts of inputs and outputs, "pc:c"
  std::string toolchain;
  std::string version;
  std::string method;
  /// The schedule of a trial, "" for the toolchain's own choice. Nothing: the best known, which the record names.
  std::optional<std::string> schedule;
  auto operator<=>(const PartitionKey&) const = default;
};
/// A function of Probes(), by its name.
struct ProbeKey {
  static constexpr const char* kKind = "probe";
  std::string probe, toolchain, version, method;
  auto operator<=>(const ProbeKey&) const = default;
};
/// How much longer a partition of `toolchain` takes right after one of `from`.
struct SwitchKey {
  static constexpr const char* kKind = "switch";
  std::string from, from_version, toolchain, version, method;
  auto operator<=>(const SwitchKey&) const = default;
};
/// A rate of the machine: its record's p50 is seconds per multiply-add or byte.
struct RateKey {
  static constexpr const char* kKind = "rate";
  std::string rate, method;
  auto operator<=>(const RateKey&) const = default;
};
/// One more partition, in the executor.
struct TransitionKey {
  static constexpr const char* kKind = "transition";
  std::string method;
  auto operator<=>(const TransitionKey&) const = default;
};
/// Changing the layout of a value.
struct ConversionKey {
  static constexpr const char* kKind = "conversion";
  std::string shape, dtype;  ///< "(1, 8, 4, 4)", "float32"
  std::string from, to;      ///< names of layouts
  std::string method;
  auto operator<=>(const ConversionKey&) const = default;
};
/// A cover of a whole model, built, run once and compared with the reference evaluation.
struct CoverKey {
  static constexpr const char* kKind = "cover";
  std::string model;         ///< digest of structure, constants and inputs to check on
  std::string partitioning;  ///< digest
  std::string versions;      ///< digest of the toolchains' versions and of how it was compared
  auto operator<=>(const CoverKey&) const = default;
};

// Keys of other results. Each kind has a table of its own, named by `kKind`.

/// The schedules one step from `near`: a JSON list of texts.
struct ScheduleListKey {
  static constexpr const char* kKind = "schedule_list";
  PartitionKey near;
  auto operator<=>(const ScheduleListKey&) const = default;
};
/// Partitions that were measured in turn, each compiled by its key's schedule. Their own records hold the outcome.
struct ComparisonKey {
  static constexpr const char* kKind = "comparison";
  std::vector<PartitionKey> rivals;
  auto operator<=>(const ComparisonKey&) const = default;
};
/// One contender's part of a play-off: the fields of its `Contender` as a JSON object (driver/play_off/messages.h).
struct PlayOffKey {
  static constexpr const char* kKind = "play_off";
  std::string play_off;   ///< digest of all contenders and of how they are compared
  std::string contender;  ///< digest
  std::string name;
  auto operator<=>(const PlayOffKey&) const = default;
};

/// A machine whose measurements were brought here, by the name that it was given: a JSON object
/// (cost/database/measured_machine.h).
struct MachineKey {
  static constexpr const char* kKind = "machine";
  std::string name;
  auto operator<=>(const MachineKey&) const = default;
};

/// A key: what it is about, where, and with how many threads.
template <typename Subject>
struct KeyAbout {
  Subject subject;
  std::string machine;  ///< hardware fingerprint
  int num_threads = 1;
  auto operator<=>(const KeyAbout&) const = default;
};

/// The key of a `TuningRecord`.
using TuningKey =
    KeyAbout<std::variant<PartitionKey, ProbeKey, SwitchKey, RateKey, TransitionKey, ConversionKey, CoverKey>>;
/// The key of a `ResultRecord`.
using ResultKey = KeyAbout<std::variant<ScheduleListKey, ComparisonKey, PlayOffKey, MachineKey>>;

/// One line of JSON; equal keys have equal texts.
std::string ToText(const TuningKey& key);
std::string ToText(const ResultKey& key);
/// Reads what ToText wrote. Throws kInput for any other text.
std::variant<TuningKey, ResultKey> KeyFromText(const std::string& text);

std::string KindOf(const TuningKey& key);
std::string KindOf(const ResultKey& key);

/// The toolchain that a key is about, of rivals the first; both empty where there is none.
struct ToolchainOfKey {
  std::string name;
  std::string version;
};
ToolchainOfKey ToolchainOf(const TuningKey& key);
ToolchainOfKey ToolchainOf(const ResultKey& key);

}  // namespace collage
