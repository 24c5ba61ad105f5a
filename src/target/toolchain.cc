// toolchain.cc: defaults of the toolchain interface, the registry, and opening of compiler modules.
#include "collage/target/toolchain.h"

#include <fmt/format.h>

#include <algorithm>

#include "collage/support/error.h"
#include "collage/target/bundled_files.h"
#include "collage/target/composite_calls.h"
#include "collage/target/fusion_patterns.h"
#include "support/dynamic_library.h"
#include "support/edit_distance.h"
#include "support/environment.h"
#include "target/left_out.h"

namespace collage {

const char* ToString(Hook hook) {
  switch (hook) {
    case Hook::kRelayToTIR: return "RelayToTIR";
    case Hook::kTIRToRuntime: return "TIRToRuntime";
    case Hook::kRelayToRuntime: return "RelayToRuntime";
    default: return "UpdateConstants";
  }
}

std::vector<std::string> FusionPatternsOf(const Toolchain& toolchain) {
  const auto* source = dynamic_cast<const HasFusionPatterns*>(&toolchain);
  return source == nullptr ? std::vector<std::string>() : source->FusionPatterns();
}

std::vector<const Toolchain*> CalledLibrariesOf(const Toolchain& toolchain) {
  const auto* source = dynamic_cast<const CallsLibraries*>(&toolchain);
  return source == nullptr ? std::vector<const Toolchain*>() : source->CalledLibraries();
}

std::vector<CompositeCall> CompositeCallsOf(const Toolchain& toolchain) {
  const auto* source = dynamic_cast<const HasCompositeCalls*>(&toolchain);
  return source == nullptr ? std::vector<CompositeCall>() : source->CompositeCalls();
}

std::vector<BundledFile> BundledFilesOf(const Toolchain& toolchain) {
  const auto* source = dynamic_cast<const HasBundledFiles*>(&toolchain);
  return source == nullptr ? std::vector<BundledFile>() : source->BundledFiles();
}

bool Toolchain::Has(Hook hook) const {
  const std::vector<Hook> hooks = Hooks();
  return std::find(hooks.begin(), hooks.end(), hook) != hooks.end();
}

Result<CompiledPartition> Toolchain::RelayToRuntime(const PartitionRequest& request) const {
  const Result<LoweredPartition> lowered = RelayToTIR(request);
  if (!lowered) return lowered.reason();
  return TIRToRuntime(*lowered);
}

Result<LoweredPartition> Toolchain::RelayToTIR(const PartitionRequest&) const {
  return Reason{"has no hook RelayToTIR", name()};
}

Result<CompiledPartition> Toolchain::TIRToRuntime(const LoweredPartition& lowered) const {
  const Toolchain* native = ToolchainRegistry::Global().Native();
  if (native == nullptr || native == this) return Reason{"there is no toolchain that compiles loops", name()};
  return native->TIRToRuntime(lowered);
}

Result<std::vector<std::string>> Toolchain::Schedules(const PartitionRequest&) const {
  return std::vector<std::string>{};
}

Result<std::vector<Tensor>> Toolchain::UpdateConstants(const PartitionRequest&, const CompiledPartition&) const {
  return Reason{"has no hook UpdateConstants", name()};
}

std::vector<Listing> Toolchain::Listings(const PartitionRequest&, const CompiledPartition& compiled) const {
  if (compiled.source.empty()) return {};
  return {{"txt", compiled.source}};
}

Result<void> Toolchain::SupportsCall(const CallNode&) const {
  return Reason{"takes patterns, not single operators", name()};
}

Result<void> Toolchain::SupportsDynamicShapes(const CallNode&) const {
  return Reason{"needs to know all shapes", name()};
}

std::unique_ptr<const Toolchain> Toolchain::WithOptions(const Attrs&) const { return nullptr; }

std::vector<BoundaryLayouts> Toolchain::Layouts(const Function&, const std::vector<bool>& eligible_inputs,
                                                const std::vector<bool>& eligible_outputs) const {
  return {In(MainMemoryOf(*this), PlainLayouts(eligible_inputs.size(), eligible_outputs.size()))};
}

ToolchainRegistry& ToolchainRegistry::Global() {
  static ToolchainRegistry registry;
  return registry;
}

void ToolchainRegistry::Add(std::unique_ptr<Toolchain> toolchain, std::string revision) {
  if (Find(toolchain->name()) != nullptr) {
    throw Error(ErrorCategory::kInput, "toolchain '" + toolchain->name() + "' is registered already");
  }
  toolchains_.push_back(UnlessLeftOut(std::move(toolchain)));
  revisions_.push_back(std::move(revision));
}

const std::string& ToolchainRegistry::RevisionOf(const Toolchain& toolchain) const {
  for (size_t i = 0; i < toolchains_.size(); ++i) {
    if (toolchains_[i].get() == &toolchain) return revisions_[i];
  }
  throw Error(ErrorCategory::kInternal, "toolchain '" + toolchain.name() + "' is not of this registry");
}

const Toolchain* ToolchainRegistry::Find(std::string_view name) const {
  for (const auto& toolchain : toolchains_) {
    if (toolchain->name() == name) return toolchain.get();
  }
  return nullptr;
}

const Toolchain& ToolchainRegistry::Get(std::string_view name, const std::string& where) const {
  if (const Toolchain* toolchain = Find(name)) return *toolchain;
  throw Error(ErrorCategory::kInput, fmt::format("there is no toolchain '{}'", name), where, HintFor(name));
}

namespace {

/// Tells the author of a toolchain why it was not found.
std::string WhereModulesAre(std::string_view name) {
  const std::string file = fmt::format("libcollage_toolchain_{}.so", name);
  return GetEnvironment("COLLAGE_MODULE_PATH").value_or("").empty()
             ? fmt::format("for one of your own, set COLLAGE_MODULE_PATH to the folder of '{}'", file)
             : fmt::format("no folder of COLLAGE_MODULE_PATH has a module '{}'", file);
}

}  // namespace

std::string ToolchainRegistry::HintFor(std::string_view unknown) const {
  std::string known;
  std::vector<std::string> names;
  for (const auto& toolchain : toolchains_) {
    const std::vector<std::string> aliases = toolchain->aliases();
    if (std::ranges::find(aliases, unknown) != aliases.end()) return "did you mean '" + toolchain->name() + "'?";
    names.push_back(toolchain->name());
    known += (known.empty() ? "there are: " : ", ") + names.back();
  }
  const std::string near = DidYouMean(unknown, names);
  if (!near.empty()) return near;
  return known + (known.empty() ? "" : "; ") + WhereModulesAre(unknown);
}

std::vector<const Toolchain*> ToolchainRegistry::All() const {
  std::vector<const Toolchain*> result;
  for (const auto& toolchain : toolchains_) result.push_back(toolchain.get());
  return result;
}

const Toolchain* ToolchainRegistry::Native() const {
  for (const auto& toolchain : toolchains_) {
    if (toolchain->is_native()) return toolchain.get();
  }
  return nullptr;
}

Memory MainMemoryOf(const Toolchain& toolchain) {
  const std::optional<Memory> memory = MemoryOf(toolchain.device_type());
  if (!memory) {
    throw Error(ErrorCategory::kUnsupported, "toolchain '" + toolchain.name() + "' computes on " +
                                                 DeviceName(toolchain.device_type()) + ", whose memory is not known");
  }
  return *memory;
}

void* OpenCompilerModule(std::string_view name, const std::string& symbol) {
  return FindModuleSymbol("libcollage_" + std::string(name) + "_compiler.so", symbol);
}

CompilePartitionFn* OpenCompilerModule(std::string_view name) {
  return reinterpret_cast<CompilePartitionFn*>(OpenCompilerModule(name, "collage_compile_partition"));
}

}  // namespace collage
