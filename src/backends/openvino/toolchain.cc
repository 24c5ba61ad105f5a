// toolchain.cc: OpenVINO's description: what may be offloaded, in which layouts, and where its compiler is.
#include "collage/target/toolchain.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>

#include "backends/openvino/support.h"
#include "collage/support/error.h"
#include "collage/target/bundled_files.h"
#include "collage/target/symbolic_sizes.h"
#include "collage/target/toolchain_module.h"
#include "support/dynamic_library.h"

namespace collage::openvino {
namespace {

#ifdef COLLAGE_OPENVINO_LIBRARY
constexpr const char* kLibrary = COLLAGE_OPENVINO_LIBRARY;
constexpr const char* kVersion = COLLAGE_OPENVINO_VERSION;
#else
constexpr const char* kLibrary = "";
constexpr const char* kVersion = "";
#endif

/// The compiler module's entry: a partition, and the precision that it is computed in.
using CompileFn = void(const PartitionRequest& request, const std::string& precision,
                       Result<CompiledPartition>& result);

constexpr std::array kPrecisions{"f32", "bf16", "f16"};
constexpr const char* kDefaultPrecision = "f32";

class OpenVinoToolchain : public Toolchain, public HasBundledFiles, public HasSymbolicSizes {
 public:
  explicit OpenVinoToolchain(std::string precision = kDefaultPrecision) : precision_(std::move(precision)) {}

  std::string name() const override { return "openvino"; }
  std::string description() const override { return "OpenVINO's CPU plugin: sub-graphs of any shape, compiled whole"; }

  Availability Probe() const override {
    const std::string hint =
        "run ./setup, which installs the openvino wheel, and build again; for an installed wheel of Collage: "
        "pip install openvino==" +
        std::string(kVersion);
    if (*kLibrary == '\0') return {false, "", "this build was made without OpenVINO", hint};
    if (const auto missing = WhyModuleMissing({"libcollage_openvino_compiler.so", "libcollage_rt_openvino.so"})) {
      return {false, "", *missing, hint};
    }
    if (const auto missing = WhyLibraryMissing(kLibrary)) return {false, "", *missing, hint};
    return {true, precision_ == kDefaultPrecision ? kVersion : std::string(kVersion) + " " + precision_, "", ""};
  }

  /// The library opens its plug-in for the processor, and the reader of its models, beside itself.
  std::vector<BundledFile> BundledFiles() const override {
    std::vector<BundledFile> files;
    const auto library = FindInPackages(kLibrary);
    if (!library) return files;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(library->parent_path(), ignored)) {
      const std::string name = entry.path().filename().string();
      const auto is_of = [&](const char* part) { return name.starts_with(std::string("libopenvino_") + part); };
      if (is_of("intel_cpu_plugin.so") || is_of("ir_frontend.so")) files.push_back({entry.path().string(), name});
    }
    return files;
  }

  int priority() const override { return 2; }
  std::string license() const override { return "Apache-2.0"; }
  std::vector<std::string> aliases() const override { return {"ov", "intel"}; }
  Result<void> SupportsCall(const CallNode& call) const override { return Supports(call); }
  Result<void> SupportsSymbolicSizes(const CallNode& call) const override { return SupportsSymbolic(call); }
  FusionStyle fusion_style() const override { return FusionStyle::kArbitrary; }
  int max_depth() const override { return 4; }
  bool wants_maximal() const override { return true; }

  std::vector<BoundaryLayouts> Layouts(const Function&, const std::vector<bool>& eligible_inputs,
                                       const std::vector<bool>& eligible_outputs) const override {
    const BoundaryLayouts plain = PlainLayouts(eligible_inputs.size(), eligible_outputs.size());
    const BoundaryLayouts channels_last = ChannelsLastLayouts(eligible_inputs, eligible_outputs);
    if (plain == channels_last) return {plain};
    return {channels_last, plain};
  }

  Result<CompiledPartition> RelayToRuntime(const PartitionRequest& request) const override {
    Result<CompiledPartition> result = Reason{"the compiler module gave no answer", name()};
    void* entry = OpenCompilerModule(name(), "collage_compile_openvino_partition");
    reinterpret_cast<CompileFn*>(entry)(request, precision_, result);
    return result;
  }

  std::vector<AttrField> Options() const override {
    return {{"inference_precision", AttrKind::kString, kDefaultPrecision,
             "f32; bf16 or f16: what float32 models are computed in where the processor can, with that much error"}};
  }
  std::unique_ptr<const Toolchain> WithOptions(const Attrs& options) const override {
    const std::string& precision = options.String("inference_precision");
    if (std::ranges::find(kPrecisions, precision) == kPrecisions.end()) {
      throw Error(ErrorCategory::kInput,
                  "option 'inference_precision' of 'openvino' is f32, bf16 or f16, got '" + precision + "'");
    }
    return std::make_unique<OpenVinoToolchain>(precision);
  }

 private:
  std::string precision_;
};

}  // namespace

std::unique_ptr<Toolchain> MakeToolchain() { return std::make_unique<OpenVinoToolchain>(); }

}  // namespace collage::openvino
