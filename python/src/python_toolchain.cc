// python_toolchain.cc: the functions of toolchain.h as methods of a Python object.
#include "python_toolchain.h"

#include <fmt/format.h>

#include <mutex>
#include <set>
#include <utility>

#include "bindings.h"
#include "casters.h"
#include "collage/ir/dynamic_sizes.h"
#include "collage/support/error.h"
#include "collage/target/symbolic_sizes.h"
#include "collage/target/varying_results.h"
#include "python_kernel.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace collage::python {
namespace {

// ---- values ----

const char* NameOf(Layout layout) { return layout == Layout::kPlain ? "plain" : "channels_last"; }

std::vector<std::string> NamesOf(const std::vector<Layout>& layouts) {
  std::vector<std::string> names;
  for (Layout layout : layouts) names.emplace_back(NameOf(layout));
  return names;
}

std::vector<Layout> LayoutsFrom(nb::handle names, const std::vector<bool>& eligible) {
  std::vector<Layout> layouts;
  for (const std::string& name : nb::cast<std::vector<std::string>>(names)) {
    if (name != "plain" && name != "channels_last") {
      throw Error(ErrorCategory::kInput, fmt::format("there is no layout '{}'", name), "",
                  "there are: plain, channels_last");
    }
    const bool may = layouts.size() < eligible.size() && eligible[layouts.size()];
    if (name == "channels_last" && !may) {
      throw Error(ErrorCategory::kInput, fmt::format("value {} at the boundary is always plain", layouts.size()));
    }
    layouts.push_back(name == "plain" ? Layout::kPlain : Layout::kChannelsLast);
  }
  if (layouts.size() != eligible.size()) {
    throw Error(ErrorCategory::kInput, fmt::format("{} layouts for {} values", layouts.size(), eligible.size()));
  }
  return layouts;
}

/// None or "" is yes, a text the reason for a no.
Result<void> AnswerFrom(const nb::object& answer, const std::string& origin) {
  if (answer.is_none()) return {};
  std::string reason = nb::cast<std::string>(answer);
  if (reason.empty()) return {};
  return Reason{std::move(reason), origin};
}

std::vector<Tensor> TensorsFrom(nb::handle arrays) {
  std::vector<Tensor> tensors;
  for (nb::handle array : arrays) tensors.push_back(TensorFrom(array).Clone());
  return tensors;
}

nb::list ToArrays(const std::vector<Tensor>& tensors) {
  nb::list arrays;
  for (const Tensor& tensor : tensors) arrays.append(ToNumpy(tensor, /*writable=*/false));
  return arrays;
}

FusionStyle FusionStyleFrom(const std::string& name) {
  if (name == "none") return FusionStyle::kNoFusion;
  if (name == "tvm") return FusionStyle::kTVMFusion;
  if (name == "arbitrary") return FusionStyle::kArbitrary;
  throw Error(ErrorCategory::kInput, fmt::format("there is no fusion style '{}'", name), "",
              "there are: none, tvm, arbitrary");
}

AttrField OptionFrom(nb::handle row) {
  AttrField option{
      nb::cast<std::string>(row.attr("name")), AttrKind::kString, {}, nb::cast<std::string>(row.attr("doc"))};
  AttrValue& value = option.default_value;
  if (FromPython(row.attr("default"), &value)) {
    if (value.as_string() != nullptr) return option;
    option.kind = value.as_bool() != nullptr  ? AttrKind::kBool
                  : value.as_int() != nullptr ? AttrKind::kInt
                                              : AttrKind::kDouble;
    if (option.kind != AttrKind::kDouble || value.as_double() != nullptr) return option;
  }
  throw Error(ErrorCategory::kInput,
              fmt::format("option '{}' has a default that is no bool, int, float or str", option.name));
}

// ---- objects ----

/// Python objects that one toolchain refers to.
class HeldObjects {
 public:
  HeldObjects() {
    const std::lock_guard lock(All().mutex);
    All().held.insert(this);
  }
  ~HeldObjects() {
    {
      const std::lock_guard lock(All().mutex);
      All().held.erase(this);
    }
    if (objects_.empty()) return;
    nb::gil_scoped_acquire gil;
    objects_.clear();
  }
  HeldObjects(const HeldObjects&) = delete;
  HeldObjects& operator=(const HeldObjects&) = delete;

  nb::handle Hold(nb::object object) {
    objects_.push_back(std::move(object));
    return objects_.back();
  }

  static void LetGoOfAll() {
    const std::lock_guard lock(All().mutex);
    for (HeldObjects* one : All().held) one->objects_.clear();
  }

 private:
  struct Registry {
    std::mutex mutex;
    std::set<HeldObjects*> held;
  };
  static Registry& All() {
    static auto* const all = new Registry;  // toolchains may go after it would
    return *all;
  }

