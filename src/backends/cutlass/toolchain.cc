// toolchain.cc: the description of CUTLASS.
#include "collage/target/toolchain.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda_driver/gpus.h"
#include "backends/cuda_driver/this_gpu.h"
#include "backends/cutlass/compile.h"
#include "backends/cutlass/describe.h"
#include "backends/cutlass/patterns.h"
#include "collage/support/error.h"
#include "collage/target/compiles_elsewhere.h"
#include "target/accuracy.h"

namespace collage::cutlass {
namespace {

using cuda_driver::ArchitectureNumber;
using cuda_driver::kEmulatedArchitecture;
using cuda_driver::ThisGpu;

constexpr const char* kName = "cutlass";
constexpr const char* kModule = "libcollage_rt_cutlass.so";
constexpr const char* kDriverHint = "install NVIDIA's driver of CUDA 12 or 13";
constexpr const char* kPrecision = "inference_precision";
constexpr const char* kTf32 = "tf32";
/// Schedules that are tried beside the one that is taken without a choice.
constexpr size_t kMostSchedules = 5;

const Result<ThisGpu>& Gpu() {
  static const Result<ThisGpu> gpu = cuda_driver::AskForGpu(kName, kModule);
  return gpu;
}

/// nvcc and the headers, looked for once.
struct Found {
  Compiler compiler;
  Availability availability;
};
const Found& FoundCompiler() {
  static const Found found = [] {
    Found one;
    one.availability = FindCompiler(one.compiler);
    return one;
  }();
  return found;
}

/// Whether GPUs of architecture `gpu` run machine code for `wanted`: they do if only the minor number is higher.
bool Runs(const std::string& gpu, const std::string& wanted) {
  const std::optional<int> of_gpu = ArchitectureNumber(gpu), of_code = ArchitectureNumber(wanted);
  return gpu == wanted || (of_gpu && of_code && *of_gpu / 10 == *of_code / 10 && *of_gpu >= *of_code);
}

class CutlassToolchain : public Toolchain, public CompilesElsewhere {
 public:
  explicit CutlassToolchain(std::string architecture = "", Precision precision = {})
      : told_architecture_(std::move(architecture)), precision_(precision), table_(Patterns(precision)) {}

  std::string name() const override { return kName; }
  std::string description() const override { return "products and convolutions on NVIDIA GPUs by CUTLASS's templates"; }
  Availability Probe() const override {
    Availability compiler = CompilerAvailability();
    if (!compiler.available) return compiler;
    if (!Gpu().ok()) return {false, "", Gpu().reason().text, kDriverHint};
    compiler.version = VersionOn(compiler.version, RunnerVersion(*Gpu()));
    return compiler;
  }
  Availability ProbeCompiler() const override {
    Availability compiler = CompilerAvailability();
    if (compiler.available && Architecture().empty()) {
      return {false, "", "the architecture of the GPU that it compiles for is not known: there is none here",
              "name it, as in: cuda -compiler=cutlass -arch=sm_90"};
    }
    return compiler;
  }
  Availability ProbeRunner() const override {
    if (!Gpu().ok()) return {false, "", Gpu().reason().text, kDriverHint};
    if (!Runs(Gpu()->architecture, Architecture())) {
      return {false, "",
              fmt::format("the GPU here, of {}, does not run code for {}", Gpu()->architecture, Architecture()),
              "name the architecture of the GPU: cuda -compiler=cutlass -arch=" + Gpu()->architecture};
    }
    return {true, RunnerVersion(*Gpu()), "", ""};
  }
  std::optional<std::string> JoinVersions(const std::string& compiler, const std::string& runner) const override {
    return VersionOn(compiler, runner);
  }
  int priority() const override { return 10; }
  bool is_default() const override { return false; }
  std::string license() const override { return "CUTLASS: BSD-3-Clause"; }
  int device_type() const override { return cuda_driver::kCudaType; }
  std::vector<PatternTableEntry> PatternTable() const override { return table_; }
  std::vector<std::string> Preamble() const override { return {"SimplifyInference", "FoldConstant", "FoldScaleAxis"}; }

  std::vector<BoundaryLayouts> Layouts(const collage::Function& function, const std::vector<bool>& eligible_inputs,
                                       const std::vector<bool>& eligible_outputs) const override {
    const BoundaryLayouts plain = PlainLayouts(eligible_inputs.size(), eligible_outputs.size());
    BoundaryLayouts natural = NaturalLayouts(function);
    for (size_t i = 0; i < natural.inputs.size(); ++i) {
      if (!eligible_inputs.at(i)) natural.inputs[i] = Layout::kPlain;
    }
    if (!eligible_outputs.at(0)) natural.outputs[0] = Layout::kPlain;
    std::vector<BoundaryLayouts> choices;
    for (const BoundaryLayouts& layouts : {natural, plain}) {
      const BoundaryLayouts on_gpu = In(Memory::kCuda, layouts);
      const bool is_new = std::ranges::find(choices, on_gpu) == choices.end();
      if (is_new && cutlass::Describe(function, layouts, precision_).ok()) choices.push_back(on_gpu);
    }
    return choices;
  }

  std::vector<Hook> Hooks() const override { return {Hook::kRelayToRuntime, Hook::kUpdateConstants}; }

  Result<CompiledPartition> RelayToRuntime(const PartitionRequest& request) const override {
    Result<Description> description = Describe(request);
    if (!description) return description.reason();
    const std::vector<Schedule> schedules = Ranked(*description);
    const auto chosen =
        request.schedule.empty() ? schedules.begin() : std::ranges::find(schedules, request.schedule, &Schedule::text);
    if (chosen == schedules.end()) {
      return Reason{fmt::format("there is no schedule '{}' for this on {}", request.schedule, Architecture()), kName};
    }
    return Make(std::move(*description), *chosen);
  }

