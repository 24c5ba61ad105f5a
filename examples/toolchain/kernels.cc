// kernels.cc: the kernels: running sums of rows.
#include "kernels.h"

#include <collage/runtime/kernel.h>
#include <collage/runtime/thread_pool.h>
#include <collage/support/error.h>

#include <cstring>
#include <functional>

namespace scan {
namespace {

using Four = float __attribute__((vector_size(16)));

/// to[i] = from[0] combined with … with from[i]; `start` changes nothing. Four elements are first combined among
/// themselves, so that only one operation in four waits for the one before.
template <typename Combine>
void CombineRow(const float* from, float* to, int64_t length, float start, Combine combine) {
  constexpr int64_t kWidth = 4;
  const Four neutral{start, start, start, start};
  Four so_far = neutral;
  int64_t i = 0;
  for (; i + kWidth <= length; i += kWidth) {
    Four values;
    std::memcpy(&values, from + i, sizeof values);
    values = combine(__builtin_shufflevector(neutral, values, 0, 4, 5, 6), values);
    values = combine(__builtin_shufflevector(neutral, values, 0, 1, 4, 5), values);
    const Four results = combine(so_far, values);
    std::memcpy(to + i, &results, sizeof results);
    so_far = combine(so_far, __builtin_shufflevector(values, values, 3, 3, 3, 3));
  }
  for (float last = so_far[0]; i < length; ++i) {
    last = combine(last, from[i]);
    to[i] = last;
  }
}

class ScanKernel : public collage::Kernel {
 public:
  explicit ScanKernel(const Blob& blob) : blob_(blob) {}

  void Bind(std::span<void* const> inputs, std::span<void* const> outputs, void*) override {
    from_ = static_cast<const float*>(inputs[0]);
    to_ = static_cast<float*>(outputs[0]);
  }

  void Run() override { collage::ParallelFor(blob_.count, &RunRows, this); }

 private:
  /// Some of the rows, on one of the threads that the whole process shares.
  static void RunRows(void* context, int64_t begin, int64_t end) {
    const auto& self = *static_cast<const ScanKernel*>(context);
    const int64_t length = self.blob_.length;
    for (int64_t row = begin; row < end; ++row) {
      const float* from = self.from_ + row * length;
      float* to = self.to_ + row * length;
      switch (self.blob_.operation) {
        case Operation::kSum: CombineRow(from, to, length, 0.0F, std::plus<>()); break;
      }
    }
  }

  Blob blob_;
  const float* from_ = nullptr;
  float* to_ = nullptr;
};

class ScanLoader : public collage::KernelLoader {
 public:
  std::unique_ptr<collage::Kernel> Load(const collage::KernelImage& image) override {
    Blob blob;
    if (image.blob.size() != sizeof blob) {
      throw collage::Error(collage::ErrorCategory::kCorrupt, "a kernel of 'scan' has another size than wanted");
    }
    std::memcpy(&blob, image.blob.data(), sizeof blob);
    return std::make_unique<ScanKernel>(blob);
  }
};

}  // namespace
}  // namespace scan

extern "C" collage::KernelLoader* collage_make_kernel_loader() { return new scan::ScanLoader; }