  std::vector<nb::object> objects_;
};

// ---- the toolchain ----

/// The hooks and the methods that, overridden, set them.
constexpr std::pair<Hook, const char*> kHookMethods[] = {{Hook::kRelayToTIR, "relay_to_tir"},
                                                         {Hook::kTIRToRuntime, "tir_to_runtime"},
                                                         {Hook::kRelayToRuntime, "relay_to_runtime"},
                                                         {Hook::kUpdateConstants, "update_constants"}};

class PythonToolchain : public Toolchain, public HasSymbolicSizes, public HasVaryingResults {
 public:
  explicit PythonToolchain(nb::object self)
      : name_(nb::cast<std::string>(self.attr("name"))),
        description_(nb::cast<std::string>(self.attr("description"))),
        priority_(nb::cast<int>(self.attr("priority"))),
        max_depth_(nb::cast<int>(self.attr("max_depth"))),
        wants_maximal_(nb::cast<bool>(self.attr("wants_maximal"))),
        is_default_(nb::cast<bool>(self.attr("is_default"))),
        results_vary_(nb::cast<bool>(self.attr("results_vary"))),
        preamble_(nb::cast<std::vector<std::string>>(self.attr("preamble"))),
        license_(nb::cast<std::string>(self.attr("license"))),
        fusion_style_(FusionStyleFrom(nb::cast<std::string>(self.attr("fusion")))),
        self_(held_.Hold(std::move(self))) {
    for (const auto& [other, reason] : nb::cast<std::map<std::string, std::string>>(self_.attr("incompatible"))) {
      incompatible_.push_back({other, reason});
    }
    for (nb::handle row : self_.attr("option_table")) options_.push_back(OptionFrom(row));
    ReadHooks();
    ReadPatterns();
  }

  std::string name() const override { return name_; }
  std::string description() const override { return description_; }
  int priority() const override { return priority_; }
  bool is_default() const override { return is_default_; }
  bool results_vary() const override { return results_vary_; }
  FusionStyle fusion_style() const override { return fusion_style_; }
  int max_depth() const override { return max_depth_; }
  std::string license() const override { return license_; }
  std::vector<Incompatibility> Incompatible() const override { return incompatible_; }
  bool wants_maximal() const override { return wants_maximal_; }
  std::vector<std::string> Preamble() const override { return preamble_; }
  std::vector<PatternTableEntry> PatternTable() const override { return patterns_; }
  std::vector<AttrField> Options() const override { return options_; }
  std::vector<Hook> Hooks() const override { return hooks_; }
  bool has_schedules() const override { return has_schedules_; }
  bool proposes() const override { return proposes_; }

  std::unique_ptr<const Toolchain> WithOptions(const Attrs& options) const override {
    if (options_.empty()) return nullptr;
    nb::gil_scoped_acquire gil;
    auto configured = std::make_unique<PythonToolchain>(self_.attr("with_options")(ToPython(options)));
    if (configured->name() == name_) return configured;
    throw Error(ErrorCategory::kInput,
                fmt::format("toolchain '{}' has another name, '{}', under options", name_, configured->name()));
  }

  Availability Probe() const override {
    nb::gil_scoped_acquire gil;
    try {
      const nb::object found = self_.attr("probe")();
      return {nb::cast<bool>(found.attr("available")), nb::cast<std::string>(found.attr("version")),
              nb::cast<std::string>(found.attr("reason")), nb::cast<std::string>(found.attr("hint"))};
    } catch (nb::python_error& error) {
      // One that cannot even say whether it is here must not keep others from being used.
      const std::string text = nb::str(error.value()).c_str();
      return {false, "",
              fmt::format("its probe raised {}: {}", nb::cast<std::string>(error.type().attr("__name__")), text), ""};
    }
  }

  Result<void> SupportsCall(const CallNode& call) const override { return AskOf(call, "supports_call"); }
  bool compiles_symbolic_sizes() const override { return compiles_symbolic_sizes_; }
  Result<void> SupportsSymbolicSizes(const CallNode& call) const override {
    return AskOf(call, "supports_symbolic_sizes");
  }

  std::vector<BoundaryLayouts> Layouts(const Function& function, const std::vector<bool>& eligible_inputs,
                                       const std::vector<bool>& eligible_outputs) const override {
    nb::gil_scoped_acquire gil;
    std::vector<BoundaryLayouts> choices;
    for (nb::handle choice : self_.attr("layouts")(function, eligible_inputs, eligible_outputs)) {
      choices.push_back({LayoutsFrom(choice[0], eligible_inputs), LayoutsFrom(choice[1], eligible_outputs)});
    }
    if (choices.empty()) throw Error(ErrorCategory::kInput, fmt::format("toolchain '{}' gives no layouts", name_));
    return choices;
  }

