// toolchain_configuration.cc: options as text, and toolchains under another name.
#include "target/toolchain_configuration.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "collage/support/error.h"
#include "support/edit_distance.h"
#include "target/forwarding_toolchain.h"
#include "target/option_text.h"

namespace collage {
namespace {

constexpr std::string_view kOptionsBegin = " -";
constexpr const char* kPrecisionOption = "inference_precision";

/// A registered toolchain under options: all but the name is the configured one's.
class ConfiguredToolchain : public ForwardingToolchain {
 public:
  /// `configured` may be null: nothing depends on the options.
  ConfiguredToolchain(const ToolchainConfiguration& configuration, std::unique_ptr<const Toolchain> configured)
      : ForwardingToolchain(configured ? *configured : configuration.registered()),
        name_(configuration.ToString()),
        precision_(configuration.options().StringOr(kPrecisionOption, "")),
        registered_(configuration.registered()),
        configured_(std::move(configured)) {}

  const Toolchain& registered() const { return registered_; }
  /// Returns its `inference_precision`; empty if it has no such option.
  const std::string& precision() const { return precision_; }

  std::string name() const override { return name_; }

 private:
  std::string name_;
  std::string precision_;
  const Toolchain& registered_;
  std::unique_ptr<const Toolchain> configured_;
};

const Toolchain& RegisteredFor(const Target& target, const ToolchainRegistry& registry) {
  if (target.compiler().empty()) {
    const TargetKind* kind = FindTargetKind(target.kind(), registry);
    if (const Toolchain* own = kind == nullptr ? nullptr : OwnToolchainOf(*kind, registry)) return *own;
    if (const Toolchain* native = registry.Native()) return *native;
    throw Error(ErrorCategory::kUnavailable, fmt::format("no native toolchain for target '{}'", target.ToString()));
  }
  if (const Toolchain* toolchain = registry.Find(target.compiler())) return *toolchain;
  throw Error(ErrorCategory::kInput,
              fmt::format("there is no toolchain '{}' for target '{}'", target.compiler(), target.ToString()), "",
              registry.HintFor(target.compiler()));
}

}  // namespace

ToolchainConfiguration::ToolchainConfiguration(const Toolchain& registered) : registered_(&registered) {
  for (const AttrField& option : registered.Options()) options_.Set(option.name, option.default_value);
}

ToolchainConfiguration ToolchainConfiguration::Of(const Target& target, const ToolchainRegistry& registry) {
  const Toolchain& registered = RegisteredFor(target, registry);
  // Options that were read before the toolchain was registered have guessed types: they are read again.
  const Target typed = Target::Parse(target.ToString(), registry);
  return {registered, typed.OptionsFor(registered)};
}

ToolchainConfiguration ToolchainConfiguration::Parse(std::string_view text, const ToolchainRegistry& registry) {
  const std::string name = RegisteredName(text);
  const std::string target = fmt::format("llvm{}{}", OptionText({{"compiler", name}}), text.substr(name.size()));
  return Of(Target::Parse(target, registry), registry);
}

ToolchainConfiguration ToolchainConfiguration::With(const std::string& option, AttrValue value) const {
  COLLAGE_CHECK(options_.Has(option)) << "'" << registered_->name() << "' has no option '" << option << "'";
  ToolchainConfiguration changed = *this;
  changed.options_.Set(option, std::move(value));
  return changed;
}

Attrs ToolchainConfiguration::ChangedOptions() const {
  Attrs changed;
  for (const AttrField& option : registered_->Options()) {
    const AttrValue& value = options_.Get(option.name);
    if (!(value == option.default_value)) changed.Set(option.name, value);
  }
  return changed;
}

std::string ToolchainConfiguration::ToString() const { return registered_->name() + OptionText(ChangedOptions()); }

std::unique_ptr<const Toolchain> ToolchainConfiguration::Make() const {
  if (IsDefault()) return nullptr;
  return std::make_unique<ConfiguredToolchain>(*this, registered_->WithOptions(options_));
}

const Toolchain* ConfiguredToolchains::Find(std::string_view text) {
  if (const Toolchain* registered = registry_.Find(text)) return registered;
  if (const auto it = made_.find(text); it != made_.end()) return it->second.get();
  if (registry_.Find(RegisteredName(text)) == nullptr) return nullptr;
  return &Get(ToolchainConfiguration::Parse(text, registry_));
}

const Toolchain& ConfiguredToolchains::Get(const ToolchainConfiguration& configuration) {
  if (configuration.IsDefault()) return configuration.registered();
  std::unique_ptr<const Toolchain>& made = made_[configuration.ToString()];
  if (made == nullptr) made = configuration.Make();
  return *made;
}

std::string RegisteredName(std::string_view configuration) {
  return std::string(configuration.substr(0, configuration.find(kOptionsBegin)));
}

bool IsConfigured(std::string_view configuration) {
  return configuration.find(kOptionsBegin) != std::string_view::npos;
}

std::optional<DataType> InferencePrecisionOf(const Toolchain& toolchain) {
  const auto* configured = dynamic_cast<const ConfiguredToolchain*>(&toolchain);
  if (configured == nullptr) return std::nullopt;
  const std::string precision = configured->precision();
  // TensorFloat-32 rounds as float16 does, and has float32's range. No type here is both: bfloat16 is what allows more.
  // Integers of 8 bits have as many bits as its numbers, of the largest in a block.
  if (precision == "bf16" || precision == "tf32" || precision == "int8") return kBFloat16;
  if (precision == "f16") return kFloat16;
  return std::nullopt;
}

std::string TargetText(const Toolchain& toolchain) {
  const std::string text = toolchain.name();
  const auto* configured = dynamic_cast<const ConfiguredToolchain*>(&toolchain);
  if (TargetKindOf(configured == nullptr ? toolchain : configured->registered()) != nullptr) return text;
  const std::string name = RegisteredName(text);
  const std::vector<const TargetKind*> kinds = TargetKinds();  // llvm is the first for the processor
  const auto kind = std::ranges::find(kinds, toolchain.device_type(), &TargetKind::device_type);
  const std::string kind_name = kind == kinds.end() ? "llvm" : (*kind)->name();
  const bool is_own = toolchain.is_native() || name == kind_name;
  return kind_name + (is_own ? "" : OptionText({{"compiler", name}})) + text.substr(name.size());
}

}  // namespace collage
