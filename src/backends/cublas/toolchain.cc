// toolchain.cc: the description of cuBLASLt.
#include "collage/target/toolchain.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <memory>

#include "backends/cublas/algorithm.h"
#include "collage/support/error.h"
#include "collage/target/child_process.h"
#include "collage/target/compiles_elsewhere.h"
#include "collage/target/toolchain_module.h"
#include "runtime/known_devices.h"
#include "support/dynamic_library.h"
#include "target/read_product.h"

namespace collage::cublas {
namespace {

constexpr const char* kName = "cublas";
constexpr const char* kModule = "libcollage_rt_cublas.so";
constexpr const char* kHint = "install NVIDIA's driver and cuBLAS of CUDA 12 or 13";
constexpr int kCudaType = 2;  // DLDeviceType
/// The function that the library computes behind a product and its bias.
constexpr const char* kEnd = "nn.relu";
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

Result<void> Check(const MatrixProduct& product) {
  if (product.element_bytes == sizeof(float)) return {};
  return Reason{"multiplies float32 only", kName};
}

class CublasToolchain : public Toolchain, public CompilesElsewhere {
 public:
  std::string name() const override { return kName; }
  std::string description() const override { return "products of matrices on NVIDIA GPUs by cuBLASLt"; }
  Availability Probe() const override {
    static const Availability availability = Ask();
    return availability;
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
  std::vector<PatternTableEntry> PatternTable() const override {
    static const std::vector<PatternTableEntry> table = ProductPatterns(kName, Check, kEnd);
    return table;
  }
  std::vector<std::string> Preamble() const override { return {"SimplifyInference", "FoldConstant", "FoldScaleAxis"}; }

  Result<CompiledPartition> RelayToRuntime(const PartitionRequest& request) const override {
    Result<ProductDescription> read = ReadProduct(request.function, In(Memory::kHost, request.layouts), name(), kEnd);
    if (!read) return read.reason();
    if (const Result<void> checked = Check(read->product); !checked.ok()) return checked.reason();
    Algorithm algorithm{.relu = read->has_end ? 1 : 0};
    if (!request.schedule.empty()) {
      const std::string_view number = std::string_view(request.schedule).substr(std::string_view(kRank).size());
      std::from_chars(number.data(), number.data() + number.size(), algorithm.rank);
    }
    CompiledPartition partition;
    partition.loader = name();
    partition.blob = ToBlob(read->product);
    const auto bytes = std::as_bytes(std::span(&algorithm, 1));
    partition.blob.insert(partition.blob.end(), bytes.begin(), bytes.end());
    partition.constants = std::move(read->constants);
    return partition;
  }

  bool has_schedules() const override { return true; }
  Result<std::vector<std::string>> Schedules(const PartitionRequest& request) const override {
    std::vector<std::string> schedules;
    if (!request.schedule.empty()) return schedules;
    for (int rank = 1; rank < kMostAlgorithms; ++rank) schedules.push_back(fmt::format("{}{}", kRank, rank));
    return schedules;
  }
};

}  // namespace

std::unique_ptr<Toolchain> MakeToolchain() { return std::make_unique<CublasToolchain>(); }

}  // namespace collage::cublas
