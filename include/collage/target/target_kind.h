// target_kind.h: kinds of targets, as RFC 10 registers them: a name, a type of device, options, and attributes, the
// hooks among them. Some kinds are built in and name devices; a kind with hooks comes in a module
// (docs/register-a-target-kind.md) and is a toolchain, too: `Target("cmsisnn -fast=1")` names it, and its hooks
// compile.
#pragma once

#include <any>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collage/target/toolchain.h"
#include "collage/target/toolchain_module.h"

namespace collage {

inline constexpr int kDLCPU = 1;  ///< DLDeviceType of processors

// Types of attributes; a function is also told the values of the kind's options, all of them.

/// Attribute "RelayToTIR": `Toolchain::RelayToTIR`.
using FTVMRelayToTIR = std::function<Result<LoweredPartition>(const PartitionRequest&, const Attrs& options)>;
/// Attribute "TIRToRuntime": `Toolchain::TIRToRuntime`; beside RelayToTIR only. Without it, native code.
using FTVMTIRToRuntime = std::function<Result<CompiledPartition>(const LoweredPartition&, const Attrs& options)>;
/// Attribute "RelayToRuntime": `Toolchain::RelayToRuntime`; in place of RelayToTIR.
using FTVMRelayToRuntime = std::function<Result<CompiledPartition>(const PartitionRequest&, const Attrs& options)>;
/// Attribute "UpdateConstants": `Toolchain::UpdateConstants`.
using FTVMConstantUpdater = std::function<Result<std::vector<Tensor>>(
    const PartitionRequest&, const CompiledPartition& compiled, const Attrs& options)>;
/// Attribute "PatternTable": `Toolchain::PatternTable`.
using FPatternTable = std::function<std::vector<PatternTableEntry>(const Attrs& options)>;
/// Attribute "SupportsCall": `Toolchain::SupportsCall`.
using FSupportsCall = std::function<Result<void>(const CallNode& call, const Attrs& options)>;
/// Attribute "SupportsDynamicShapes": `Toolchain::SupportsDynamicShapes`. Without it sizes must be known.
using FSupportsDynamicShapes = std::function<Result<void>(const CallNode& call, const Attrs& options)>;
/// Attribute "Layouts": `Toolchain::Layouts`. Without it all values at the boundary are plain.
using FLayouts =
    std::function<std::vector<BoundaryLayouts>(const Function&, const std::vector<bool>& eligible_inputs,
                                               const std::vector<bool>& eligible_outputs, const Attrs& options)>;
/// Attribute "Schedules": `Toolchain::Schedules`; the hook that compiles reads `PartitionRequest::schedule`.
using FSchedules = std::function<Result<std::vector<std::string>>(const PartitionRequest&, const Attrs& options)>;
/// Attribute "Proposals": `Toolchain::Proposals`.
using FProposals = std::function<std::vector<std::vector<Expr>>(const Function&, const Attrs& options)>;
/// Attribute "Probe": `Toolchain::Probe`. Without it the kind can be used wherever its module is.
using FProbe = std::function<Availability()>;

/// A kind of target. A value.
class TargetKind {
 public:
  /// `device_type` is a DLDeviceType. Throws kInput for a name that no target's text could begin with.
  TargetKind(std::string name, int device_type, std::string doc);

  const std::string& name() const { return name_; }
  int device_type() const { return device_type_; }
  const std::string& doc() const { return doc_; }
  /// Options beside those of every target.
  const std::vector<AttrField>& options() const { return options_; }

  /// Declares an option of kind kBool, kInt, kDouble or kString. Throws kInput if there is one of that name.
  TargetKind& add_attr_option(AttrField option);
  /// Sets an attribute: one of those above, or a constraint: "FusionStyle" (FusionStyle), "MaxDepth" (int),
  /// "WantsMaximal" (bool), "Preamble" (std::vector<std::string>), "Incompatible" (std::vector<Incompatibility>),
  /// "Priority" (int), "License" (std::string), "IsDefault" (bool), each as the function of `Toolchain` with that name.
  /// Throws kInput if there is no such attribute, for another type, and if it is set already.
  template <typename T>
  TargetKind& set_attr(const std::string& attribute, T value) {
    SetAttr(attribute, std::any(std::move(value)));
    return *this;
  }
  /// Null where it is not set.
  template <typename T>
  const T* GetAttr(const std::string& attribute) const {
    const auto it = attributes_.find(attribute);
    return it == attributes_.end() ? nullptr : std::any_cast<T>(&it->second);
  }
  /// Whether an attribute is set (RFC 10).
  bool HasHook(const std::string& attribute) const { return attributes_.contains(attribute); }

 private:
  void SetAttr(const std::string& attribute, std::any value);

  std::string name_;
  int device_type_;
  std::string doc_;
  std::vector<AttrField> options_;
  std::map<std::string, std::any> attributes_;
};

/// Returns the toolchain that `kind` is, which goes by the kind's name. Throws kInput for the name of a built-in kind,
/// for hooks that do not belong together, and for a kind that takes nothing.
std::unique_ptr<Toolchain> MakeToolchain(TargetKind kind);
/// The kind that a toolchain was made of; null for another toolchain.
const TargetKind* TargetKindOf(const Toolchain& toolchain);

/// The kinds there are: those built in, then those of `registry`.
std::vector<const TargetKind*> TargetKinds(const ToolchainRegistry& registry = ToolchainRegistry::Global());
/// Null when there is none of that name.
const TargetKind* FindTargetKind(std::string_view name, const ToolchainRegistry& registry);
/// The toolchain of targets of `kind` that name no compiler: the native one for processors, for other devices the one
/// that goes by the kind's name. Null when `registry` has none.
const Toolchain* OwnToolchainOf(const TargetKind& kind, const ToolchainRegistry& registry);

}  // namespace collage

/// At the end of a module's source, outside of any namespace: `make_kind` is a function that returns a
/// collage::TargetKind. The module is `libcollage_toolchain_NAME.so`, NAME being the kind's.
#define COLLAGE_TARGET_KIND_MODULE(make_kind)                                                                          \
  static std::unique_ptr<collage::Toolchain> CollageMakeTargetKind() { return collage::MakeToolchain((make_kind)()); } \
  COLLAGE_TOOLCHAIN_MODULE(CollageMakeTargetKind)
