// module.cc: kernels that split products over the process's threads and have a library compute each part on one of
// them.
#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>

#include "backends/blas/kernels/library.h"
#include "backends/blas/libraries.h"
#include "backends/blas/query.h"
#include "collage/runtime/kernel.h"
#include "collage/runtime/thread_pool.h"

namespace collage::blas_toolchain {
namespace {

/// Parts smaller than this cost more to hand out than they save: 64 K operations are about a microsecond.
constexpr double kFlopsPerPart = 1 << 17;
/// Parts end at multiples of this many rows or columns, so that the libraries' tiles are not cut.
constexpr int64_t kGranularity = 16;

int Int(int64_t value) { return static_cast<int>(value); }
Transpose Flag(bool transpose) { return transpose ? kTranspose : kNoTranspose; }

/// Libraries count in 32 bits.
bool Fits(const MatrixProduct& p) {
  constexpr int64_t kLimit = std::numeric_limits<int>::max();
  return p.m <= kLimit && p.n <= kLimit && p.k <= kLimit;
}

template <typename T>
class BlasKernel : public Kernel {
 public:
  BlasKernel(const MatrixProduct& product, const OpenedLibrary& library, std::span<const Tensor> constants,
             int num_threads)
      : p_(product), functions_(library.functions<T>()) {
    for (const Tensor& constant : constants) constants_.push_back(constant.data<T>());
    by_columns_ = p_.n >= p_.m;
    const int64_t length = by_columns_ ? p_.n : p_.m;
    const double useful = p_.flops() / static_cast<double>(p_.batch) / kFlopsPerPart;
    parts_ = p_.batch >= num_threads ? 1 : std::min<int64_t>(num_threads, static_cast<int64_t>(useful));
    parts_ = std::clamp<int64_t>(parts_, 1, (length + kGranularity - 1) / kGranularity);
    part_ = (length + parts_ - 1) / parts_;
    part_ = (part_ + kGranularity - 1) / kGranularity * kGranularity;
    parts_ = (length + part_ - 1) / part_;
  }

  void Bind(std::span<void* const> inputs, std::span<void* const> outputs, void*) override {
    const MatrixProduct::Operand last = std::max(p_.a, p_.b);
    if (last >= static_cast<int64_t>(inputs.size()) || outputs.empty()) {
      throw Error(ErrorCategory::kCorrupt, "a kernel's matrix product reads inputs that there are not");
    }
    const auto address = [&](MatrixProduct::Operand operand) {
      return operand >= 0 ? static_cast<const T*>(inputs[static_cast<size_t>(operand)])
                          : constants_[static_cast<size_t>(-1 - operand)];
    };
    a_ = address(p_.a);
    b_ = address(p_.b);
    bias_ = p_.has_bias != 0 ? address(p_.bias) : nullptr;
    c_ = static_cast<T*>(outputs[0]);
  }

  void Run() override {
    if (p_.batch * parts_ == 1) return Part(0);
    ParallelFor(
        p_.batch * parts_,
        [](void* self, int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) static_cast<BlasKernel*>(self)->Part(i);
        },
        this);
  }

 private:
  void Part(int64_t index) {
    const int64_t matrix = index / parts_;
    const int64_t first = index % parts_ * part_;
    const T* a = a_ + (p_.same_a != 0 ? 0 : matrix * p_.m * p_.k);
    const T* b = b_ + (p_.same_b != 0 ? 0 : matrix * p_.k * p_.n);
    T* c = c_ + matrix * p_.m * p_.n;
    const bool ta = p_.transpose_a != 0, tb = p_.transpose_b != 0;
    int64_t m = p_.m, n = p_.n;
    if (by_columns_) {
      n = std::min(part_, p_.n - first);
      b += tb ? first * p_.k : first;
      c += first;
      Multiply(a, b, c, m, n, ta, tb, bias_ == nullptr ? nullptr : bias_ + first);
    } else {
      m = std::min(part_, p_.m - first);
      a += ta ? first : first * p_.k;
      c += first * p_.n;
      Multiply(a, b, c, m, n, ta, tb, bias_);
    }
  }

  void Multiply(const T* a, const T* b, T* c, int64_t m, int64_t n, bool ta, bool tb, const T* bias) {
    const int64_t lda = ta ? p_.m : p_.k, ldb = tb ? p_.k : p_.n;
    if (bias != nullptr) {
      for (int64_t row = 0; row < m; ++row) std::copy_n(bias, n, c + row * p_.n);
    }
    const T alpha = static_cast<T>(p_.scale), beta = bias != nullptr ? 1 : 0;
    if (p_.m == 1) {
      // A row: B's transpose times a vector.
      const int64_t rows = tb ? n : p_.k, columns = tb ? p_.k : n;
      functions_.gemv(kRowMajor, Flag(!tb), Int(rows), Int(columns), alpha, b, Int(ldb), a, 1, beta, c, 1);
      return;
    }
    functions_.gemm(kRowMajor, Flag(ta), Flag(tb), Int(m), Int(n), Int(p_.k), alpha, a, Int(lda), b, Int(ldb), beta, c,
                    Int(p_.n));
  }

