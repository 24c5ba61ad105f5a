// toolchain.cc: the description of native kernels for NVIDIA GPUs: those of processors, with a warp for a processor.
#include "collage/target/toolchain.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/cuda_driver/emulation.h"
#include "backends/cuda_driver/this_gpu.h"
#include "backends/cuda_driver/toolkit.h"
#include "collage/support/error.h"
#include "collage/target/bundled_files.h"
#include "collage/target/compiles_elsewhere.h"
#include "collage/target/fusion_patterns.h"
#include "support/argument_text.h"

namespace collage::cuda {
namespace {

constexpr const char* kName = "cuda";
constexpr const char* kModule = "libcollage_rt_cuda.so";
constexpr const char* kHint = "install NVIDIA's driver of CUDA 12 or 13";
/// Warps that loops are shared out among: several for each of the schedulers of a large GPU.
constexpr int kWarps = 2048;
constexpr const char* kPrecision = "inference_precision";
constexpr const char* kFullPrecision = "f32";
constexpr std::array kPrecisions{kFullPrecision, "tf32", "bf16", "f16"};

using cuda_driver::kCudaType;
using Gpu = cuda_driver::ThisGpu;

const Result<Gpu>& ThisGpu() {
  static const Result<Gpu> gpu = cuda_driver::AskForGpu(kName, kModule);
  return gpu;
}

class CudaToolchain : public Toolchain, public HasFusionPatterns, public HasBundledFiles, public CompilesElsewhere {
 public:
  explicit CudaToolchain(std::string architecture = "", std::string precision = kFullPrecision)
      : told_architecture_(std::move(architecture)), precision_(std::move(precision)) {}

  std::string name() const override { return kName; }
  std::string description() const override { return "kernels for NVIDIA GPUs generated through MLIR and LLVM"; }
  Availability Probe() const override {
    const Availability compiler = CompilerAvailability();
    if (!compiler.available) return compiler;
    const Result<Gpu>& gpu = ThisGpu();
    if (!gpu.ok()) return {false, "", gpu.reason().text, kHint};
    return {true, VersionOn(compiler.version, RunnerVersion(*gpu)), "", ""};
  }
  Availability ProbeCompiler() const override {
    Availability compiler = CompilerAvailability();
    if (compiler.available && Architecture().empty()) {
      return {false, "", "the architecture of the GPU that it compiles for is not known: there is none here",
              "name it, as in: cuda -arch=sm_90"};
    }
    return compiler;
  }
  Availability ProbeRunner() const override {
    const Result<Gpu>& gpu = ThisGpu();
    if (!gpu.ok()) return {false, "", gpu.reason().text, kHint};
    if (!Runs(gpu->architecture, Architecture())) {
      return {false, "", fmt::format("its kernels are for {}, the GPU here is {}", Architecture(), gpu->description),
              fmt::format("compile for {}", gpu->architecture)};
    }
    return {true, RunnerVersion(*gpu), "", ""};
  }
  std::optional<std::string> JoinVersions(const std::string& compiler, const std::string& runner) const override {
    return VersionOn(compiler, runner);
  }
  int priority() const override { return 8; }
  bool is_default() const override { return false; }
  std::string license() const override { return "Apache-2.0"; }
  std::vector<std::string> aliases() const override { return {"gpu", "nvidia"}; }
  int device_type() const override { return kCudaType; }
  FusionStyle fusion_style() const override { return Native().fusion_style(); }
  int max_depth() const override { return Native().max_depth(); }

  Result<void> SupportsCall(const CallNode& call) const override { return Native().SupportsCall(call); }
  std::vector<std::string> FusionPatterns() const override { return FusionPatternsOf(Native()); }
  bool proposes() const override { return true; }
  std::vector<std::vector<Expr>> Proposals(const Function& function) const override {
    return Native().Proposals(function);
  }
  std::vector<BoundaryLayouts> Layouts(const Function& function, const std::vector<bool>& eligible_inputs,
                                       const std::vector<bool>& eligible_outputs) const override {
    std::vector<BoundaryLayouts> choices;
    for (BoundaryLayouts& layouts : Compiler().Layouts(function, eligible_inputs, eligible_outputs)) {
      choices.push_back(In(Memory::kCuda, std::move(layouts)));
    }
    return choices;
  }

  std::vector<Hook> Hooks() const override { return {Hook::kRelayToTIR, Hook::kTIRToRuntime, Hook::kUpdateConstants}; }
  Result<LoweredPartition> RelayToTIR(const PartitionRequest& request) const override {
    return Compiler().RelayToTIR(ForWarps(request));
  }
  Result<CompiledPartition> TIRToRuntime(const LoweredPartition& lowered) const override {
    return Compiler().TIRToRuntime(lowered);
  }
  bool has_schedules() const override { return Native().has_schedules(); }
  Result<std::vector<std::string>> Schedules(const PartitionRequest& request) const override {
    return Compiler().Schedules(ForWarps(request));
  }
  Result<std::vector<Tensor>> UpdateConstants(const PartitionRequest& request,
                                              const CompiledPartition& compiled) const override {
    Result<LoweredPartition> lowered = RelayToTIR(request);
    if (!lowered) return lowered.reason();
    if (lowered->mlir != compiled.source) return Reason{"the loops depend on the values of constants", name()};
    return std::move(lowered->constants);
  }
  std::vector<Listing> Listings(const PartitionRequest& request, const CompiledPartition& compiled) const override {
    return Compiler().Listings(request, compiled);
  }