  std::vector<std::vector<Expr>> Proposals(const Function& function) const override {
    if (!proposes_) return {};
    nb::gil_scoped_acquire gil;
    return nb::cast<std::vector<std::vector<Expr>>>(self_.attr("proposals")(function));
  }

  Result<std::vector<std::string>> Schedules(const PartitionRequest& request) const override {
    nb::gil_scoped_acquire gil;
    const Result<nb::object> texts = Ask("schedules", RequestOf(request));
    if (!texts) return texts.reason();
    return nb::cast<std::vector<std::string>>(*texts);
  }

  Result<CompiledPartition> RelayToRuntime(const PartitionRequest& request) const override {
    if (Has(Hook::kRelayToTIR) && !Has(Hook::kTIRToRuntime)) return Toolchain::RelayToRuntime(request);
    nb::gil_scoped_acquire gil;
    if (Has(Hook::kTIRToRuntime)) {  // what it compiled may be run by Python, which must know the partition
      const Result<nb::object> lowered = Ask("relay_to_tir", RequestOf(request));
      if (!lowered) return lowered.reason();
      const Result<nb::object> made = Ask("tir_to_runtime", *lowered);
      return made ? CompiledFrom(*made, &request) : made.reason();
    }
    nb::dict schedule;
    if (has_schedules_) schedule["schedule"] = request.schedule;
    const Result<nb::object> made = Ask("relay_to_runtime", request.function, NamesOf(request.layouts.inputs),
                                        NamesOf(request.layouts.outputs), request.num_threads, **schedule);
    return made ? CompiledFrom(*made, &request) : made.reason();
  }

  Result<LoweredPartition> RelayToTIR(const PartitionRequest& request) const override {
    if (!Has(Hook::kRelayToTIR)) return Toolchain::RelayToTIR(request);
    nb::gil_scoped_acquire gil;
    const Result<nb::object> made = Ask("relay_to_tir", RequestOf(request));
    if (!made) return made.reason();
    return LoweredPartition{nb::cast<std::string>(made->attr("mlir")), TensorsFrom(made->attr("constants")),
                            nb::cast<size_t>(made->attr("workspace_bytes"))};
  }

  Result<CompiledPartition> TIRToRuntime(const LoweredPartition& lowered) const override {
    if (!Has(Hook::kTIRToRuntime)) return Toolchain::TIRToRuntime(lowered);
    nb::gil_scoped_acquire gil;
    const nb::object argument =
        PythonClass("Lowered")(lowered.mlir, ToArrays(lowered.constants), lowered.workspace_bytes);
    const Result<nb::object> made = Ask("tir_to_runtime", argument);
    return made ? CompiledFrom(*made, nullptr) : made.reason();
  }

  Result<std::vector<Tensor>> UpdateConstants(const PartitionRequest& request,
                                              const CompiledPartition& compiled) const override {
    if (!Has(Hook::kUpdateConstants)) return Toolchain::UpdateConstants(request, compiled);
    nb::gil_scoped_acquire gil;
    const bool is_own = compiled.loader == PythonLoaderName(name_);
    const std::span<const std::byte> payload = is_own ? PayloadOf(compiled.blob) : std::span(compiled.blob);
    const nb::object argument =
        PythonClass("Compiled")(nb::bytes(payload.data(), payload.size()), ToArrays(compiled.constants),
                                is_own ? "" : compiled.loader, compiled.source, compiled.workspace_bytes);
    const Result<nb::object> made = Ask("update_constants", RequestOf(request), argument);
    if (!made) return made.reason();
    return TensorsFrom(*made);
  }

 private:
  /// The answer of a predicate.
  Result<void> AskOf(const CallNode& call, const char* predicate) const {
    // The node is somebody's; Python may keep what it gets.
    const Expr copy = MakeCall(call.callee(), call.args(), call.attrs(), call.type_args());
    copy->set_checked_type(call.checked_type());
    copy->share_span(call);
    nb::gil_scoped_acquire gil;
    return AnswerFrom(self_.attr(predicate)(copy), name_);
  }

  bool Overrides(const char* method) const { return nb::cast<bool>(self_.attr("_overrides")(method)); }