  Result<std::vector<Tensor>> UpdateConstants(const PartitionRequest& request,
                                              const CompiledPartition&) const override {
    Result<Description> description = Describe(request);
    if (!description) return description.reason();
    return std::move(description->constants);
  }

  bool has_schedules() const override { return true; }
  Result<std::vector<std::string>> Schedules(const PartitionRequest& request) const override {
    std::vector<std::string> texts;
    if (!request.schedule.empty()) return texts;
    const Result<Description> description = Describe(request);
    if (!description) return description.reason();
    // The first one is what is taken without a choice.
    const std::vector<Schedule> schedules = Ranked(*description);
    for (size_t i = 1; i < std::min(schedules.size(), kMostSchedules + 1); ++i) texts.push_back(schedules[i].text());
    return texts;
  }

  std::vector<Listing> Listings(const PartitionRequest&, const CompiledPartition& compiled) const override {
    if (compiled.source.empty()) return {};
    return {{"cu", compiled.source}};
  }

  std::vector<AttrField> Options() const override {
    return {
        {"arch", AttrKind::kString, "",
         "the GPUs that kernels are for, sm_80, sm_90 and so on, or emulated, for a driver that stands in for a GPU; "
         "empty: the one that is here"},
        {kAccuracyOption, AttrKind::kString, "standard",
         "exact excludes products of float32 as three of TF32, which lose the last two bits of factors; standard "
         "allows them"},
        {kPrecision, AttrKind::kString, "f32",
         "tf32: float32 factors of products are rounded to TF32, for tensor cores; f32: they are not"}};
  }
  std::unique_ptr<const Toolchain> WithOptions(const Attrs& options) const override {
    const auto check = [&](const char* option, const char* one, const char* other) {
      const std::string& value = options.String(option);
      if (value == one || value == other) return value == other;
      throw Error(ErrorCategory::kInput,
                  fmt::format("option '{}' of 'cutlass' is {} or {}, got '{}'", option, one, other, value));
    };
    constexpr int kOldest = 80;
    const std::string& architecture = options.String("arch");
    const std::optional<int> number =
        ArchitectureNumber(architecture.substr(0, architecture.find_last_of("0123456789") + 1));
    if (!architecture.empty() && architecture != kEmulatedArchitecture && (!number || *number < kOldest)) {
      throw Error(ErrorCategory::kInput,
                  "option 'arch' of 'cutlass' is sm_80 or later, or emulated, got '" + architecture + "'");
    }
    Precision precision;
    precision.allows_tf32 = check(kPrecision, "f32", kTf32);
    precision.is_exact = check(kAccuracyOption, "standard", kExact);
    return std::make_unique<CutlassToolchain>(architecture, precision);
  }

 private:
  Result<Description> Describe(const PartitionRequest& request) const {
    return cutlass::Describe(request.function, In(Memory::kHost, request.layouts), precision_);
  }

  std::vector<Schedule> Ranked(const Description& description) const {
    return RankSchedules(description.instance.element, description.multipliers, description.sizes, Architecture());
  }

  /// Code for what is emulated is the instance itself, as JSON: the stand-in for the driver reads it.
  Result<CompiledPartition> Make(Description description, const Schedule& schedule) const {
    Instance& instance = description.instance;
    Apply(schedule, instance);
    CompiledPartition partition;
    partition.loader = kName;
    CutlassKernel& kernel = description.kernel;
    kernel.architecture = Architecture();
    if (kernel.architecture == kEmulatedArchitecture) {
      const std::string text = fmt::format("{}{}", kEmulatedText, ToJsonText(instance));
      const auto* const bytes = reinterpret_cast<const std::byte*>(text.c_str());
      kernel.images.push_back({kernel.architecture, {bytes, bytes + text.size() + 1}});
    } else {
      if (kernel.architecture.empty()) return Gpu().reason();
      const Found& found = FoundCompiler();
      if (!found.availability.available) return Reason{found.availability.reason, kName};
      Compiled compiled = Compile(found.compiler, instance, kernel.architecture);
      kernel.made_by = found.compiler.version;
      kernel.images.push_back({kernel.architecture, std::move(compiled.code)});
      partition.source = fmt::format("{}\n/* {} */\n", DeviceText(instance), compiled.notes);
    }
    partition.workspace_bytes = PlaceMoved(kernel);
    partition.workspace_memory = Memory::kCuda;
    partition.blob = ToBlob(kernel);
    partition.constants = std::move(description.constants);
    return partition;
  }

  /// The compiler and how it compiles: options that change the code change the times.
  Availability CompilerAvailability() const {
    Availability availability{true, "instances", "", ""};
    if (Architecture() != kEmulatedArchitecture) availability = FoundCompiler().availability;
    if (!availability.available) return availability;
    if (precision_.allows_tf32) availability.version += " tf32";
    if (precision_.is_exact) availability.version += " exact";
    return availability;
  }

  std::string RunnerVersion(const ThisGpu& gpu) const {
    return fmt::format("for {} on {}", Architecture(), gpu.description);
  }
  static std::string VersionOn(const std::string& compiler, const std::string& runner) {
    return fmt::format("{} {}", compiler, runner);
  }

  std::string Architecture() const {
    return told_architecture_.empty() && Gpu().ok() ? Gpu()->architecture : told_architecture_;
  }

  std::string told_architecture_;
  Precision precision_;
  std::vector<PatternTableEntry> table_;
};

}  // namespace

std::unique_ptr<Toolchain> MakeToolchain() { return std::make_unique<CutlassToolchain>(); }

}  // namespace collage::cutlass
