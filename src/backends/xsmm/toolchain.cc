// toolchain.cc: the description of libxsmm: products of small matrices by code generated for their sizes.
#include "collage/target/toolchain.h"

#include <fmt/format.h>

#include <memory>

#include "backends/xsmm/query.h"
#include "collage/target/micro_kernels.h"
#include "collage/target/toolchain_module.h"
#include "support/dynamic_library.h"
#include "target/read_product.h"

namespace collage::xsmm {
namespace {

#ifdef COLLAGE_XSMM_VERSION
constexpr const char* kVersion = COLLAGE_XSMM_VERSION;
#else
constexpr const char* kVersion = "";
#endif

/// Columns and depth of one product; rows are computed in blocks. The generated code walks through B as it lies in
/// memory, which pays as long as that fits the first-level cache.
constexpr int64_t kMostColumns = 128;
constexpr int64_t kMostDepth = 128;

Result<void> IsSmall(const MatrixProduct& p) {
  if (p.n <= kMostColumns && p.k <= kMostDepth) return {};
  return Reason{fmt::format("is for matrices of at most {} columns and a depth of {}, got {} and {}", kMostColumns,
                            kMostDepth, p.n, p.k),
                "xsmm"};
}

constexpr const char* kHint = "apt-get install libxsmm-dev, or run ./setup, and build again";

class XsmmToolchain : public Toolchain, public HasMicroKernels {
 public:
  std::string name() const override { return "xsmm"; }
  std::string description() const override { return "products of small matrices by libxsmm's generated code"; }

  Availability Probe() const override {
    if (*kVersion == '\0') return {false, "", "this build was made without libxsmm", kHint};
    if (const auto missing = WhyModuleMissing({"libcollage_rt_xsmm.so"})) return {false, "", *missing, kHint};
    return {true, kVersion, "", ""};
  }

  int priority() const override { return 5; }
  bool is_default() const override { return false; }  // docs/toolchains.md says why
  std::string license() const override { return "BSD-3-Clause"; }
  std::vector<std::string> aliases() const override { return {"libxsmm"}; }
  std::vector<PatternTableEntry> PatternTable() const override {
    static const std::vector<PatternTableEntry> table = ProductPatterns("xsmm", IsSmall);
    return table;
  }
  std::vector<std::string> Preamble() const override { return {"SimplifyInference", "FoldConstant", "FoldScaleAxis"}; }

  /// Kernels of any size: native kernels pack their operands. The library counts columns first, so B is its first
  /// operand.
  std::vector<MicroKernel> MicroKernels() const override {
    return {{"product", {kFloat32, kFloat64}, "b a c", /*takes_transposed=*/true, kHint}};
  }

  Result<CompiledPartition> RelayToRuntime(const PartitionRequest& request) const override {
    Result<ProductDescription> read = ReadProduct(request.function, request.layouts, name());
    if (!read) return read.reason();
    if (const Result<void> small = IsSmall(read->product); !small) return small.reason();
    const auto workspace = reinterpret_cast<xsmm_toolchain::WorkspaceFn*>(
        FindModuleSymbol("libcollage_rt_xsmm.so", "collage_xsmm_workspace"));
    const Result<size_t> bytes = workspace(read->product);
    if (!bytes) return bytes.reason();
    CompiledPartition partition;
    partition.loader = name();
    partition.blob = ToBlob(read->product);
    partition.constants = std::move(read->constants);
    partition.workspace_bytes = *bytes;
    const MatrixProduct& p = read->product;
    partition.source = fmt::format("{} x [{}, {}, {}]\n", p.batch, p.m, p.n, p.k);
    return partition;
  }
};

}  // namespace

std::unique_ptr<Toolchain> MakeToolchain() { return std::make_unique<XsmmToolchain>(); }

}  // namespace collage::xsmm
