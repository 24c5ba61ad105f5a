// module.cc: kernels of libxsmm's generated code, one call per block of rows.
#include <algorithm>
#include <memory>
#include <vector>

#include "backends/xsmm/kernels/generate.h"
#include "backends/xsmm/query.h"
#include "collage/runtime/kernel.h"
#include "collage/runtime/thread_pool.h"

namespace collage::xsmm_toolchain {
namespace {

/// Rows that one call computes: few enough for several blocks where there are several threads, many enough to hide the
/// call.
constexpr int64_t kBlockRows = 64;
/// Side of the squares that are transposed at a time.
constexpr int64_t kSquare = 8;

/// Code for `rows` rows; null when the library generates none.
template <typename T>
typename Function<T>::Type CodeFor(const MatrixProduct& p, int64_t rows) {
  TileProduct tile{.m = rows, .n = p.n, .k = p.k, .lda = p.k, .ldb = p.n, .ldc = p.n};
  tile.transposes_a = p.transpose_a != 0;
  if (tile.transposes_a) tile.lda = p.m;
  tile.adds = p.has_bias != 0;
  return Generate<T>(tile);
}

/// [rows, columns] to [columns, rows].
template <typename T>
void TransposeMatrix(const T* source, T* target, int64_t rows, int64_t columns) {
  for (int64_t r0 = 0; r0 < rows; r0 += kSquare) {
    for (int64_t c0 = 0; c0 < columns; c0 += kSquare) {
      for (int64_t r = r0; r < std::min(rows, r0 + kSquare); ++r) {
        for (int64_t c = c0; c < std::min(columns, c0 + kSquare); ++c) target[c * rows + r] = source[r * columns + c];
      }
    }
  }
}

int64_t NumB(const MatrixProduct& p) { return p.same_b != 0 ? 1 : p.batch; }

/// B is transposed at every run when it is an input and stored as [N, K].
size_t WorkspaceBytes(const MatrixProduct& p) {
  if (p.transpose_b == 0 || p.b < 0) return 0;
  return static_cast<size_t>(NumB(p) * p.k * p.n) * p.bytes();
}

template <typename T>
class XsmmKernel : public Kernel {
 public:
  XsmmKernel(const MatrixProduct& product, std::span<const Tensor> constants) : p_(product) {
    for (const Tensor& constant : constants) constants_.push_back(constant.data<T>());
    block_rows_ = std::min(p_.m, kBlockRows);
    blocks_ = (p_.m + block_rows_ - 1) / block_rows_;
    block_ = CodeFor<T>(p_, block_rows_);
    last_ = CodeFor<T>(p_, p_.m - (blocks_ - 1) * block_rows_);
    if (block_ == nullptr || last_ == nullptr) {
      throw Error(ErrorCategory::kUnavailable, "libxsmm generates no code for this product on this processor");
    }
    if (p_.has_bias != 0) {
      const T* given = constants_[static_cast<size_t>(-1 - p_.bias)];
      for (int64_t i = 0; i < p_.n; ++i) bias_.push_back(static_cast<T>(static_cast<double>(given[i]) / p_.scale));
    }
    if (p_.transpose_b != 0 && p_.b < 0) {
      const T* source = constants_[static_cast<size_t>(-1 - p_.b)];
      packed_.resize(static_cast<size_t>(NumB(p_) * p_.k * p_.n));
      for (int64_t i = 0; i < NumB(p_); ++i) {
        TransposeMatrix(source + i * p_.n * p_.k, packed_.data() + i * p_.n * p_.k, p_.n, p_.k);
      }
    }
  }

  void Bind(std::span<void* const> inputs, std::span<void* const> outputs, void* workspace) override {
    const MatrixProduct::Operand last = std::max(p_.a, p_.b);
    if (last >= static_cast<int64_t>(inputs.size()) || outputs.empty()) {
      throw Error(ErrorCategory::kCorrupt, "a kernel's matrix product reads inputs that there are not");
    }
    const auto address = [&](MatrixProduct::Operand operand) {
      return operand >= 0 ? static_cast<const T*>(inputs[static_cast<size_t>(operand)])
                          : constants_[static_cast<size_t>(-1 - operand)];
    };
    a_ = address(p_.a);
    given_b_ = address(p_.b);
    c_ = static_cast<T*>(outputs[0]);
    transposed_b_ = p_.transpose_b != 0 && packed_.empty() ? static_cast<T*>(workspace) : nullptr;
    b_ = transposed_b_ != nullptr ? transposed_b_ : packed_.empty() ? given_b_ : packed_.data();
  }

