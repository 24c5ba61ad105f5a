// toolchain.cc: the description of Triton.
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
#include "backends/triton/compile.h"
#include "backends/triton/describe.h"
#include "backends/triton/patterns.h"
#include "collage/support/error.h"
#include "collage/target/compiles_elsewhere.h"
#include "target/accuracy.h"

namespace collage::triton {
namespace {

using cuda_driver::ArchitectureNumber;
using cuda_driver::kEmulatedArchitecture;
using cuda_driver::ThisGpu;

constexpr const char* kName = "triton";
constexpr const char* kModule = "libcollage_rt_triton.so";
constexpr const char* kDriverHint = "install NVIDIA's driver of CUDA 12 or 13";
constexpr const char* kPrecision = "inference_precision";
constexpr const char* kTf32 = "tf32";
constexpr int kOldest = 80;
/// Schedules that are tried beside the one that is taken without a choice.
constexpr size_t kMostSchedules = 5;

const Result<ThisGpu>& Gpu() {
  static const Result<ThisGpu> gpu = cuda_driver::AskForGpu(kName, kModule);
  return gpu;
}

/// Triton, looked for once.
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

/// Whether GPUs of architecture `gpu` run code for `wanted`. From compute capability 9.0 on, Triton's is for one
/// architecture only; for older ones there is PTX, too.
bool Runs(const std::string& gpu, const std::string& wanted) {
  constexpr int kFirstAlone = 90;
  const std::optional<int> of_gpu = ArchitectureNumber(gpu), of_code = ArchitectureNumber(wanted);
  return gpu == wanted || (of_gpu && of_code && *of_code < kFirstAlone && *of_gpu >= *of_code);
}

class TritonToolchain : public Toolchain, public CompilesElsewhere {
 public:
  explicit TritonToolchain(std::string architecture = "", Precision precision = {})
      : told_architecture_(std::move(architecture)), precision_(precision), table_(Patterns(precision)) {}