  MatrixProduct p_;
  const Functions<T>& functions_;
  std::vector<const T*> constants_;
  bool by_columns_ = false;
  int64_t parts_ = 1;  ///< of each matrix of the batch
  int64_t part_ = 1;   ///< rows or columns of a part
  const T* a_ = nullptr;
  const T* b_ = nullptr;
  const T* bias_ = nullptr;
  T* c_ = nullptr;
};

std::unique_ptr<Kernel> MakeKernel(const MatrixProduct& product, const OpenedLibrary& library,
                                   std::span<const Tensor> constants, int num_threads) {
  if (product.element_bytes == sizeof(float)) {
    return std::make_unique<BlasKernel<float>>(product, library, constants, num_threads);
  }
  return std::make_unique<BlasKernel<double>>(product, library, constants, num_threads);
}

class BlasLoader : public KernelLoader {
 public:
  std::unique_ptr<Kernel> Load(const KernelImage& image) override {
    const size_t size = std::min(image.blob.size(), sizeof(MatrixProduct));
    const MatrixProduct product = MatrixProductFrom(image.blob.first(size), image.constants);
    const auto name = image.blob.subspan(size);
    if (!Fits(product)) throw Error(ErrorCategory::kCorrupt, "a kernel's matrix product is too large for BLAS");
    const OpenedLibrary& library = OpenLibrary({reinterpret_cast<const char*>(name.data()), name.size()});
    return MakeKernel(product, library, image.constants, image.num_threads);
  }
};

// ---- which library ----

/// Seconds that a product takes at least, of several runs within some 5 ms.
double SecondsOf(Kernel& kernel) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kEnough = std::chrono::milliseconds(5);
  constexpr int kAtLeast = 4;
  double least = std::numeric_limits<double>::infinity();
  kernel.Run();
  const auto begin = Clock::now();
  for (int run = 0; run < kAtLeast || Clock::now() - begin < kEnough; ++run) {
    const auto before = Clock::now();
    kernel.Run();
    least = std::min(least, std::chrono::duration<double>(Clock::now() - before).count());
  }
  return least;
}

Result<std::string> Fastest(const MatrixProduct& product, const std::string& wanted) {
  if (!Fits(product)) return Reason{"BLAS counts rows and columns in 32 bits", "blas"};
  std::vector<const OpenedLibrary*> libraries;
  std::string why = "no BLAS library is here";
  for (const Library& library : FindLibraries()) {
    if (!wanted.empty() && library.name != wanted) continue;
    try {
      libraries.push_back(&OpenLibrary(library.name));
    } catch (const Error& error) {
      why = error.message();
    }
  }
  if (libraries.empty()) return Reason{why, "blas"};
  if (libraries.size() == 1) return libraries[0]->name;
  // Stand-ins for operands and constants: each input is a constant here.
  MatrixProduct trial = product;
  trial.a = -1;
  trial.b = -2;
  trial.bias = -3;
  const DataType dtype = product.element_bytes == 4 ? kFloat32 : kFloat64;
  const std::vector<Tensor> constants{Tensor::Zeros({product.batch, product.m, product.k}, dtype),
                                      Tensor::Zeros({product.batch, product.k, product.n}, dtype),
                                      Tensor::Zeros({product.n}, dtype)};
  const Tensor result = Tensor::Zeros({product.batch, product.m, product.n}, dtype);
  void* const output = result.raw();
  std::string fastest;
  double least = std::numeric_limits<double>::infinity();
  for (const OpenedLibrary* library : libraries) {
    const auto kernel = MakeKernel(trial, *library, constants, NumThreads());
    kernel->Bind({}, {&output, 1}, nullptr);
    const double seconds = SecondsOf(*kernel);
    if (seconds < least) {
      least = seconds;
      fastest = library->name;
    }
  }
  return fastest;
}

}  // namespace
}  // namespace collage::blas_toolchain

extern "C" collage::KernelLoader* collage_make_kernel_loader() { return new collage::blas_toolchain::BlasLoader(); }

extern "C" collage::Result<std::string> collage_blas_fastest(const collage::MatrixProduct& product,
                                                             const std::string& wanted) {
  try {
    return collage::blas_toolchain::Fastest(product, wanted);
  } catch (const collage::Error& error) {
    return collage::Reason{error.message(), "blas"};
  }
}