  void Run() override {
    if (transposed_b_ != nullptr) {
      For(NumB(p_), [](XsmmKernel& self, int64_t i) {
        const int64_t size = self.p_.n * self.p_.k;
        TransposeMatrix(self.given_b_ + i * size, self.transposed_b_ + i * size, self.p_.n, self.p_.k);
      });
    }
    For(p_.batch * blocks_, [](XsmmKernel& self, int64_t i) { self.Block(i); });
  }

 private:
  template <typename Body>
  void For(int64_t count, Body) {
    ParallelFor(
        count,
        [](void* self, int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) Body()(*static_cast<XsmmKernel*>(self), i);
        },
        this);
  }

  void Block(int64_t index) {
    const int64_t matrix = index / blocks_, block = index % blocks_;
    const int64_t row = block * block_rows_;
    const int64_t rows = std::min(block_rows_, p_.m - row);
    const T* a = a_ + (p_.same_a != 0 ? 0 : matrix * p_.m * p_.k) + (p_.transpose_a != 0 ? row : row * p_.k);
    const T* b = b_ + (p_.same_b != 0 ? 0 : matrix * p_.k * p_.n);
    T* c = c_ + (matrix * p_.m + row) * p_.n;
    if (!bias_.empty()) {
      for (int64_t r = 0; r < rows; ++r) std::copy_n(bias_.data(), p_.n, c + r * p_.n);
    }
    (block + 1 == blocks_ ? last_ : block_)(b, a, c);
    if (p_.scale != 1) {
      const T scale = static_cast<T>(p_.scale);
      for (int64_t i = 0; i < rows * p_.n; ++i) c[i] *= scale;
    }
  }

  MatrixProduct p_;
  std::vector<const T*> constants_;
  std::vector<T> bias_;    // divided by the scale, which comes last; empty where there is none
  std::vector<T> packed_;  // constant B as [K, N]; empty where it lies so, or is an input
  int64_t block_rows_ = 1;
  int64_t blocks_ = 1;
  typename Function<T>::Type block_ = nullptr;
  typename Function<T>::Type last_ = nullptr;
  const T* a_ = nullptr;
  const T* given_b_ = nullptr;
  const T* b_ = nullptr;       // as [K, N]
  T* transposed_b_ = nullptr;  // in the workspace
  T* c_ = nullptr;
};

std::unique_ptr<Kernel> MakeKernel(const MatrixProduct& product, std::span<const Tensor> constants) {
  if (product.element_bytes == sizeof(float)) return std::make_unique<XsmmKernel<float>>(product, constants);
  return std::make_unique<XsmmKernel<double>>(product, constants);
}

class XsmmLoader : public KernelLoader {
 public:
  std::unique_ptr<Kernel> Load(const KernelImage& image) override {
    libxsmm_init();
    return MakeKernel(MatrixProductFrom(image.blob, image.constants), image.constants);
  }
};

template <typename T>
bool IsGenerated(const MatrixProduct& p) {
  const int64_t rows = std::min(p.m, kBlockRows);
  const int64_t rest = p.m - (p.m - 1) / rows * rows;
  return CodeFor<T>(p, rows) != nullptr && CodeFor<T>(p, rest) != nullptr;
}

}  // namespace
}  // namespace collage::xsmm_toolchain

extern "C" collage::KernelLoader* collage_make_kernel_loader() { return new collage::xsmm_toolchain::XsmmLoader(); }

extern "C" collage::Result<size_t> collage_xsmm_workspace(const collage::MatrixProduct& product) {
  using namespace collage::xsmm_toolchain;
  libxsmm_init();
  const bool generated =
      product.element_bytes == sizeof(float) ? IsGenerated<float>(product) : IsGenerated<double>(product);
  if (!generated) return collage::Reason{"libxsmm generates no code for this product on this processor", "xsmm"};
  return WorkspaceBytes(product);
}
