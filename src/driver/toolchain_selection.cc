// toolchain_selection.cc: names, targets, then what is asked of all.
#include "driver/toolchain_selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "collage/runtime/device.h"
#include "collage/support/error.h"
#include "collage/target/compiles_elsewhere.h"
#include "support/machine.h"
#include "target/accuracy.h"
#include "target/option_text.h"

namespace collage {
namespace {

// Options that toolchains declare by these names mean the same wherever they are (docs/add-a-toolchain.md).
constexpr const char* kPrecision = "inference_precision";
/// Types below float32 that devices compute natively: their toolchains refuse those that they do not know.
const std::vector<std::string> kDevicePrecisions{"tf32", "bf16", "f16"};

bool Named(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

[[noreturn]] void FailUnavailable(const std::string& name, const std::string& reason, const std::string& hint) {
  throw Error(ErrorCategory::kUnavailable, fmt::format("toolchain '{}' is not available: {}", name, reason), "", hint);
}

/// Returns the configuration that `target`, written as `text`, asks for. Throws unless its toolchain computes on the
/// target's device.
ToolchainConfiguration ConfigurationFor(const Target& target, const std::string& text) {
  const std::vector<const Toolchain*> all = ToolchainRegistry::Global().All();
  const auto computes = [&](const Toolchain* one) { return one->device_type() == target.device_type(); };
  const auto refuse = [&](const char* why, const std::string& hint) {
    const TargetKind* kind = FindTargetKind(target.kind(), ToolchainRegistry::Global());
    throw Error(ErrorCategory::kUnavailable, fmt::format("target '{}' is for {}, {}", text, kind->doc(), why), "",
                hint);
  };
  const auto first = std::ranges::find_if(all, computes);
  if (first == all.end()) refuse("which this build cannot use", "targets of kind llvm run on the processor");
  ToolchainConfiguration configuration = ToolchainConfiguration::Of(target, ToolchainRegistry::Global());
  const Toolchain& toolchain = configuration.registered();
  if (computes(&toolchain)) return configuration;
  if (toolchain.is_native()) {
    refuse("which no native kernels are for",
           fmt::format("name a toolchain that computes there: {}", TargetText(**first)));
  }
  throw Error(ErrorCategory::kInput,
              fmt::format("target '{}' is for {}, and '{}' computes on {}", text, DeviceName(target.device_type()),
                          toolchain.name(), DeviceName(toolchain.device_type())));
}

}  // namespace

ToolchainSelection::ToolchainSelection(const CompileOptions& options, const std::vector<ToolchainReport>& probed)
    : options_(options), configured_(ToolchainRegistry::Global()) {
  if (options.accuracy == kExact && options.precision == "any") {
    throw Error(ErrorCategory::kInput, "precision 'any' rounds more than accuracy 'exact' allows");
  }
  CheckNames(options);
  ReadTargets();
  CheckAlone();
  Gather(probed);
  SetAccuracy();
  Configure();
  if (toolchains_.empty())
    throw Error(ErrorCategory::kUnavailable, "no toolchain is available", "", "see collage targets");
}

void ToolchainSelection::CheckNames(const CompileOptions& options) const {
  const ToolchainRegistry& registry = ToolchainRegistry::Global();
  const std::vector<std::string> alone(options.partition_for.empty() ? 0 : 1, RegisteredName(options.partition_for));
  for (const std::vector<std::string>* names : {&options.toolchains, &options.require, &alone}) {
    for (const std::string& name : *names) registry.Get(name);
  }
}

/// Refuses what names other toolchains beside the one that is to be alone.
void ToolchainSelection::CheckAlone() const {
  if (options_.partition_for.empty()) return;
  const std::string alone = RegisteredName(options_.partition_for);
  const auto fail = [&](const std::string& message, const std::string& hint) {
    throw Error(ErrorCategory::kInput, message, "--partition-for " + options_.partition_for, hint);
  };
  if (!options_.toolchains.empty() && !Named(options_.toolchains, alone)) {
    fail(fmt::format("'{}' is not among the toolchains that are to take part: {}", alone,
                     fmt::join(options_.toolchains, ", ")),
         "leave --toolchains out");
  }
  const auto is_other = [&](const std::string& name) {
    return name != alone && !ToolchainRegistry::Global().Find(name)->is_native();
  };
  for (const std::string& name : options_.require) {
    if (is_other(name)) fail(fmt::format("'{}' is required, and takes no part beside '{}'", name, alone), "");
  }
  for (const Participant& one : given_) {
    const std::string name = one.configuration.registered().name();
    if (is_other(name)) fail(fmt::format("a target names '{}', which takes no part beside '{}'", name, alone), "");
  }
}

void ToolchainSelection::ReadTargets() {
  for (const std::string& text : options_.targets) AddTarget(text);
  const std::string& alone = options_.partition_for;
  if (!IsConfigured(alone)) return;
  const std::string name = RegisteredName(alone);
  const Toolchain* registered = ToolchainRegistry::Global().Find(name);
  const std::string target =
      registered == nullptr ? "llvm" + OptionText({{"compiler", name}}) : TargetText(*registered);
  AddTarget(target + alone.substr(name.size()));
}

void ToolchainSelection::AddTarget(const std::string& text) {
  const Target target = Target::Parse(text);
  const ToolchainConfiguration configuration = ConfigurationFor(target, text);
  for (const std::string& option : target.IdleOptions(configuration.registered())) {
    notices_.push_back(fmt::format("target '{}': option '{}' changes nothing of what '{}' compiles", text, option,
                                   configuration.registered().name()));
  }
  for (Participant& other : given_) {
    if (!(other.configuration == configuration) || other.partition_rule != target.partition_rule()) continue;
    other.targets.push_back(text);
    return;
  }
  given_.push_back({configuration, {text}, target.partition_rule()});
}

/// Whether it takes part though no target names it.
bool ToolchainSelection::JoinsUnasked(const ToolchainReport& probed) const {
  const Toolchain& toolchain = *ToolchainRegistry::Global().Find(probed.name);
  if (toolchain.is_native() || Named(options_.toolchains, probed.name)) return true;
  if (!options_.partition_for.empty()) return RegisteredName(options_.partition_for) == probed.name;
  const bool by_default = options_.toolchains.empty() && options_.targets.empty();
  return by_default && (toolchain.is_default() || Named(options_.require, probed.name));
}

void ToolchainSelection::Gather(const std::vector<ToolchainReport>& probed) {
  const std::string& alone = options_.partition_for;
  for (const ToolchainReport& report : probed) {
    const Toolchain& registered = *ToolchainRegistry::Global().Find(report.name);
    const bool is_alone = RegisteredName(alone) == report.name;
    std::vector<Participant> own;
    std::copy_if(given_.begin(), given_.end(), std::back_inserter(own),
                 [&](const Participant& one) { return &one.configuration.registered() == &registered; });
    const bool is_named = Named(options_.require, report.name) || Named(options_.toolchains, report.name) || is_alone;
    // Under its options, a toolchain may compile for another machine that does not without them: Add asks it.
    const bool is_asked_later = options_.runs_elsewhere() && !own.empty();
    const bool is_missing = !report.available && !is_asked_later;
    if (is_missing && (is_named || !own.empty())) FailUnavailable(report.name, report.reason, report.hint);
    if (is_missing || (!alone.empty() && !is_alone && !registered.is_native())) continue;
    // Alone, native kernels under options take no more than another toolchain does: the rest is plain ones'.
    const bool leaves_rest = is_alone && IsConfigured(alone) && registered.is_native();
    if ((own.empty() && JoinsUnasked(report)) || leaves_rest) {
      own.insert(own.begin(), {ToolchainConfiguration(registered), {}, ""});
    }
    gathered_.insert(gathered_.end(), own.begin(), own.end());
  }
}

void ToolchainSelection::SetAccuracy() {
  if (options_.accuracy.empty()) return;
  bool is_declared = false;
  for (Participant& one : gathered_) {
    if (!one.configuration.options().Has(kAccuracyOption)) continue;
    is_declared = true;
    for (const std::string& target : one.targets) {
      const std::string said = Target::Parse(target).options().StringOr(kAccuracyOption, "");
      if (said.empty() || said == options_.accuracy) continue;
      throw Error(
          ErrorCategory::kInput,
          fmt::format("target '{}' has another accuracy than '{}', which all are to have", target, options_.accuracy));
    }
    one.configuration = one.configuration.With(kAccuracyOption, options_.accuracy);
  }
  if (!is_declared && options_.accuracy == kExact) {
    notices_.push_back("no toolchain that takes part has an option 'accuracy': none is told that it is to be exact");
  }
}

void ToolchainSelection::Configure() {
  const bool wants_variants = options_.precision == "any";
  const std::vector<std::string>& features = ThisMachine().features;
  const std::vector<std::string> precisions = wants_variants ? LowerPrecisions(features) : std::vector<std::string>();
  for (const Participant& one : gathered_) {
    Add(one);
    const bool is_on_device = one.configuration.registered().device_type() != kDLCPU;
    AddVariants(one, wants_variants && is_on_device ? kDevicePrecisions : precisions, /*they_only_keep=*/false);
  }
  const bool must_wait = !variants_.empty();
  if (wants_variants) {
    for (const Participant& one : gathered_) AddVariants(one, PackedPrecisions(features), /*they_only_keep=*/false);
  }
  // If they have to wait, only an error that is too large can bring them in.
  if (wants_variants && (!must_wait || options_.max_error)) {
    const size_t before = toolchains_.size();
    for (const Participant& one : gathered_) AddVariants(one, ConvertedPrecisions(features), /*they_only_keep=*/true);
    if (must_wait) deferred_.insert(toolchains_.begin() + static_cast<std::ptrdiff_t>(before), toolchains_.end());
  }
  if (!wants_variants || !variants_.empty()) return;
  std::string types;
  for (const std::string& precision : precisions) types += (types.empty() ? "" : " or ") + precision;
  no_variants_ = precisions.empty() ? "this processor computes no type below float32 natively"
                                    : "no toolchain that takes part can be told to compute in " + types;
}

Availability ToolchainSelection::Probe(const Toolchain& toolchain) const {
  return options_.runs_elsewhere() ? ProbeCompilerOf(toolchain) : toolchain.Probe();
}

void ToolchainSelection::AddVariants(const Participant& of, std::span<const std::string> precisions,
                                     bool they_only_keep) {
  for (const ToolchainConfiguration& variant : VariantsOf(of.configuration, precisions)) {
    const bool is_given = std::any_of(gathered_.begin(), gathered_.end(),
                                      [&](const Participant& other) { return other.configuration == variant; });
    const Toolchain& toolchain = configured_.Get(variant);
    if (is_given || !Probe(toolchain).available) continue;
    if (they_only_keep && !toolchain.only_keeps_precision()) continue;
    if (Add({variant, {}, of.partition_rule})) variants_.push_back(variant.ToString());
  }
}

bool ToolchainSelection::Add(const Participant& one) {
  const Toolchain* toolchain = nullptr;
  try {
    toolchain = &configured_.Get(one.configuration);
  } catch (const Error& error) {
    if (one.targets.empty()) throw;
    throw Error(error.category(), error.message(), fmt::format("target '{}'", one.targets[0]), error.hint());
  }
  std::vector<Participant>& own = participants_[toolchain];
  if (std::ranges::find(own, one.partition_rule, &Participant::partition_rule) != own.end()) return false;
  own.push_back(one);
  if (own.size() > 1) return false;
  if (!one.configuration.IsDefault() || options_.runs_elsewhere()) {
    const Availability here = Probe(*toolchain);
    if (!here.available) FailUnavailable(toolchain->name(), here.reason, here.hint);
  }
  toolchains_.push_back(toolchain);
  return true;
}

const Toolchain* ToolchainSelection::native() const {
  const auto it =
      std::find_if(toolchains_.begin(), toolchains_.end(), [](const Toolchain* one) { return one->is_native(); });
  return it == toolchains_.end() ? nullptr : *it;
}

std::vector<PartitionSpec> ToolchainSelection::Specs() const {
  for (const auto& [name, _] : options_.partition_rules) {
    if (std::ranges::any_of(toolchains_, [&](const Toolchain* one) { return GoesBy(*one, name); })) continue;
    throw Error(ErrorCategory::kInput, fmt::format("a rule is given for '{}', which does not take part", name));
  }
  std::vector<PartitionSpec> specs;
  for (const Toolchain* toolchain : toolchains_) {
    for (const Participant& one : participants_.at(toolchain)) specs.push_back(SpecOfParticipant(*toolchain, one));
  }
  return specs;
}

PartitionSpec ToolchainSelection::SpecOfParticipant(const Toolchain& toolchain, const Participant& one) const {
  std::pair<std::string, std::string> rule{toolchain.name(), one.partition_rule};  // of whom, and its text
  std::vector<Target> targets;
  for (const std::string& target : one.targets) targets.push_back(Target::Parse(target));
  if (targets.empty()) targets.push_back(Target::Parse(TargetText(toolchain)));
  for (const auto& [name, text] : options_.partition_rules) {
    if (rule.second.empty() && GoesBy(toolchain, name)) rule = {name, text};
  }
  return SpecOf(toolchain, std::move(targets), rule.second, fmt::format("partition rule of '{}'", rule.first));
}

std::vector<std::string> ToolchainSelection::TargetsOf(const Toolchain& toolchain) const {
  std::vector<std::string> texts;
  for (const Participant& one : participants_.at(&toolchain)) {
    const std::string& rule = one.partition_rule;
    texts.push_back(TargetText(toolchain) + (rule.empty() ? "" : OptionText({{"partition_rule", rule}})));
  }
  return texts;
}

bool GoesBy(const Toolchain& toolchain, std::string_view name) {
  const std::string own = toolchain.name(), registered = RegisteredName(own);
  if (own == name || registered == name) return true;
  // A configuration may be written in several ways: options in another order, `1` for `true`, a default.
  const ToolchainRegistry& registry = ToolchainRegistry::Global();
  if (!IsConfigured(name) || RegisteredName(name) != registered || registry.Find(registered) == nullptr) return false;
  return ToolchainConfiguration::Parse(name, registry).ToString() == own;
}

std::string WhyLeftOut(const Toolchain& toolchain, const ToolchainSelection& selection, const CompileOptions& options) {
  const auto is_it = [&](const Toolchain* one) { return RegisteredName(one->name()) == toolchain.name(); };
  if (std::ranges::any_of(selection.toolchains(), is_it)) return "";
  if (!options.partition_for.empty()) return fmt::format("'{}' is to be alone", options.partition_for);
  if (!options.toolchains.empty()) return fmt::format("only {} may take part", fmt::join(options.toolchains, ", "));
  if (!options.targets.empty()) return "no target names it";
  return "it waits until --toolchains names it";
}

std::vector<std::string> LowerPrecisions(std::span<const std::string> features) {
  const auto has = [&](std::string_view feature) {
    return std::find(features.begin(), features.end(), feature) != features.end();
  };
  std::vector<std::string> precisions;
  if (has("avx512_bf16") || has("amx_bf16")) precisions.emplace_back("bf16");
  if (has("avx512_fp16")) precisions.emplace_back("f16");
  return precisions;
}

std::vector<std::string> PackedPrecisions(std::span<const std::string> features) {
  const bool has_byte_products = HasVnni(features) || std::ranges::find(features, "avx2") != features.end();
  return has_byte_products ? std::vector<std::string>{"int8"} : std::vector<std::string>();
}

std::vector<std::string> ConvertedPrecisions(std::span<const std::string> features) {
  const bool has_float16 = std::find(features.begin(), features.end(), "f16c") != features.end();
  return has_float16 ? std::vector<std::string>{"f16"} : std::vector<std::string>();
}

std::vector<ToolchainConfiguration> VariantsOf(const ToolchainConfiguration& configuration,
                                               std::span<const std::string> precisions) {
  const AttrValue* told = configuration.options().Find(kPrecision);
  const ToolchainConfiguration untold(configuration.registered());
  if (told == nullptr || told->as_string() == nullptr || !(*told == untold.options().Get(kPrecision))) return {};
  std::vector<ToolchainConfiguration> variants;
  for (const std::string& precision : precisions) {
    if (precision == *told->as_string()) continue;
    ToolchainConfiguration variant = configuration.With(kPrecision, precision);
    try {
      variant.Make();
    } catch (const Error&) {
      continue;  // a type that it does not compute in
    }
    variants.push_back(std::move(variant));
  }
  return variants;
}

}  // namespace collage
