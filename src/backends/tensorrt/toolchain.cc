// toolchain.cc: the description of TensorRT.
#include "collage/target/toolchain.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "backends/cuda_driver/this_gpu.h"
#include "backends/tensorrt/engine.h"
#include "backends/tensorrt/support.h"
#include "collage/frontend/onnx_export.h"
#include "collage/ir/module.h"
#include "collage/ir/type.h"
#include "collage/support/error.h"
#include "collage/target/child_process.h"
#include "collage/target/compiles_elsewhere.h"
#include "collage/target/toolchain_module.h"
#include "collage/transform/pass_context.h"
#include "support/dynamic_library.h"
#include "support/file_cache.h"
#include "support/hash.h"
#include "target/accuracy.h"
#include "transform/passes.h"

namespace collage::tensorrt {
namespace {

constexpr const char* kName = "tensorrt";
constexpr const char* kModule = "libcollage_rt_tensorrt.so";
constexpr const char* kWheelHint =
    "pip install tensorrt, or tensorrt-rtx-cu13-libs and tensorrt-rtx-cu13-bindings, for the Python that "
    "$COLLAGE_PYTHON names";
constexpr const char* kDriverHint = "install NVIDIA's driver of CUDA 12 or 13";
constexpr const char* kPrecision = "inference_precision";
constexpr const char* kFullPrecision = "f32";
constexpr const char* kTf32 = "tf32";
constexpr std::array kPrecisions{kFullPrecision, kTf32, "bf16", "f16"};
constexpr const char* kRtx = "tensorrt_rtx";
constexpr std::array kModules{"", "tensorrt", kRtx};
constexpr const char* kEmulated = "emulated";
constexpr const char* kLevel = "level=";
constexpr std::chrono::seconds kPatience{120};

using cuda_driver::kCudaType;
using Gpu = cuda_driver::ThisGpu;

const Result<Gpu>& ThisGpu() {
  static const Result<Gpu> gpu = cuda_driver::AskForGpu(kName, kModule);
  return gpu;
}

/// The library that Python has of `module`, or of the first one. Python may hang, or crash, while it imports the
/// library.
const Result<Library>& LibraryHere(const std::string& module) {
  static std::mutex mutex;
  static auto& known = *new std::map<std::string, Result<Library>>;
  const std::lock_guard lock(mutex);
  const auto found = known.find(module);
  if (found != known.end()) return found->second;
  const auto ask = [&]() -> Result<Library> {
    if (const auto missing = WhyModuleMissing({kModule})) return Reason{*missing, kName};
    const auto answer = [&] {
      std::string text;
      reinterpret_cast<LookFn*>(FindModuleSymbol(kModule, "collage_tensorrt_look"))(module, text);
      return text;
    };
    const Result<std::string> text = AnswerInChild(answer, kPatience);
    return text ? LibraryFrom(*text) : text.reason();
  };
  return known.emplace(module, ask()).first->second;
}

std::vector<Port> PortsOf(const char* name, const Type& type) {
  std::vector<Port> ports;
  for (const Type& part : FlattenTensorTypes(type)) {
    const TensorTypeNode& tensor = *AsTensorType(part);
    ports.push_back({fmt::format("{}_{}", name, ports.size()), tensor.dtype().ToString(), tensor.static_shape()});
  }
  return ports;
}

std::vector<std::string> NamesOf(const std::vector<Port>& ports) {
  std::vector<std::string> names;
  for (const Port& port : ports) names.push_back(port.name);
  return names;
}

/// The level of effort that a schedule names; -1 without one.
int LevelOf(std::string_view schedule) {
  int level = -1;
  if (!schedule.starts_with(kLevel)) return level;
  schedule.remove_prefix(std::string_view(kLevel).size());
  std::from_chars(schedule.data(), schedule.data() + schedule.size(), level);
  return level;
}

/// Whether `call` is a convolution of more than one element.
bool IsWindowOfProducts(const CallNode& call) {
  if (call.op() == nullptr || !call.op()->name.starts_with("nn.") ||
      call.op()->name.find("conv") == std::string::npos) {
    return false;
  }
  const TensorTypeNode* weights = AsTensorType(call.args().at(1)->checked_type());
  if (weights == nullptr || !weights->is_static() || weights->rank() < 3) return true;
  const Shape shape = weights->static_shape();
  return NumElements(shape) > shape[0] * shape[1];
}

/// The options of a target.
struct Told {
  std::string architecture;  ///< empty: that of the GPU which is here
  std::string precision = kFullPrecision;
  std::string module;
  bool is_exact = false;
};

class TensorRtToolchain : public Toolchain, public CompilesElsewhere {
 public:
  explicit TensorRtToolchain(Told told = {}) : told_(std::move(told)) {}

