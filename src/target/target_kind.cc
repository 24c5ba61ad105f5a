// target_kind.cc: the built-in kinds, attributes of kinds, and the toolchain that a kind with hooks is.
#include "collage/target/target_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <typeinfo>

#include "collage/support/error.h"
#include "collage/target/composite_calls.h"

namespace collage {
namespace {

constexpr const char* kRelayToTIR = "RelayToTIR";
constexpr const char* kTIRToRuntime = "TIRToRuntime";
constexpr const char* kRelayToRuntime = "RelayToRuntime";
constexpr const char* kUpdateConstants = "UpdateConstants";
constexpr const char* kPatternTable = "PatternTable";
constexpr const char* kCompositeCalls = "CompositeCalls";
constexpr const char* kSupportsCall = "SupportsCall";
constexpr const char* kSupportsDynamicShapes = "SupportsDynamicShapes";
constexpr const char* kLayouts = "Layouts";
constexpr const char* kSchedules = "Schedules";
constexpr const char* kProposals = "Proposals";
constexpr const char* kProbe = "Probe";

/// Kinds of devices. Native code is of kind llvm.
const std::vector<TargetKind>& BuiltinKinds() {
  static const std::vector<TargetKind> kinds{
      {"llvm", kDLCPU, "processors"},
      {"c", kDLCPU, "processors, by way of C"},
      {"cuda", 2, "NVIDIA's graphics processors"},
      {"opencl", 4, "OpenCL devices"},
      {"vulkan", 7, "Vulkan devices"},
      {"metal", 8, "Apple's graphics processors"},
      {"rocm", 10, "AMD's graphics processors"},
      {"ext_dev", 12, "external devices"},
  };
  return kinds;
}

/// An attribute that kinds may have.
struct KindAttribute {
  std::string name;
  std::string type;  ///< for people
  bool (*is_value)(const std::any& value);
};

template <typename T>
bool IsA(const std::any& value) {
  return std::any_cast<T>(&value) != nullptr;
}

/// A function, and not an empty one.
template <typename T>
bool IsFunction(const std::any& value) {
  const T* function = std::any_cast<T>(&value);
  return function != nullptr && *function;
}

const std::vector<KindAttribute>& KindAttributes() {
  static const std::vector<KindAttribute> attributes{
      {kRelayToTIR, "FTVMRelayToTIR", IsFunction<FTVMRelayToTIR>},
      {kTIRToRuntime, "FTVMTIRToRuntime", IsFunction<FTVMTIRToRuntime>},
      {kRelayToRuntime, "FTVMRelayToRuntime", IsFunction<FTVMRelayToRuntime>},
      {kUpdateConstants, "FTVMConstantUpdater", IsFunction<FTVMConstantUpdater>},
      {kPatternTable, "FPatternTable", IsFunction<FPatternTable>},
      {kCompositeCalls, "FCompositeCalls", IsFunction<FCompositeCalls>},
      {kSupportsCall, "FSupportsCall", IsFunction<FSupportsCall>},
      {kSupportsDynamicShapes, "FSupportsDynamicShapes", IsFunction<FSupportsDynamicShapes>},
      {kLayouts, "FLayouts", IsFunction<FLayouts>},
      {kSchedules, "FSchedules", IsFunction<FSchedules>},
      {kProposals, "FProposals", IsFunction<FProposals>},
      {kProbe, "FProbe", IsFunction<FProbe>},
      {"FusionStyle", "FusionStyle", IsA<FusionStyle>},
      {"MaxDepth", "int", IsA<int>},
      {"WantsMaximal", "bool", IsA<bool>},
      {"Preamble", "std::vector<std::string>", IsA<std::vector<std::string>>},
      {"Incompatible", "std::vector<Incompatibility>", IsA<std::vector<Incompatibility>>},
      {"Priority", "int", IsA<int>},
      {"License", "std::string", IsA<std::string>},
      {"IsDefault", "bool", IsA<bool>},
  };
  return attributes;
}

[[noreturn]] void Fail(const TargetKind& kind, const std::string& message, const std::string& hint = "") {
  throw Error(ErrorCategory::kInput, fmt::format("target kind '{}' {}", kind.name(), message), "", hint);
}

Attrs DefaultsOf(const TargetKind& kind) {
  Attrs options;
  for (const AttrField& option : kind.options()) options.Set(option.name, option.default_value);
  return options;
}

/// Whether the kind has a hook that compiles.
bool Compiles(const TargetKind& kind) { return kind.HasHook(kRelayToTIR) || kind.HasHook(kRelayToRuntime); }

/// A kind's hooks under options.
class KindToolchain : public Toolchain, public HasCompositeCalls {
 public:
  KindToolchain(TargetKind kind, Attrs options) : kind_(std::move(kind)), options_(std::move(options)) {}

  const TargetKind& kind() const { return kind_; }