  /// Libdevice: the toolkit's licence lets it be passed on, and ptxas not.
  std::vector<BundledFile> BundledFiles() const override {
    const std::string library = cuda_driver::DeviceLibrary();
    std::error_code ignored;
    if (!std::filesystem::exists(library, ignored)) return {};
    return {{library, cuda_driver::kDeviceLibrary}};
  }

  std::vector<AttrField> Options() const override {
    return {
        {"arch", AttrKind::kString, "",
         "the GPUs that machine code is for, such as sm_90 or sm_80,sm_90, or emulated, for a driver that stands in "
         "for a GPU; empty: the one that is here"},
        {kPrecision, AttrKind::kString, kFullPrecision,
         "f32; tf32, bf16, f16: what tensor cores multiply products of float32 values in, sums stay float32, and, "
         "for the last two, what values between partitions may be kept as"}};
  }
  std::unique_ptr<const Toolchain> WithOptions(const Attrs& options) const override {
    const std::string architecture = InOrder(options.String("arch"));
    const std::string precision = options.StringOr(kPrecision, kFullPrecision);
    if (std::ranges::find(kPrecisions, precision) == kPrecisions.end()) {
      throw Error(ErrorCategory::kInput,
                  "option 'inference_precision' of 'cuda' is f32, tf32, bf16 or f16, got '" + precision + "'");
    }
    return std::make_unique<CudaToolchain>(architecture, precision);
  }

 private:
  static const Toolchain& Native() {
    const Toolchain* native = ToolchainRegistry::Global().Native();
    COLLAGE_CHECK(native != nullptr) << "there is no native toolchain";
    return *native;
  }

  /// "for sm_90 on NVIDIA H100 …".
  std::string RunnerVersion(const Gpu& gpu) const {
    return fmt::format("for {} on {}", Architecture(), gpu.description);
  }
  static std::string VersionOn(const std::string& compiler, const std::string& runner) {
    return fmt::format("{} {}", compiler, runner);
  }

  using Generation = std::pair<int, std::string>;  ///< {90, "a"} of "sm_90a"

  /// Architectures with commas between them, the oldest first: `told` in its own order says the same. Throws kInput.
  static std::string InOrder(const std::string& told) {
    if (told.empty() || told == cuda_driver::kEmulatedArchitecture) return told;
    std::set<Generation> generations;
    bool is_right = true;
    for (const std::string& name : SplitCommas(told)) {
      const std::optional<Generation> generation = GenerationOf(name);
      is_right = is_right && generation;
      if (generation) generations.insert(*generation);
    }
    if (!is_right || generations.empty()) {
      throw Error(ErrorCategory::kInput,
                  "option 'arch' of 'cuda' is like sm_90, sm_80,sm_90, or emulated, got '" + told + "'");
    }
    // Code for several is written for all of them, and so not for "sm_90a", which is for no other GPU.
    if (generations.size() > 1) generations.insert({generations.begin()->first, ""});
    std::string text;
    for (const auto& [number, suffix] : generations) text += fmt::format(",sm_{}{}", number, suffix);
    return text.substr(1);
  }

  /// Whether a GPU of architecture `gpu` runs code for `wanted`. Beside machine code there is PTX, for all GPUs that
  /// are later than the oldest.
  static bool Runs(const std::string& gpu, const std::string& wanted) {
    const std::vector<std::string> names = SplitCommas(wanted);
    if (names.empty()) return false;
    if (std::ranges::find(names, gpu) != names.end()) return true;
    const std::optional<Generation> of_gpu = GenerationOf(gpu), of_code = GenerationOf(names.front());
    if (!of_gpu || !of_code) return false;
    // "sm_90a" is code for GPUs of that generation alone.
    return of_code->second.empty() ? of_gpu->first >= of_code->first : of_gpu->first == of_code->first;
  }
  /// Nothing for "emulated".
  static std::optional<Generation> GenerationOf(std::string_view architecture) {
    constexpr std::string_view kPrefix = "sm_";
    if (!architecture.starts_with(kPrefix)) return std::nullopt;
    architecture.remove_prefix(kPrefix.size());
    int number = 0;
    const char* end = architecture.data() + architecture.size();
    const auto [stopped, code] = std::from_chars(architecture.data(), end, number);
    if (code != std::errc()) return std::nullopt;
    return Generation(number, std::string(stopped, end));
  }

  Availability CompilerAvailability() const {
    Availability compiler = Native().Probe();
    // Options that change the code change the times.
    if (compiler.available && precision_ != kFullPrecision) compiler.version += " " + precision_;
    return compiler;
  }

  std::string Architecture() const {
    return told_architecture_.empty() && ThisGpu().ok() ? ThisGpu()->architecture : told_architecture_;
  }

  /// Native kernels for that GPU.
  const Toolchain& Compiler() const {
    std::call_once(compiler_made_, [&] {
      Attrs options;
      for (const AttrField& option : Native().Options()) options.Set(option.name, option.default_value);
      options.Set("mtriple", "nvptx64-nvidia-cuda");
      options.Set("mcpu", Architecture());
      options.Set("accuracy", "exact");
      options.Set(kPrecision, precision_);
      compiler_ = Native().WithOptions(options);
    });
    return *compiler_;
  }

  static PartitionRequest ForWarps(PartitionRequest request) {
    request.layouts = In(Memory::kHost, std::move(request.layouts));
    request.num_threads = kWarps;
    return request;
  }

  std::string told_architecture_;
  std::string precision_;
  mutable std::once_flag compiler_made_;
  mutable std::unique_ptr<const Toolchain> compiler_;
};

}  // namespace

std::unique_ptr<Toolchain> MakeToolchain() { return std::make_unique<CudaToolchain>(); }

}  // namespace collage::cuda