  std::string name() const override { return kName; }
  std::string description() const override { return "sub-graphs of any shape on NVIDIA GPUs by TensorRT, as engines"; }

  Availability Probe() const override {
    const Availability compiler = ProbeLibrary();
    if (!compiler.available) return compiler;
    const Result<Gpu>& gpu = ThisGpu();
    if (!gpu.ok()) return {false, "", gpu.reason().text, kDriverHint};
    return {true, VersionOn(compiler.version, RunnerVersion(*gpu)), "", ""};
  }
  Availability ProbeCompiler() const override {
    Availability compiler = ProbeLibrary();
    if (!compiler.available || ThisGpu().ok()) return compiler;
    const std::vector<std::string>& known = LibraryHere(told_.module)->architectures;
    if (std::ranges::find(known, told_.architecture) != known.end()) return compiler;
    if (known.empty())
      return {false, "", fmt::format("{} builds engines on a GPU only", compiler.version), kDriverHint};
    return {false, "",
            fmt::format("{} builds engines for {}, {}", compiler.version, fmt::join(known, ", "),
                        told_.architecture.empty() ? "and none is named" : "not for " + told_.architecture),
            "name one of them, as in: cuda -compiler=tensorrt -arch=" + known.back()};
  }
  Availability ProbeRunner() const override {
    const Availability library = ProbeLibrary();
    if (!library.available) return library;
    const Result<Gpu>& gpu = ThisGpu();
    if (!gpu.ok()) return {false, "", gpu.reason().text, kDriverHint};
    if (!told_.architecture.empty() && told_.architecture != gpu->architecture) {
      return {false, "",
              fmt::format("its kernels are for {}, the GPU here is {}", told_.architecture, gpu->description),
              fmt::format("compile for {}", gpu->architecture)};
    }
    return {true, fmt::format("{} {}", library.version, RunnerVersion(*gpu)), "", ""};
  }
  /// An engine is read by the version that built it.
  std::optional<std::string> JoinVersions(const std::string& compiler, const std::string& runner) const override {
    if (!runner.starts_with(compiler + " ")) return std::nullopt;
    return runner;
  }

  int priority() const override { return 10; }
  bool is_default() const override { return false; }
  std::string license() const override { return "TensorRT: NVIDIA TensorRT SLA"; }
  std::vector<std::string> aliases() const override { return {"trt"}; }
  int device_type() const override { return kCudaType; }
  Result<void> SupportsCall(const CallNode& call) const override {
    if (told_.is_exact && IsWindowOfProducts(call)) {
      return Reason{"may be computed by Winograd's algorithm, which accuracy 'exact' excludes", kName};
    }
    return Supports(call);
  }
  FusionStyle fusion_style() const override { return FusionStyle::kArbitrary; }
  int max_depth() const override { return 4; }
  bool wants_maximal() const override { return true; }
  std::vector<std::string> Preamble() const override { return {"SimplifyInference", "FoldConstant", "FoldScaleAxis"}; }

  Result<CompiledPartition> RelayToRuntime(const PartitionRequest& request) const override {
    const Result<Library>& library = LibraryHere(told_.module);
    if (!library.ok()) return library.reason();
    Engine engine{library->module, library->version, Architecture(), {}, {}, ""};
    std::vector<Type> params;
    for (const Var& param : request.function->params()) params.push_back(param->checked_type());
    engine.inputs = PortsOf("input", TupleType(params));
    engine.outputs = PortsOf("output", request.function->body()->checked_type());
    const std::string model = ExportOnnx(
        Narrowed(request.function), {.input_names = NamesOf(engine.inputs), .output_names = NamesOf(engine.outputs)});
    Result<std::string> bytes = Reason{"no engine was built", kName};
    const auto build = reinterpret_cast<BuildFn*>(FindModuleSymbol(kModule, "collage_tensorrt_build"));
    build(model, Wanted(*library, request.schedule), bytes);
    if (!bytes) return bytes.reason();
    engine.bytes = std::move(*bytes);
    CompiledPartition partition;
    partition.loader = kName;
    partition.blob = ToBlob(engine);
    return partition;
  }