  std::string name() const override { return kName; }
  std::string description() const override {
    return "products, attention, normalisations and chains of element-wise operators on NVIDIA GPUs by Triton";
  }
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
              "name it, as in: cuda -compiler=triton -arch=sm_90"};
    }
    return compiler;
  }
  Availability ProbeRunner() const override {
    if (!Gpu().ok()) return {false, "", Gpu().reason().text, kDriverHint};
    if (!Runs(Gpu()->architecture, Architecture())) {
      return {false, "",
              fmt::format("the GPU here, of {}, does not run code for {}", Gpu()->architecture, Architecture()),
              "name the architecture of the GPU: cuda -compiler=triton -arch=" + Gpu()->architecture};
    }
    return {true, RunnerVersion(*Gpu()), "", ""};
  }
  std::optional<std::string> JoinVersions(const std::string& compiler, const std::string& runner) const override {
    return VersionOn(compiler, runner);
  }
  int priority() const override { return 10; }
  bool is_default() const override { return false; }
  std::string license() const override { return "Triton: MIT"; }
  int device_type() const override { return cuda_driver::kCudaType; }
  std::vector<PatternTableEntry> PatternTable() const override { return table_; }
  std::vector<std::string> Preamble() const override { return {"SimplifyInference", "FoldConstant"}; }

  std::vector<Hook> Hooks() const override { return {Hook::kRelayToRuntime, Hook::kUpdateConstants}; }

  Result<CompiledPartition> RelayToRuntime(const PartitionRequest& request) const override {
    Result<Description> description = Describe(request);
    if (!description) return description.reason();
    const Result<Schedule> schedule = ScheduleFor(*description, request.schedule);
    if (!schedule) return schedule.reason();
    return Make(std::move(*description), *schedule);
  }

  /// Numbers in the text of the kernel are of scalars, which agree, and of shapes.
  Result<std::vector<Tensor>> UpdateConstants(const PartitionRequest& request,
                                              const CompiledPartition& compiled) const override {
    Result<Description> description = Describe(request);
    if (!description) return description.reason();
    const Result<Schedule> schedule = ScheduleFor(*description, request.schedule);
    if (!schedule) return schedule.reason();
    if (!compiled.source.starts_with(SourceOf(description->instance, *schedule))) {
      return Reason{"the kernel depends on the values of constants", kName};
    }
    return std::move(description->constants);
  }

  bool has_schedules() const override { return true; }
  Result<std::vector<std::string>> Schedules(const PartitionRequest& request) const override {
    std::vector<std::string> texts;
    if (!request.schedule.empty()) return texts;
    const Result<Description> description = Describe(request);
    if (!description) return description.reason();
    // The first one is what is taken without a choice.
    const std::vector<Schedule> schedules = RankSchedules(*description, Architecture());
    for (size_t i = 1; i < std::min(schedules.size(), kMostSchedules + 1); ++i) texts.push_back(schedules[i].text());
    return texts;
  }

  std::vector<Listing> Listings(const PartitionRequest&, const CompiledPartition& compiled) const override {
    if (compiled.source.empty()) return {};
    return {{"py", compiled.source}};
  }

  std::vector<AttrField> Options() const override {
    return {
        {"arch", AttrKind::kString, "",
         "the GPUs that kernels are for, sm_80, sm_90 and so on, or emulated, for a driver that stands in for a GPU; "
         "empty: the one that is here"},
        {kAccuracyOption, AttrKind::kString, "standard",
         "exact excludes products of float32 as three of TF32, which lose the last two bits of factors; standard "
         "allows them where they are measured to be faster"},
        {kPrecision, AttrKind::kString, "f32",
         "tf32: float32 factors of products are rounded to TF32, for tensor cores; f32: they are not"}};
  }
  std::unique_ptr<const Toolchain> WithOptions(const Attrs& options) const override {
    const auto check = [&](const char* option, const char* one, const char* other) {
      const std::string& value = options.String(option);
      if (value == one || value == other) return value == other;
      throw Error(ErrorCategory::kInput,
                  fmt::format("option '{}' of 'triton' is {} or {}, got '{}'", option, one, other, value));
    };
    const std::string& architecture = options.String("arch");
    const std::optional<int> number = ArchitectureNumber(architecture);
    if (!architecture.empty() && architecture != kEmulatedArchitecture && (!number || *number < kOldest)) {
      throw Error(ErrorCategory::kInput,
                  "option 'arch' of 'triton' is sm_80 or later, or emulated, got '" + architecture + "'");
    }
    Precision precision;
    precision.allows_tf32 = check(kPrecision, "f32", kTf32);
    precision.is_exact = check(kAccuracyOption, "standard", kExact);
    return std::make_unique<TritonToolchain>(architecture, precision);
  }

 private:
  Result<Description> Describe(const PartitionRequest& request) const {
    return triton::Describe(request.function, In(Memory::kHost, request.layouts), precision_);
  }

  /// The one that `text` names; empty: the first one.
  Result<Schedule> ScheduleFor(const Description& description, const std::string& text) const {
    const std::vector<Schedule> schedules = RankSchedules(description, Architecture());
    const auto chosen = text.empty() ? schedules.begin() : std::ranges::find(schedules, text, &Schedule::text);
    if (chosen != schedules.end()) return *chosen;
    return Reason{fmt::format("there is no schedule '{}' for this on {}", text, Architecture()), kName};
  }

  static std::string SourceOf(const Instance& instance, const Schedule& schedule) {
    return fmt::format("{}\n# generated.py\n{}", ProgramText(instance.program), GeneratedText(instance, schedule));
  }

  Result<CompiledPartition> Make(Description description, const Schedule& schedule) const {
    const Instance& instance = description.instance;
    const std::string architecture = Architecture();
    if (architecture.empty()) return Gpu().reason();
    const Found& found = FoundCompiler();
    if (!found.availability.available) return Reason{found.availability.reason, kName};
    Compiled compiled = Compile(found.compiler, instance, schedule, architecture);
    const int64_t most = cuda_driver::GpuLike(architecture).shared_bytes;
    if (compiled.shared_bytes > most) {
      return Reason{fmt::format("schedule {} needs {} bytes of shared memory, {} has {}", schedule.text(),
                                compiled.shared_bytes, architecture, most),
                    kName};
    }
    TritonKernel kernel{
        architecture,          found.compiler.version,    {}, compiled.num_parameters, {}, compiled.warps,
        compiled.shared_bytes, std::move(compiled.images)};
    for (const Parameter& parameter : instance.parameters) kernel.reads.push_back(parameter.read);
    const auto grid = GridOf(instance, schedule);
    kernel.grid.assign(grid.begin(), grid.end());
    CompiledPartition partition;
    partition.loader = kName;
    partition.blob = ToBlob(kernel);
    partition.constants = std::move(description.constants);
    partition.source = SourceOf(instance, schedule);
    for (size_t at = 0; at < compiled.notes.size();) {
      const size_t end = std::min(compiled.notes.find('\n', at), compiled.notes.size());
      partition.source += fmt::format("\n# {}", compiled.notes.substr(at, end - at));
      at = end + 1;
    }
    return partition;
  }

  /// The compiler and how it compiles: options that change the code change the times.
  Availability CompilerAvailability() const {
    Availability availability = FoundCompiler().availability;
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

std::unique_ptr<Toolchain> MakeToolchain() { return std::make_unique<TritonToolchain>(); }

}  // namespace collage::triton