  void ReadHooks() {
    has_schedules_ = Overrides("schedules");
    proposes_ = Overrides("proposals");
    compiles_symbolic_sizes_ = Overrides("supports_symbolic_sizes");
    for (const auto& [hook, method] : kHookMethods) {
      if (Overrides(method)) hooks_.push_back(hook);
    }
    if (Has(Hook::kRelayToTIR) && Has(Hook::kRelayToRuntime)) {
      throw Error(
          ErrorCategory::kInput,
          fmt::format("toolchain '{}' has both relay_to_tir and relay_to_runtime: one of them compiles", name_));
    }
    if (Has(Hook::kTIRToRuntime) && !Has(Hook::kRelayToTIR)) {
      throw Error(ErrorCategory::kInput,
                  fmt::format("toolchain '{}' has tir_to_runtime, but no relay_to_tir that writes loops", name_));
    }
    if (proposes_ && fusion_style_ == FusionStyle::kNoFusion) {
      throw Error(ErrorCategory::kInput,
                  fmt::format("toolchain '{}' has proposals, which nobody asks for with fusion 'none'", name_), "",
                  "fusion may be tvm or arbitrary");
    }
    // One without hooks declines, in its own words, whatever it is asked to compile.
    if (!Has(Hook::kRelayToTIR) && !Has(Hook::kRelayToRuntime)) hooks_.push_back(Hook::kRelayToRuntime);
  }

  void ReadPatterns() {
    for (nb::handle row : self_.attr("pattern_table")()) {
      PatternTableEntry entry{nb::cast<std::string>(row.attr("name")), nb::cast<std::string>(row.attr("pattern")), {}};
      entry.is_greedy = nb::cast<bool>(row.attr("is_greedy"));
      nb::object predicate = row.attr("predicate");
      if (!predicate.is_none()) {
        entry.predicate = [held = held_.Hold(std::move(predicate)), name = name_](const Function& composite) {
          nb::gil_scoped_acquire gil;
          return AnswerFrom(held(composite), name);
        };
      }
      patterns_.push_back(std::move(entry));
    }
  }

  static nb::object PythonClass(const char* name) { return nb::module_::import_("collage.toolchain").attr(name); }

  static nb::object RequestOf(const PartitionRequest& request) {
    return PythonClass("Request")(request.function, NamesOf(request.layouts.inputs), NamesOf(request.layouts.outputs),
                                  request.num_threads, request.schedule);
  }

  /// The answer of a hook; what it raises is the reason for a no.
  template <typename... Args>
  Result<nb::object> Ask(const char* hook, Args&&... args) const {
    try {
      return nb::object(self_.attr(hook)(std::forward<Args>(args)...));
    } catch (nb::python_error& error) {
      // Declines are UnsupportedError; anything else it raises is its failure, not the compiler's.
      const bool declines = error.matches(nb::module_::import_("collage.errors").attr("UnsupportedError"));
      const std::string text = nb::str(error.value()).c_str();
      const std::string type = nb::cast<std::string>(error.type().attr("__name__"));
      return Reason{declines ? text : fmt::format("{}: {}", type, text), name_};
    }
  }

  /// `request` is null where nobody knows the partition: another loader must run it.
  Result<CompiledPartition> CompiledFrom(const nb::object& made, const PartitionRequest* request) const {
    CompiledPartition partition;
    partition.loader = nb::cast<std::string>(made.attr("loader"));
    if (partition.loader.empty()) {
      if (request == nullptr) return Reason{"loops without their partition are not run by Python", name_};
      if (HasDynamicSizes(request->function)) return Reason{"kernels that Python runs need to know all shapes", name_};
      partition.loader = PythonLoaderName(name_);
      partition.blob = DescribePorts(*request);
    }
    const auto payload = nb::cast<nb::bytes>(made.attr("blob"));
    const auto* bytes = reinterpret_cast<const std::byte*>(payload.c_str());
    partition.blob.insert(partition.blob.end(), bytes, bytes + payload.size());
    partition.constants = TensorsFrom(made.attr("constants"));
    partition.source = nb::cast<std::string>(made.attr("source"));
    partition.workspace_bytes = nb::cast<size_t>(made.attr("workspace_bytes"));
    return partition;
  }

  HeldObjects held_;
  std::string name_;
  std::string description_;
  int priority_;
  int max_depth_;
  bool wants_maximal_;
  bool is_default_;
  bool results_vary_;
  std::vector<std::string> preamble_;
  std::string license_;
  FusionStyle fusion_style_;
  nb::handle self_;
  bool has_schedules_ = false;
  bool proposes_ = false;
  bool compiles_symbolic_sizes_ = false;
  std::vector<Hook> hooks_;
  std::vector<AttrField> options_;
  std::vector<Incompatibility> incompatible_;
  std::vector<PatternTableEntry> patterns_;
};

}  // namespace

std::unique_ptr<Toolchain> MakePythonToolchain(nb::object self) {
  return std::make_unique<PythonToolchain>(std::move(self));
}

std::string PythonLoaderName(const std::string& name) { return "python." + name; }

void LetGoOfToolchains() { HeldObjects::LetGoOfAll(); }

}  // namespace collage::python