  std::string name() const override { return kind_.name(); }
  std::string description() const override { return kind_.doc(); }
  Availability Probe() const override {
    const auto* probe = kind_.GetAttr<FProbe>(kProbe);
    return probe == nullptr ? Availability{true, "1", "", ""} : (*probe)();
  }
  int priority() const override { return Or("Priority", 100); }
  bool is_default() const override { return Or("IsDefault", Compiles(kind_)); }
  std::string license() const override { return Or("License", std::string()); }
  std::vector<Incompatibility> Incompatible() const override { return Or("Incompatible", Toolchain::Incompatible()); }
  int device_type() const override { return kind_.device_type(); }
  std::vector<std::string> Preamble() const override { return Or("Preamble", Toolchain::Preamble()); }
  FusionStyle fusion_style() const override { return Or("FusionStyle", Toolchain::fusion_style()); }
  int max_depth() const override { return Or("MaxDepth", Toolchain::max_depth()); }
  bool wants_maximal() const override { return Or("WantsMaximal", Toolchain::wants_maximal()); }

  std::vector<PatternTableEntry> PatternTable() const override {
    const auto* table = kind_.GetAttr<FPatternTable>(kPatternTable);
    return table == nullptr ? Toolchain::PatternTable() : (*table)(options_);
  }
  std::vector<CompositeCall> CompositeCalls() const override {
    const auto* calls = kind_.GetAttr<FCompositeCalls>(kCompositeCalls);
    return calls == nullptr ? std::vector<CompositeCall>() : (*calls)(options_);
  }
  Result<void> SupportsCall(const CallNode& call) const override {
    const auto* supports = kind_.GetAttr<FSupportsCall>(kSupportsCall);
    return supports == nullptr ? Toolchain::SupportsCall(call) : (*supports)(call, options_);
  }
  Result<void> SupportsDynamicShapes(const CallNode& call) const override {
    const auto* supports = kind_.GetAttr<FSupportsDynamicShapes>(kSupportsDynamicShapes);
    return supports == nullptr ? Toolchain::SupportsDynamicShapes(call) : (*supports)(call, options_);
  }
  std::vector<BoundaryLayouts> Layouts(const Function& function, const std::vector<bool>& eligible_inputs,
                                       const std::vector<bool>& eligible_outputs) const override {
    const auto* layouts = kind_.GetAttr<FLayouts>(kLayouts);
    return layouts == nullptr ? Toolchain::Layouts(function, eligible_inputs, eligible_outputs)
                              : (*layouts)(function, eligible_inputs, eligible_outputs, options_);
  }
  bool has_schedules() const override { return kind_.HasHook(kSchedules); }
  Result<std::vector<std::string>> Schedules(const PartitionRequest& request) const override {
    const auto* schedules = kind_.GetAttr<FSchedules>(kSchedules);
    return schedules == nullptr ? Toolchain::Schedules(request) : (*schedules)(request, options_);
  }
  bool proposes() const override { return kind_.HasHook(kProposals); }
  std::vector<std::vector<Expr>> Proposals(const Function& function) const override {
    const auto* proposals = kind_.GetAttr<FProposals>(kProposals);
    return proposals == nullptr ? Toolchain::Proposals(function) : (*proposals)(function, options_);
  }

  std::vector<AttrField> Options() const override { return kind_.options(); }
  std::unique_ptr<const Toolchain> WithOptions(const Attrs& options) const override {
    return std::make_unique<KindToolchain>(kind_, options);
  }

  std::vector<Hook> Hooks() const override {
    std::vector<Hook> hooks;
    for (const Hook hook : {Hook::kRelayToTIR, Hook::kTIRToRuntime, Hook::kRelayToRuntime, Hook::kUpdateConstants}) {
      if (kind_.HasHook(ToString(hook))) hooks.push_back(hook);
    }
    return hooks;
  }
  Result<LoweredPartition> RelayToTIR(const PartitionRequest& request) const override {
    const auto* hook = kind_.GetAttr<FTVMRelayToTIR>(kRelayToTIR);
    return hook == nullptr ? Toolchain::RelayToTIR(request) : (*hook)(request, options_);
  }
  Result<CompiledPartition> TIRToRuntime(const LoweredPartition& lowered) const override {
    const auto* hook = kind_.GetAttr<FTVMTIRToRuntime>(kTIRToRuntime);
    return hook == nullptr ? Toolchain::TIRToRuntime(lowered) : (*hook)(lowered, options_);
  }
  Result<CompiledPartition> RelayToRuntime(const PartitionRequest& request) const override {
    const auto* hook = kind_.GetAttr<FTVMRelayToRuntime>(kRelayToRuntime);
    return hook == nullptr ? Toolchain::RelayToRuntime(request) : (*hook)(request, options_);
  }
  Result<std::vector<Tensor>> UpdateConstants(const PartitionRequest& request,
                                              const CompiledPartition& compiled) const override {
    const auto* hook = kind_.GetAttr<FTVMConstantUpdater>(kUpdateConstants);
    return hook == nullptr ? Toolchain::UpdateConstants(request, compiled) : (*hook)(request, compiled, options_);
  }

