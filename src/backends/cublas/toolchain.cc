// toolchain.cc: the description of cuBLASLt.
#include "collage/target/toolchain.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "backends/cublas/describe.h"
#include "backends/cublas/patterns.h"
#include "backends/cublas/product.h"
#include "collage/support/error.h"
#include "collage/target/child_process.h"
#include "collage/target/compiles_elsewhere.h"
#include "collage/target/toolchain_module.h"
#include "runtime/known_devices.h"
#include "support/dynamic_library.h"

namespace collage::cublas {
namespace {

constexpr const char* kName = "cublas";
constexpr const char* kModule = "libcollage_rt_cublas.so";
constexpr const char* kHint = "install NVIDIA's driver and cuBLAS of CUDA 12 or 13";
constexpr int kCudaType = 2;  // DLDeviceType
constexpr const char* kPrecision = "inference_precision";
/// By number: Precision.
constexpr std::array kPrecisions{"f32", "tf32", "bf16", "f16"};
constexpr const char* kRank = "algorithm=";
/// Algorithms of the heuristic that are tried.
constexpr int kMostAlgorithms = 8;

/// Asks driver and library, which a process that forks workers must not have used, in a process of its own.
Availability Ask() {
  if (const auto missing = WhyModuleMissing({kModule, DeviceModule(kCudaType)})) {
    return {false, "", *missing, "build again"};
  }
  const auto answer = [] {
    std::string gpu, version;
    reinterpret_cast<DescribeDeviceFn*>(FindModuleSymbol(DeviceModule(kCudaType), "collage_describe_device"))(gpu);
    reinterpret_cast<DescribeDeviceFn*>(FindModuleSymbol(kModule, "collage_cublas_version"))(version);
    return fmt::format("{} on {}", version, gpu);
  };
  const Result<std::string> version = AnswerInChild(answer, std::chrono::seconds(60));
  if (!version.ok()) return {false, "", version.reason().text, kHint};
  return {true, *version, "", ""};
}

const Availability& ThisMachine() {
  static const Availability availability = Ask();
  return availability;
}

/// The algorithm that a schedule names; the first one without.
int64_t RankOf(std::string_view schedule) {
  int64_t rank = 0;
  if (!schedule.starts_with(kRank)) return rank;
  schedule.remove_prefix(std::string_view(kRank).size());
  std::from_chars(schedule.data(), schedule.data() + schedule.size(), rank);
  return rank;
}

class CublasToolchain : public Toolchain, public CompilesElsewhere {
 public:
  explicit CublasToolchain(Precision precision = Precision::kFloat32)
      : precision_(precision), table_(Patterns(precision)) {}

  std::string name() const override { return kName; }
  std::string description() const override { return "products of matrices on NVIDIA GPUs by cuBLASLt"; }
  Availability Probe() const override {
    Availability here = ThisMachine();
    // Options that change the kernels change the times.
    if (here.available && precision_ != Precision::kFloat32) here.version += std::string(" ") + PrecisionName();
    return here;
  }
  /// It compiles to a description, by which the library chooses an algorithm when it is loaded.
  Availability ProbeCompiler() const override { return {true, "", "", ""}; }
  Availability ProbeRunner() const override { return Probe(); }
  std::optional<std::string> JoinVersions(const std::string&, const std::string& runner) const override {
    return runner;
  }
  int priority() const override { return 7; }
  bool is_default() const override { return false; }
  std::string license() const override { return "cuBLAS: CUDA Toolkit EULA"; }
  int device_type() const override { return kCudaType; }
  std::vector<PatternTableEntry> PatternTable() const override { return table_; }
  std::vector<std::string> Preamble() const override { return {"SimplifyInference", "FoldConstant", "FoldScaleAxis"}; }

  std::vector<BoundaryLayouts> Layouts(const Function& function, const std::vector<bool>& eligible_inputs,
                                       const std::vector<bool>& eligible_outputs) const override {
    const BoundaryLayouts plain = PlainLayouts(eligible_inputs.size(), eligible_outputs.size());
    std::vector<BoundaryLayouts> choices{plain};
    if (precision_ == Precision::kFloat16 || precision_ == Precision::kBFloat16) {
      const DataType dtype = precision_ == Precision::kFloat16 ? kFloat16 : kBFloat16;
      const BoundaryLayouts narrow = Keeping(plain, dtype, function, eligible_inputs, eligible_outputs);
      for (const BoundaryLayouts& choice : {narrow, BoundaryLayouts{narrow.inputs, plain.outputs}}) {
        const bool is_new = std::ranges::find(choices, choice) == choices.end();
        if (is_new && cublas::Describe(function, choice, precision_).ok()) choices.push_back(choice);
      }
    }
    for (BoundaryLayouts& choice : choices) choice = In(Memory::kCuda, std::move(choice));
    return choices;
  }

  std::vector<Hook> Hooks() const override { return {Hook::kRelayToRuntime, Hook::kUpdateConstants}; }
  Result<CompiledPartition> RelayToRuntime(const PartitionRequest& request) const override {
    Result<Description> description = Describe(request);
    if (!description) return description.reason();
    CompiledPartition partition;
    partition.loader = name();
    partition.blob = ToBlob(description->product);
    partition.constants = std::move(description->constants);
    return partition;
  }
  Result<std::vector<Tensor>> UpdateConstants(const PartitionRequest& request,
                                              const CompiledPartition& compiled) const override {
    Result<Description> description = Describe(request);
    if (!description) return description.reason();
    if (ToBlob(description->product) != compiled.blob) {
      return Reason{"the product depends on the values of constants", name()};
    }
    return std::move(description->constants);
  }

  bool has_schedules() const override { return true; }
  Result<std::vector<std::string>> Schedules(const PartitionRequest& request) const override {
    std::vector<std::string> schedules;
    if (!request.schedule.empty()) return schedules;
    for (int rank = 1; rank < kMostAlgorithms; ++rank) schedules.push_back(fmt::format("{}{}", kRank, rank));
    return schedules;
  }

  std::vector<AttrField> Options() const override {
    return {
        {kPrecision, AttrKind::kString, kPrecisions.front(),
         "f32; tf32, bf16, f16: what factors of products of float32 values may be rounded to, for tensor cores, sums "
         "stay float32, and, for the last two, what values between partitions may be kept as"}};
  }
  std::unique_ptr<const Toolchain> WithOptions(const Attrs& options) const override {
    const std::string& told = options.String(kPrecision);
    const auto* found = std::ranges::find(kPrecisions, told);
    if (found == kPrecisions.end()) {
      throw Error(ErrorCategory::kInput,
                  "option 'inference_precision' of 'cublas' is f32, tf32, bf16 or f16, got '" + told + "'");
    }
    return std::make_unique<CublasToolchain>(static_cast<Precision>(found - kPrecisions.begin()));
  }

 private:
  const char* PrecisionName() const { return kPrecisions.at(static_cast<size_t>(precision_)); }

  Result<Description> Describe(const PartitionRequest& request) const {
    Result<Description> description =
        cublas::Describe(request.function, In(Memory::kHost, request.layouts), precision_);
    if (description) description->product.rank = RankOf(request.schedule);
    return description;
  }

  Precision precision_;
  std::vector<PatternTableEntry> table_;
};

}  // namespace

std::unique_ptr<Toolchain> MakeToolchain() { return std::make_unique<CublasToolchain>(); }

}  // namespace collage::cublas
