// toolchain.cc: the description of cuDNN.
#include "collage/target/toolchain.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <memory>
#include <utility>

#include "backends/cudnn/architectures.h"
#include "backends/cudnn/describe.h"
#include "backends/cudnn/patterns.h"
#include "backends/cudnn/plan.h"
#include "collage/support/error.h"
#include "collage/target/child_process.h"
#include "collage/target/compiles_elsewhere.h"
#include "collage/target/toolchain_module.h"
#include "runtime/known_devices.h"
#include "support/dynamic_library.h"
#include "target/accuracy.h"

namespace collage::cudnn {
namespace {

constexpr const char* kName = "cudnn";
constexpr const char* kModule = "libcollage_rt_cudnn.so";
constexpr const char* kHint = "install NVIDIA's driver and cuDNN 9";
constexpr int kCudaType = 2;  // DLDeviceType
constexpr const char* kPrecision = "inference_precision";
constexpr const char* kTf32 = "tf32";
constexpr const char* kEngine = "engine=";
/// Engines of the library's ranking that are tried.
constexpr int kMostEngines = 8;

/// The library here, and the GPU.
struct Here {
  std::string architecture;
  std::string description;
};

/// Asks driver and library, which a process that forks workers must not have used, in a process of its own.
Result<Here> Ask() {
  if (const auto missing = WhyModuleMissing({kModule, DeviceModule(kCudaType)})) return Reason{*missing, kName};
  const auto answer = [] {
    std::string architecture, gpu, version;
    const std::string module = DeviceModule(kCudaType);
    reinterpret_cast<DescribeDeviceFn*>(FindModuleSymbol(module, "collage_gpu_architecture"))(architecture);
    reinterpret_cast<DescribeDeviceFn*>(FindModuleSymbol(module, "collage_describe_device"))(gpu);
    reinterpret_cast<DescribeDeviceFn*>(FindModuleSymbol(kModule, "collage_cudnn_version"))(version);
    return fmt::format("{}\n{} on {}", architecture, version, gpu);
  };
  const Result<std::string> text = AnswerInChild(answer, std::chrono::seconds(60));
  if (!text.ok()) return text.reason();
  const size_t end = text->find('\n');
  return Here{text->substr(0, end), text->substr(end + 1)};
}

const Result<Here>& ThisMachine() {
  static const Result<Here> here = Ask();
  return here;
}

/// The version of the library, which plans need no GPU for.
const Result<std::string>& ThisLibrary() {
  static const Result<std::string> version = []() -> Result<std::string> {
    if (const auto missing = WhyModuleMissing({kModule})) return Reason{*missing, kName};
    const auto answer = [] {
      std::string text;
      reinterpret_cast<DescribeDeviceFn*>(FindModuleSymbol(kModule, "collage_cudnn_version"))(text);
      return text;
    };
    return AnswerInChild(answer, std::chrono::seconds(60));
  }();
  return version;
}

/// The number of an engine that a schedule names; -1 without one.
int EngineOf(std::string_view schedule) {
  int engine = -1;
  if (!schedule.starts_with(kEngine)) return engine;
  schedule.remove_prefix(std::string_view(kEngine).size());
  std::from_chars(schedule.data(), schedule.data() + schedule.size(), engine);
  return engine;
}

/// Values that have addresses. Scratch values are placed behind the library's part of the workspace, which grows.
std::vector<PlanOperand> OperandsOf(const Graph& graph, int64_t& workspace_bytes) {
  constexpr int64_t kAlignment = 256;
  std::vector<PlanOperand> operands;
  for (size_t id = 0; id < graph.values.size(); ++id) {
    const Value& value = graph.values[id];
    if (value.source == Source::kInside) continue;
    operands.push_back({static_cast<int64_t>(id), value.source, value.number, value.value});
    if (value.source != Source::kScratch) continue;
    const int64_t first = (workspace_bytes + kAlignment - 1) / kAlignment * kAlignment;
    operands.back().number = first;
    workspace_bytes = first + NumElements(value.dims) * static_cast<int64_t>(value.dtype.size_bytes());
  }
  return operands;
}

class CudnnToolchain : public Toolchain, public CompilesElsewhere {
 public:
  explicit CudnnToolchain(std::string architecture = "", Precision precision = {})
      : told_architecture_(std::move(architecture)), precision_(precision), table_(Patterns(precision)) {}

  std::string name() const override { return kName; }
  std::string description() const override { return "convolutions, products and pools on NVIDIA GPUs by cuDNN"; }
  Availability Probe() const override {
    const Result<Here>& here = ThisMachine();
    if (!here.ok()) return {false, "", here.reason().text, kHint};
    return {true, here->description + OptionsText(), "", ""};
  }
  Availability ProbeCompiler() const override {
    const Result<std::string>& library = ThisLibrary();
    if (!library.ok()) return {false, "", library.reason().text, kHint};
    if (told_architecture_.empty() && !ThisMachine().ok()) {
      return {false, "", "the architecture of the GPU that it plans for is not known: there is none here",
              "name it, as in: cuda -compiler=cudnn -arch=sm_90"};
    }
    return {true, *library, "", ""};
  }
  Availability ProbeRunner() const override {
    const Availability here = Probe();
    if (!here.available || told_architecture_.empty()) return here;
    if (ThisMachine()->architecture == told_architecture_) return here;
    return {false, "",
            fmt::format("its plans are for {}, the GPU here is of {}", told_architecture_, ThisMachine()->architecture),
            fmt::format("compile for {}", ThisMachine()->architecture)};
  }
  /// A plan is for the version of the library that made it.
  std::optional<std::string> JoinVersions(const std::string& compiler, const std::string& runner) const override {
    return runner.starts_with(compiler + " on ") ? std::optional(runner) : std::nullopt;
  }
  int priority() const override { return 9; }
  bool is_default() const override { return false; }
  std::string license() const override { return "cuDNN: NVIDIA cuDNN EULA"; }
  int device_type() const override { return kCudaType; }
  std::vector<PatternTableEntry> PatternTable() const override { return table_; }
  std::vector<std::string> Preamble() const override { return {"SimplifyInference", "FoldConstant", "FoldScaleAxis"}; }

