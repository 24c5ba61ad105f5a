// toolchain_selection.h: the toolchains of a compilation and their options, from names, targets, and the options that
// hold for all toolchains.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collage/compile.h"
#include "partition/partition_spec.h"
#include "target/toolchain_configuration.h"

namespace collage {

/// The toolchains of one compilation. Toolchains under options live as long as this.
class ToolchainSelection {
 public:
  /// `probed`: the toolchains of this build, probed here; if they run elsewhere, as far as they compile (ProbeFor).
  /// Throws kInput for unknown or contradictory names, targets and options; kUnavailable for toolchains that are named
  /// and not available.
  ToolchainSelection(const CompileOptions& options, const std::vector<ToolchainReport>& probed);

  /// In the registry's order; those of one toolchain in the order of the targets, variants behind them, those that
  /// only keep values in another type behind all.
  const std::vector<const Toolchain*>& toolchains() const { return toolchains_; }
  /// The native one among them, the first if there are several.
  const Toolchain* native() const;
  /// The specs of the toolchains: one for each rule that a target gives, whose candidates compete; for targets without
  /// a rule, and for toolchains that no target names, one by that of `CompileOptions::partition_rules`, else by the
  /// toolchain's own. They refer to this. Throws kInput for a rule whose toolchain takes no part.
  std::vector<PartitionSpec> Specs() const;
  /// The targets by which `toolchain`, one of these, takes part in the same way: one for each of its rules.
  std::vector<std::string> TargetsOf(const Toolchain& toolchain) const;

  /// Names of the toolchains that take part in a lower precision because of CompileOptions::precision.
  const std::vector<std::string>& variants() const { return variants_; }
  /// Whether a toolchain, one of these, is a variant that is tried only where the errors of the others are too large:
  /// it keeps values in a type of smaller errors, and computes no faster.
  bool IsDeferred(const Toolchain& toolchain) const { return deferred_.contains(&toolchain); }
  /// Why there are no variants although they were asked for; else empty.
  const std::string& no_variants() const { return no_variants_; }
  /// Notices for the user.
  const std::vector<std::string>& notices() const { return notices_; }

 private:
  /// A toolchain by one rule.
  struct Participant {
    ToolchainConfiguration configuration;
    std::vector<std::string> targets;  ///< targets by which it takes part, if any
    std::string partition_rule;        ///< JSON; empty: the toolchain's own
  };

  void CheckNames(const CompileOptions& options) const;
  void CheckAlone() const;
  void ReadTargets();
  void AddTarget(const std::string& text);
  void Gather(const std::vector<ToolchainReport>& probed);
  bool JoinsUnasked(const ToolchainReport& probed) const;
  void SetAccuracy();
  void Configure();
  Availability Probe(const Toolchain& toolchain) const;
  void AddVariants(const Participant& of, std::span<const std::string> precisions, bool they_only_keep);
  /// Whether its toolchain took no part before.
  bool Add(const Participant& one);
  PartitionSpec SpecOfParticipant(const Toolchain& toolchain, const Participant& one) const;

  CompileOptions options_;
  std::vector<Participant> given_;     ///< by targets
  std::vector<Participant> gathered_;  ///< all but variants
  ConfiguredToolchains configured_;
  std::vector<const Toolchain*> toolchains_;
  std::map<const Toolchain*, std::vector<Participant>> participants_;  ///< with different rules
  std::vector<std::string> variants_;
  std::set<const Toolchain*> deferred_;
  std::string no_variants_;
  std::vector<std::string> notices_;
};

/// Whether `toolchain` goes by `name`: the text of its configuration, or the name that it was registered with.
bool GoesBy(const Toolchain& toolchain, std::string_view name);

/// Why `toolchain`, which is available, is not in `selection`, which follows `options`; empty if it is.
std::string WhyLeftOut(const Toolchain& toolchain, const ToolchainSelection& selection, const CompileOptions& options);

/// Types below float32 that a processor with these features (MachineInfo::features) computes natively, as the option
/// `inference_precision` calls them: elsewhere they are emulated, and win nothing.
std::vector<std::string> LowerPrecisions(std::span<const std::string> features);

/// Precisions for products with packed weights alone, whose data are rounded, by the instructions that such a processor
/// has.
std::vector<std::string> PackedPrecisions(std::span<const std::string> features);

/// Returns the precisions that the processor only converts by an instruction of its own: for toolchains that keep
/// values so (Toolchain::only_keeps_precision).
std::vector<std::string> ConvertedPrecisions(std::span<const std::string> features);

/// Returns `configuration` in each of `precisions` that its toolchain takes; none if the toolchain declares no
/// `inference_precision`, or the configuration already sets it.
std::vector<ToolchainConfiguration> VariantsOf(const ToolchainConfiguration& configuration,
                                               std::span<const std::string> precisions);

}  // namespace collage
