// loader.cc: products as kernels. The library counts rows within columns: for it, a row-major matrix is its transpose,
// and A x B is computed as the transpose of B times that of A.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <type_traits>
#include <vector>

#include "backends/cublas/algorithm.h"
#include "backends/cublas/loader/library.h"
#include "backends/cuda_driver/device.h"
#include "collage/runtime/kernel.h"

namespace collage::cublas {
namespace {

// Memory that algorithms may use meanwhile. All kernels share it: their work is on one stream.
constexpr size_t kWorkspaceBytes = size_t{32} << 20;

template <typename Object>
using Owned = std::unique_ptr<std::remove_pointer_t<Object>, Status (*)(Object)>;

const DeviceBuffer& Workspace() {
  // Never destroyed: the driver may end before.
  static const DeviceBuffer& workspace = *new DeviceBuffer(Memory::kCuda, kWorkspaceBytes);
  return workspace;
}

Handle TheHandle() {
  static const Handle handle = [] {
    cuda_driver::GetCudaDevice().Enter();
    Handle created = nullptr;
    GetLibrary().Check(GetLibrary().Create(&created), "create a handle");
    return created;
  }();
  return handle;
}

class CublasKernel : public Kernel {
 public:
  CublasKernel(const MatrixProduct& product, const Algorithm& algorithm, std::span<const Tensor> constants)
      : device_(cuda_driver::GetCudaDevice()), library_(GetLibrary()), product_(product) {
    for (const Tensor& constant : constants) {
      constants_.emplace_back(Memory::kCuda, constant.size_bytes());
      device_.CopyIn(constants_.back().address(), constant.raw(), constant.size_bytes());
    }
    device_.Enter();
    Describe(algorithm);
    Choose(algorithm);
  }

  void Bind(std::span<void* const> inputs, std::span<void* const> outputs, void*) override {
    const MatrixProduct::Operand last = std::max(product_.a, product_.b);
    if (last >= static_cast<int64_t>(inputs.size()) || outputs.empty()) {
      throw Error(ErrorCategory::kCorrupt, "a kernel's matrix product reads inputs that there are not");
    }
    const auto address = [&](MatrixProduct::Operand operand) -> const void* {
      return operand >= 0 ? inputs[static_cast<size_t>(operand)] : ConstantAt(operand);
    };
    a_ = address(product_.a);
    b_ = address(product_.b);
    result_ = outputs[0];
  }

  void Run() override {
    const auto alpha = static_cast<float>(product_.scale);
    const float beta = 0;
    const cuda_driver::Stream stream = device_.Enter();
    library_.Check(library_.Matmul(TheHandle(), operation_.get(), &alpha, b_, left_.get(), a_, right_.get(), &beta,
                                   result_, result_layout_.get(), result_, result_layout_.get(), choice_.algorithm,
                                   Workspace().address(), choice_.workspace_bytes, stream),
                   "multiply");
  }

 private:
  const void* ConstantAt(MatrixProduct::Operand operand) const {
    return constants_[static_cast<size_t>(-1 - operand)].address();
  }

  template <typename T>
  void Set(int attribute, const T& value) {
    library_.Check(library_.MatmulDescSetAttribute(operation_.get(), attribute, &value, sizeof value),
                   "describe a product");
  }

  void Describe(const Algorithm& algorithm) {
    Product operation = nullptr;
    library_.Check(library_.MatmulDescCreate(&operation, kComputeFloat32, kFloat32Type), "describe a product");
    operation_ = {operation, library_.MatmulDescDestroy};
    // Stored rows of B are columns of its transpose, so that a B which is stored transposed needs an operation.
    if (product_.transpose_b != 0) Set(kTransposeA, kTransposed);
    if (product_.transpose_a != 0) Set(kTransposeB, kTransposed);
    const uint32_t epilogue = (product_.has_bias != 0 ? kBias : 0) | (algorithm.relu != 0 ? kRelu : 0);
    Set(kEpilogue, epilogue == 0 ? kNothing : epilogue);
    if (product_.has_bias != 0) Set(kBiasPointer, ConstantAt(product_.bias));
    const int64_t m = product_.m, n = product_.n, k = product_.k;
    left_ = product_.transpose_b != 0 ? Describe(k, n, product_.same_b != 0) : Describe(n, k, product_.same_b != 0);
    right_ = product_.transpose_a != 0 ? Describe(m, k, product_.same_a != 0) : Describe(k, m, product_.same_a != 0);
    result_layout_ = Describe(n, m, /*is_shared=*/false);
  }

