// toolchain.cc: the description of BLAS: products of matrices by whichever library here is fastest at each.
#include "collage/target/toolchain.h"

#include <algorithm>
#include <filesystem>
#include <memory>

#include "backends/blas/libraries.h"
#include "backends/blas/query.h"
#include "collage/target/bundled_files.h"
#include "collage/target/micro_kernels.h"
#include "collage/target/toolchain_module.h"
#include "support/dynamic_library.h"
#include "target/read_product.h"

namespace collage::blas {
namespace {

using blas_toolchain::Library;

constexpr const char* kFastest = "fastest";
constexpr const char* kHint = "apt-get install libopenblas0-pthread libblis4-serial, or pip install mkl";

class BlasToolchain : public Toolchain, public HasMicroKernels, public HasBundledFiles {
 public:
  explicit BlasToolchain(std::string library) : library_(std::move(library)) {}

  std::string name() const override { return "blas"; }
  std::string description() const override {
    return "products of matrices by OpenBLAS, BLIS or MKL, whichever is fastest";
  }

  Availability Probe() const override {
    std::string versions;
    for (const Library& library : blas_toolchain::FindLibraries()) {
      if (library_ != kFastest && library.name != library_) continue;
      versions += (versions.empty() ? "" : ", ") + library.version;
    }
    if (versions.empty()) {
      return {false, "", library_ == kFastest ? "no BLAS library is here" : "'" + library_ + "' is not here", kHint};
    }
    if (const auto missing = WhyModuleMissing({"libcollage_rt_blas.so"})) return {false, "", *missing, "build again"};
    return {true, versions, "", ""};
  }

  /// Libraries that are opened by their paths. MKL opens others, which have no list.
  std::vector<BundledFile> BundledFiles() const override {
    std::vector<BundledFile> files;
    for (const Library& library : blas_toolchain::FindLibraries()) {
      if (library.name == "mkl") continue;
      std::error_code ignored;
      const std::filesystem::path path = std::filesystem::canonical(library.path, ignored);
      files.push_back({path, path.filename()});
    }
    return files;
  }

  int priority() const override { return 4; }
  bool is_default() const override { return false; }  // docs/toolchains.md says why
  std::string license() const override { return "BSD-3-Clause; MKL: Intel Simplified Software License"; }
  std::vector<std::string> aliases() const override { return {"openblas", "blis", "mkl"}; }
  std::vector<PatternTableEntry> PatternTable() const override {
    static const std::vector<PatternTableEntry> table = ProductPatterns("blas", nullptr);
    return table;
  }
  std::vector<std::string> Preamble() const override { return {"SimplifyInference", "FoldConstant", "FoldScaleAxis"}; }

  /// cblas_sgemm and cblas_dgemm: row-major, neither transposed.
  std::vector<MicroKernel> MicroKernels() const override {
    return {{"product",
             {kFloat32, kFloat64},
             "i32:101 i32:111 i32:111 i32:m i32:n i32:k element:1 a i32:lda b i32:ldb element:beta c i32:ldc",
             /*takes_transposed=*/false,
             kHint}};
  }

  std::vector<AttrField> Options() const override {
    return {{"library", AttrKind::kString, kFastest,
             "openblas, blis or mkl; fastest: each product by the one that was fastest at it when it was compiled"}};
  }
  std::unique_ptr<const Toolchain> WithOptions(const Attrs& options) const override {
    const std::string& library = options.String("library");
    const auto names = blas_toolchain::LibraryNames();
    if (library != kFastest && std::find(names.begin(), names.end(), library) == names.end()) {
      throw Error(ErrorCategory::kInput, "there is no BLAS library '" + library + "'", "library",
                  "there are: openblas, blis, mkl, fastest");
    }
    return std::make_unique<BlasToolchain>(library);
  }

  Result<CompiledPartition> RelayToRuntime(const PartitionRequest& request) const override {
    Result<ProductDescription> read = ReadProduct(request.function, request.layouts, name());
    if (!read) return read.reason();
    const auto fastest =
        reinterpret_cast<blas_toolchain::FastestFn*>(FindModuleSymbol("libcollage_rt_blas.so", "collage_blas_fastest"));
    const Result<std::string> library = fastest(read->product, library_ == kFastest ? "" : library_);
    if (!library) return library.reason();
    CompiledPartition partition;
    partition.loader = name();
    partition.blob = ToBlob(read->product);
    const auto text = std::as_bytes(std::span(*library));
    partition.blob.insert(partition.blob.end(), text.begin(), text.end());
    partition.constants = std::move(read->constants);
    partition.source = *library + "\n";
    return partition;
  }

 private:
  std::string library_;
};

}  // namespace

std::unique_ptr<Toolchain> MakeToolchain() { return std::make_unique<BlasToolchain>(kFastest); }

}  // namespace collage::blas