  std::vector<BoundaryLayouts> Layouts(const Function& function, const std::vector<bool>& eligible_inputs,
                                       const std::vector<bool>& eligible_outputs) const override {
    const BoundaryLayouts plain = PlainLayouts(eligible_inputs.size(), eligible_outputs.size());
    const BoundaryLayouts channels_last = ChannelsLastLayouts(eligible_inputs, eligible_outputs);
    std::vector<BoundaryLayouts> choices;
    const auto offer = [&](const BoundaryLayouts& layouts) {
      const Result<Description> described = cudnn::Describe(function, layouts, precision_);
      if (described && TakesPlainImages(described->graph)) choices.push_back(In(Memory::kCuda, layouts));
    };
    if (channels_last != plain) offer(channels_last);  // the model's input may lie plain nevertheless
    offer(plain);
    return choices;
  }

  std::vector<Hook> Hooks() const override { return {Hook::kRelayToRuntime, Hook::kUpdateConstants}; }

  Result<CompiledPartition> RelayToRuntime(const PartitionRequest& request) const override {
    Result<Description> description = Describe(request);
    if (!description) return description.reason();
    Result<Plan> plan = Reason{"no plan was made", kName};
    const auto make = reinterpret_cast<MakePlanFn*>(FindModuleSymbol(kModule, "collage_cudnn_plan"));
    make({description->graph, Device(), EngineOf(request.schedule)}, plan);
    if (!plan) return plan.reason();
    plan->architecture = told_architecture_;
    if (told_architecture_.empty()) {
      if (!ThisMachine().ok()) return ThisMachine().reason();
      plan->architecture = ThisMachine()->architecture;
    }
    plan->operands = OperandsOf(description->graph, plan->workspace_bytes);
    CompiledPartition partition;
    partition.loader = kName;
    partition.blob = ToBlob(*plan);
    partition.constants = std::move(description->constants);
    partition.workspace_bytes = static_cast<size_t>(plan->workspace_bytes);
    partition.workspace_memory = Memory::kCuda;
    return partition;
  }

  Result<std::vector<Tensor>> UpdateConstants(const PartitionRequest& request,
                                              const CompiledPartition&) const override {
    Result<Description> description = Describe(request);
    if (!description) return description.reason();
    return std::move(description->constants);
  }

  bool has_schedules() const override { return true; }
  Result<std::vector<std::string>> Schedules(const PartitionRequest& request) const override {
    std::vector<std::string> schedules;
    if (!request.schedule.empty()) return schedules;
    const Result<Description> description = Describe(request);
    if (!description) return description.reason();
    int count = 0;
    reinterpret_cast<CountEnginesFn*>(FindModuleSymbol(kModule, "collage_cudnn_count"))({description->graph, Device()},
                                                                                        count);
    // The first one is what is taken without a schedule.
    for (int engine = 1; engine < std::min(count, kMostEngines); ++engine) {
      schedules.push_back(fmt::format("{}{}", kEngine, engine));
    }
    return schedules;
  }

  std::vector<AttrField> Options() const override {
    return {{"arch", AttrKind::kString, "",
             "the GPUs that plans are for, sm_80, sm_90 and so on, or emulated, for a driver that stands in for a GPU; "
             "empty: the one that is here"},
            {kAccuracyOption, AttrKind::kString, "standard",
             "exact excludes Winograd's algorithm and Fourier transforms; standard allows them"},
            {kPrecision, AttrKind::kString, "f32",
             "tf32: float32 factors of products may be rounded to TF32, for tensor cores; f32: they may not"}};
  }
  std::unique_ptr<const Toolchain> WithOptions(const Attrs& options) const override {
    const auto check = [&](const char* option, const char* one, const char* other) {
      const std::string& value = options.String(option);
      if (value == one || value == other) return value == other;
      throw Error(ErrorCategory::kInput,
                  fmt::format("option '{}' of 'cudnn' is {} or {}, got '{}'", option, one, other, value));
    };
    const std::string& architecture = options.String("arch");
    if (!architecture.empty()) DeviceProperties(architecture);
    Precision precision;
    precision.allows_tf32 = check(kPrecision, "f32", kTf32);
    precision.is_exact = check(kAccuracyOption, "standard", kExact);
    return std::make_unique<CudnnToolchain>(architecture, precision);
  }

 private:
  Result<Description> Describe(const PartitionRequest& request) const {
    return cudnn::Describe(request.function, In(Memory::kHost, request.layouts), precision_);
  }

  /// Words on the options, as part of a version.
  std::string OptionsText() const {
    const std::string told = told_architecture_.empty() ? "" : " for " + told_architecture_;
    return told + (precision_.allows_tf32 ? " tf32" : "");
  }

  std::string Device() const { return told_architecture_.empty() ? "" : DeviceProperties(told_architecture_); }

  std::string told_architecture_;
  Precision precision_;
  std::vector<PatternTableEntry> table_;
};

}  // namespace

std::unique_ptr<Toolchain> MakeToolchain() { return std::make_unique<CudnnToolchain>(); }

}  // namespace collage::cudnn
