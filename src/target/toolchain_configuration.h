// toolchain_configuration.h: registered toolchains under options. As text, "NAME -option=value …", a configuration
// stands wherever a toolchain's name does: in the attribute Compiler, in keys of costs, in requests to workers, in
// reports and executables. It means the same on every machine that has the same toolchains.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "collage/target/target.h"
#include "collage/target/toolchain.h"

namespace collage {

/// Which registered toolchain, and what it is told. A value; the toolchain must outlive it.
class ToolchainConfiguration {
 public:
  /// `registered` as it is: every option has its default.
  explicit ToolchainConfiguration(const Toolchain& registered);

  /// Returns the configuration that `target` asks for. Throws kInput when `registry` has no such toolchain or the
  /// toolchain no such option, kUnavailable when there is no native one and the target names none.
  static ToolchainConfiguration Of(const Target& target, const ToolchainRegistry& registry);
  /// Reads what `ToString` writes; options may be left out, or have their defaults. Throws kInput.
  static ToolchainConfiguration Parse(std::string_view text, const ToolchainRegistry& registry);

  const Toolchain& registered() const { return *registered_; }
  /// Complete: a value for each option that the toolchain declares.
  const Attrs& options() const { return options_; }
  /// Returns a copy with another value for a declared option.
  ToolchainConfiguration With(const std::string& option, AttrValue value) const;
  /// Whether every option has its default.
  bool IsDefault() const { return ChangedOptions().empty(); }

  /// The toolchain's name, and the options that do not have their defaults: "openvino -inference_precision=bf16".
  std::string ToString() const;
  /// The configured toolchain, which goes by the name `ToString()`; null where it is the registered one. Throws kInput
  /// for a value that the toolchain refuses.
  std::unique_ptr<const Toolchain> Make() const;

  bool operator==(const ToolchainConfiguration&) const = default;

 private:
  ToolchainConfiguration(const Toolchain& registered, Attrs options)
      : registered_(&registered), options_(std::move(options)) {}
  Attrs ChangedOptions() const;

  const Toolchain* registered_;
  Attrs options_;
};

/// Toolchains by configuration text. Keeps those that it made; `registry` must outlive it. Not thread-safe.
class ConfiguredToolchains {
 public:
  explicit ConfiguredToolchains(const ToolchainRegistry& registry) : registry_(registry) {}

  /// Null when there is no toolchain of that name. Throws kInput for options that it has not.
  const Toolchain* Find(std::string_view text);
  const Toolchain& Get(const ToolchainConfiguration& configuration);

 private:
  const ToolchainRegistry& registry_;
  std::map<std::string, std::unique_ptr<const Toolchain>, std::less<>> made_;
};

/// "openvino" of "openvino -inference_precision=bf16": the name that a configuration's toolchain was registered with.
std::string RegisteredName(std::string_view configuration);
/// Whether that is the text of a toolchain under options that are not its defaults.
bool IsConfigured(std::string_view configuration);
/// The type below float32 that a configured toolchain is told to compute float32 values in, by the option
/// `inference_precision`, or whose errors are like those of that; nothing for others.
std::optional<DataType> InferencePrecisionOf(const Toolchain& toolchain);
/// The target by which `toolchain`, registered or configured, takes part: "llvm" for the native one as it is,
/// "llvm -compiler=openvino -inference_precision=bf16"; of the kind for its device where that is not the processor.
std::string TargetText(const Toolchain& toolchain);

}  // namespace collage