  /// A dense matrix of the library's rows and columns, or one for each of the batch.
  Owned<Matrix> Describe(int64_t rows, int64_t columns, bool is_shared) const {
    constexpr const char* kDoing = "describe a matrix";
    Matrix matrix = nullptr;
    library_.Check(library_.MatrixLayoutCreate(&matrix, kFloat32Type, static_cast<uint64_t>(rows),
                                               static_cast<uint64_t>(columns), rows),
                   kDoing);
    Owned<Matrix> owned(matrix, library_.MatrixLayoutDestroy);
    const auto batch = static_cast<int32_t>(product_.batch);
    const int64_t stride = is_shared ? 0 : rows * columns;
    library_.Check(library_.MatrixLayoutSetAttribute(matrix, kBatchCount, &batch, sizeof batch), kDoing);
    library_.Check(library_.MatrixLayoutSetAttribute(matrix, kBatchStride, &stride, sizeof stride), kDoing);
    return owned;
  }

  /// Throws kUnsupported where the library has no such algorithm.
  void Choose(const Algorithm& algorithm) {
    constexpr const char* kDoing = "choose an algorithm";
    Preference created = nullptr;
    library_.Check(library_.MatmulPreferenceCreate(&created), kDoing);
    const Owned<Preference> preference(created, library_.MatmulPreferenceDestroy);
    const size_t most = kWorkspaceBytes;
    library_.Check(library_.MatmulPreferenceSetAttribute(created, kMostWorkspace, &most, sizeof most), kDoing);
    std::vector<Choice> choices(static_cast<size_t>(algorithm.rank) + 1);
    int count = 0;
    const Status status = library_.MatmulAlgoGetHeuristic(TheHandle(), operation_.get(), left_.get(), right_.get(),
                                                          result_layout_.get(), result_layout_.get(), created,
                                                          static_cast<int>(choices.size()), choices.data(), &count);
    if (status != 0 || count <= algorithm.rank || choices[static_cast<size_t>(algorithm.rank)].status != 0) {
      throw Error(
          ErrorCategory::kUnsupported,
          fmt::format("cuBLASLt has {} algorithms for this product, number {} is wanted", count, algorithm.rank + 1),
          "cublas");
    }
    choice_ = choices[static_cast<size_t>(algorithm.rank)];
  }

  cuda_driver::CudaDevice& device_;
  const Library& library_;
  MatrixProduct product_;
  std::vector<DeviceBuffer> constants_;
  Owned<Product> operation_{nullptr, nullptr};
  Owned<Matrix> left_{nullptr, nullptr};   ///< B as stored
  Owned<Matrix> right_{nullptr, nullptr};  ///< A as stored
  Owned<Matrix> result_layout_{nullptr, nullptr};
  Choice choice_{};
  const void* a_ = nullptr;
  const void* b_ = nullptr;
  void* result_ = nullptr;
};

class CublasLoader : public KernelLoader {
 public:
  std::unique_ptr<Kernel> Load(const KernelImage& image) override {
    constexpr int64_t kMostRank = 1000;
    Algorithm algorithm;
    const size_t size = std::min(image.blob.size(), sizeof(MatrixProduct));
    const MatrixProduct product = MatrixProductFrom(image.blob.first(size), image.constants);
    const auto rest = image.blob.subspan(size);
    if (rest.size() != sizeof algorithm) throw Error(ErrorCategory::kCorrupt, "a kernel's algorithm cannot be read");
    std::memcpy(&algorithm, rest.data(), sizeof algorithm);
    if (algorithm.rank < 0 || algorithm.rank > kMostRank || product.element_bytes != sizeof(float)) {
      throw Error(ErrorCategory::kCorrupt, "a kernel's algorithm cannot be read");
    }
    return std::make_unique<CublasKernel>(product, algorithm, image.constants);
  }
};

}  // namespace
}  // namespace collage::cublas

extern "C" collage::KernelLoader* collage_make_kernel_loader() { return new collage::cublas::CublasLoader; }

extern "C" void collage_cublas_version(std::string& text) {
  const size_t version = collage::cublas::GetLibrary().GetVersion();
  text = fmt::format("cuBLASLt {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}