 private:
  template <typename T>
  T Or(const std::string& attribute, T otherwise) const {
    const T* value = kind_.GetAttr<T>(attribute);
    return value == nullptr ? otherwise : *value;
  }

  TargetKind kind_;
  Attrs options_;
};

}  // namespace

TargetKind::TargetKind(std::string name, int device_type, std::string doc)
    : name_(std::move(name)), device_type_(device_type), doc_(std::move(doc)) {
  const auto may_be_in_name = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; };
  if (name_.empty() || std::isalpha(static_cast<unsigned char>(name_[0])) == 0 ||
      !std::all_of(name_.begin(), name_.end(), may_be_in_name)) {
    Fail(*this, "has no name that a target could begin with", "a name is a letter, then letters, digits, '_' and '-'");
  }
}

TargetKind& TargetKind::add_attr_option(AttrField option) {
  const auto is_same = [&](const AttrField& other) { return other.name == option.name; };
  if (std::any_of(options_.begin(), options_.end(), is_same)) {
    Fail(*this, fmt::format("has two options '{}'", option.name));
  }
  options_.push_back(std::move(option));
  return *this;
}

void TargetKind::SetAttr(const std::string& attribute, std::any value) {
  const std::vector<KindAttribute>& known = KindAttributes();
  const auto it = std::find_if(known.begin(), known.end(), [&](const auto& one) { return one.name == attribute; });
  if (it == known.end()) {
    std::string names;
    for (const KindAttribute& one : known) names += (names.empty() ? "" : ", ") + one.name;
    Fail(*this, fmt::format("is given '{}', which is no attribute of kinds", attribute), "there are: " + names);
  }
  if (!it->is_value(value)) Fail(*this, fmt::format("needs a value of type {} for '{}'", it->type, attribute));
  if (HasHook(attribute)) Fail(*this, fmt::format("is given '{}' twice", attribute));
  attributes_[attribute] = std::move(value);
}

std::unique_ptr<Toolchain> MakeToolchain(TargetKind kind) {
  const auto is_same = [&](const TargetKind& builtin) { return builtin.name() == kind.name(); };
  if (std::any_of(BuiltinKinds().begin(), BuiltinKinds().end(), is_same)) Fail(kind, "is built in");
  const bool has_loops = kind.HasHook(kRelayToTIR);
  if (has_loops && kind.HasHook(kRelayToRuntime)) {
    Fail(kind, "has both RelayToTIR and RelayToRuntime: one of them compiles");
  }
  if (kind.HasHook(kTIRToRuntime) && !has_loops) Fail(kind, "has TIRToRuntime, but no RelayToTIR that makes loops");
  const bool takes = kind.HasHook(kPatternTable) || kind.HasHook(kSupportsCall);
  const bool is_called_only = kind.HasHook(kCompositeCalls) && !takes && !Compiles(kind);
  if (!is_called_only && !Compiles(kind)) {
    Fail(kind, "has no hook that compiles: set RelayToTIR or RelayToRuntime");
  }
  if (!is_called_only && !takes) Fail(kind, "takes nothing: set PatternTable or SupportsCall");
  const auto* fusion = kind.GetAttr<FusionStyle>("FusionStyle");
  const bool joins = fusion != nullptr && *fusion != FusionStyle::kNoFusion;
  if (kind.HasHook(kProposals) && !joins) {
    Fail(kind, "has Proposals, which nobody asks for with FusionStyle kNoFusion", "set kTVMFusion or kArbitrary");
  }
  Attrs options = DefaultsOf(kind);
  return std::make_unique<KindToolchain>(std::move(kind), std::move(options));
}

const TargetKind* TargetKindOf(const Toolchain& toolchain) {
  const auto* made = dynamic_cast<const KindToolchain*>(&toolchain);
  return made == nullptr ? nullptr : &made->kind();
}

std::vector<const TargetKind*> TargetKinds(const ToolchainRegistry& registry) {
  std::vector<const TargetKind*> kinds;
  for (const TargetKind& kind : BuiltinKinds()) kinds.push_back(&kind);
  for (const Toolchain* toolchain : registry.All()) {
    if (const TargetKind* kind = TargetKindOf(*toolchain)) kinds.push_back(kind);
  }
  return kinds;
}

const TargetKind* FindTargetKind(std::string_view name, const ToolchainRegistry& registry) {
  for (const TargetKind* kind : TargetKinds(registry)) {
    if (kind->name() == name) return kind;
  }
  return nullptr;
}

const Toolchain* OwnToolchainOf(const TargetKind& kind, const ToolchainRegistry& registry) {
  return kind.device_type() == kDLCPU && registry.Find(kind.name()) == nullptr ? registry.Native()
                                                                               : registry.Find(kind.name());
}

}  // namespace collage
