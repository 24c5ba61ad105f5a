// kernels.cc: products with packed weights, by tiles of a few rows and one panel.
#include "kernels.h"

#include <collage/runtime/kernel.h>
#include <collage/runtime/thread_pool.h>
#include <collage/support/error.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace panels {
namespace {

using Vector = float __attribute__((vector_size(kWidth * sizeof(float))));

/// Rows of a tile, whose sums stay in registers.
constexpr int64_t kTileRows = 4;

/// Computes `kRows` rows of one panel. `start` has kWidth sums to begin with; `width` columns are written.
template <int64_t kRows>
void ComputeTile(const Blob& blob, const float* data, const float* panel, const float* start, float* result,
                 int64_t width) {
  std::array<Vector, kRows> sums;
  for (Vector& sum : sums) std::memcpy(&sum, start, sizeof sum);
  for (int64_t k = 0; k < blob.inner; ++k) {
    Vector weights;
    std::memcpy(&weights, panel + k * kWidth, sizeof weights);
    for (int64_t row = 0; row < kRows; ++row) sums[row] += data[row * blob.inner + k] * weights;
  }
  for (int64_t row = 0; row < kRows; ++row) {
    const Vector zero{};
    if (blob.has_relu != 0) sums[row] = sums[row] > zero ? sums[row] : zero;
    std::memcpy(result + row * blob.columns, &sums[row], static_cast<size_t>(width) * sizeof(float));
  }
}

class ProductKernel : public collage::Kernel {
 public:
  ProductKernel(const Blob& blob, const float* weights, const float* bias)
      : blob_(blob), weights_(weights), bias_(bias) {}

  void Bind(std::span<void* const> inputs, std::span<void* const> outputs, void*) override {
    data_ = static_cast<const float*>(inputs[0]);
    result_ = static_cast<float*>(outputs[0]);
  }

  /// Neighbouring tasks share a panel, so that a thread keeps it in its cache.
  void Run() override { collage::ParallelFor(num_blocks() * PanelsOf(blob_.columns), &RunTasks, this); }

 private:
  int64_t num_blocks() const { return (blob_.rows + blob_.block - 1) / blob_.block; }

  static void RunTasks(void* context, int64_t begin, int64_t end) {
    const auto& self = *static_cast<const ProductKernel*>(context);
    for (int64_t task = begin; task < end; ++task) {
      self.ComputeBlock(task % self.num_blocks(), task / self.num_blocks());
    }
  }

  void ComputeBlock(int64_t block, int64_t panel) const {
    constexpr std::array<float, kWidth> kZeros{};
    const int64_t column = panel * kWidth;
    const int64_t width = std::min(kWidth, blob_.columns - column);
    const float* weights = weights_ + panel * blob_.inner * kWidth;
    const float* start = bias_ == nullptr ? kZeros.data() : bias_ + column;
    int64_t row = block * blob_.block;
    const int64_t end = std::min(row + blob_.block, blob_.rows);
    const auto data = [&] { return data_ + row * blob_.inner; };
    const auto result = [&] { return result_ + row * blob_.columns + column; };
    for (; row + kTileRows <= end; row += kTileRows) {
      ComputeTile<kTileRows>(blob_, data(), weights, start, result(), width);
    }
    for (; row < end; ++row) ComputeTile<1>(blob_, data(), weights, start, result(), width);
  }

  Blob blob_;
  const float* weights_;  ///< the executable's memory, which outlives the kernel
  const float* bias_;     ///< null: none
  const float* data_ = nullptr;
  float* result_ = nullptr;
};

class ProductLoader : public collage::KernelLoader {
 public:
  std::unique_ptr<collage::Kernel> Load(const collage::KernelImage& image) override {
    Blob blob;
    if (image.blob.size() != sizeof blob) Refuse("its blob has another size than wanted");
    std::memcpy(&blob, image.blob.data(), sizeof blob);
    if (blob.block < 1 || blob.inner < 1 || blob.columns < 1) Refuse("its sizes make no sense");
    if (image.constants.size() != (blob.has_bias != 0 ? 2U : 1U)) Refuse("constants are missing");
    const int64_t panels = PanelsOf(blob.columns);
    const float* weights = Numbers(image.constants[0], panels * blob.inner * kWidth);
    const float* bias = blob.has_bias != 0 ? Numbers(image.constants[1], panels * kWidth) : nullptr;
    return std::make_unique<ProductKernel>(blob, weights, bias);
  }

 private:
  [[noreturn]] static void Refuse(const char* why) {
    throw collage::Error(collage::ErrorCategory::kCorrupt, std::string("cannot load a kernel of 'panels': ") + why);
  }

  static const float* Numbers(const collage::Tensor& constant, int64_t count) {
    if (constant.dtype() != collage::kFloat32 || constant.num_elements() != count)
      Refuse("a constant has another size");
    return constant.data<float>();
  }
};

}  // namespace
}  // namespace panels

extern "C" collage::KernelLoader* collage_make_kernel_loader() { return new panels::ProductLoader; }