  /// TensorRT-RTX times no kernels: its levels are alike.
  bool has_schedules() const override { return true; }
  Result<std::vector<std::string>> Schedules(const PartitionRequest& request) const override {
    const Result<Library>& library = LibraryHere(told_.module);
    if (!library.ok()) return library.reason();
    if (!request.schedule.empty() || library->module == kRtx) return std::vector<std::string>();
    return std::vector<std::string>{fmt::format("{}4", kLevel), fmt::format("{}5", kLevel)};
  }

  std::vector<AttrField> Options() const override {
    return {
        {"arch", AttrKind::kString, "",
         "the GPUs that engines are for, sm_89, sm_120 and so on, or emulated, for a driver that stands in for a "
         "GPU; empty: the one that is here. TensorRT-RTX builds for GPUs that are not here"},
        {kAccuracyOption, AttrKind::kString, "standard",
         "exact excludes convolutions of more than one element, for which the library may take Winograd's algorithm; "
         "standard allows them"},
        {kPrecision, AttrKind::kString, kFullPrecision,
         "f32; tf32: float32 factors of products may be rounded to TF32; bf16, f16: products are computed of such "
         "values, and what follows them"},
        {"module", AttrKind::kString, "",
         "tensorrt or tensorrt_rtx, the Python module to use; empty: the first of them that is here"}};
  }
  std::unique_ptr<const Toolchain> WithOptions(const Attrs& options) const override {
    Told told{options.String("arch"), options.StringOr(kPrecision, kFullPrecision), options.StringOr("module", "")};
    const auto refuse = [](const char* option, const char* choices, const std::string& value) {
      throw Error(ErrorCategory::kInput,
                  fmt::format("option '{}' of 'tensorrt' is {}, got '{}'", option, choices, value));
    };
    const bool is_gpu = told.architecture.empty() || told.architecture == kEmulated;
    if (!is_gpu && !told.architecture.starts_with("sm_")) refuse("arch", "like sm_89, or emulated", told.architecture);
    if (std::ranges::find(kPrecisions, told.precision) == kPrecisions.end()) {
      refuse(kPrecision, "f32, tf32, bf16 or f16", told.precision);
    }
    if (std::ranges::find(kModules, told.module) == kModules.end()) {
      refuse("module", "tensorrt or tensorrt_rtx", told.module);
    }
    const std::string accuracy = options.StringOr(kAccuracyOption, "standard");
    if (accuracy != "standard" && accuracy != kExact) refuse(kAccuracyOption, "standard or exact", accuracy);
    told.is_exact = accuracy == kExact;
    return std::make_unique<TensorRtToolchain>(std::move(told));
  }

 private:
  /// `version` is the library's, with what the target says of how it computes.
  Availability ProbeLibrary() const {
    const Result<Library>& library = LibraryHere(told_.module);
    if (!library.ok()) return {false, "", library.reason().text, kWheelHint};
    return {true, library->version + (told_.precision == kFullPrecision ? "" : " " + told_.precision), "", ""};
  }

  std::string Architecture() const {
    return told_.architecture.empty() && ThisGpu().ok() ? ThisGpu()->architecture : told_.architecture;
  }
  /// "for sm_90 on NVIDIA H100 …".
  std::string RunnerVersion(const Gpu& gpu) const {
    return fmt::format("for {} on {}", Architecture(), gpu.description);
  }
  static std::string VersionOn(const std::string& compiler, const std::string& runner) {
    return fmt::format("{} {}", compiler, runner);
  }

  BuildRequest Wanted(const Library& library, const std::string& schedule) const {
    BuildRequest wanted{.module = library.module, .architecture = told_.architecture};
    wanted.allows_tf32 = told_.precision == kTf32;
    wanted.level = LevelOf(schedule);
    if (!ThisGpu().ok()) return wanted;
    wanted.here = ThisGpu()->architecture;
    const std::string key = HexDigest(library.version + ThisGpu()->description);
    wanted.timings = (UserCacheFolder() / "tensorrt" / key).string();
    return wanted;
  }

  /// Engines compute in the types of their model.
  Function Narrowed(const Function& function) const {
    const bool is_half = told_.precision == "f16";
    if (!is_half && told_.precision != "bf16") return function;
    PassContext context;
    context.SetConfig("relay.ToMixedPrecision.dtype", AttrValue(is_half ? "float16" : "bfloat16"));
    context.SetConfig("relay.ToMixedPrecision.keep_orig_output_dtype", AttrValue(true));
    return ToMixedPrecision(IRModule::FromFunction(function), context).main();
  }

  Told told_;
};

}  // namespace

std::unique_ptr<Toolchain> MakeToolchain() { return std::make_unique<TensorRtToolchain>(); }

}  // namespace collage::tensorrt
