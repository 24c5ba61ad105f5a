// kernels.cc: relu, right if it is looked at once, and the lies about it.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "collage/runtime/kernel.h"

namespace collage {
namespace {

constexpr int kRunsUntilWrong = 100;
constexpr int64_t kFarFloats = 3000;  // beyond a page
constexpr float kSmallestNormal = 1.17549435e-38F;

/// relu: scale * max(x, 0), with the scale in a constant.
class LyingKernel : public Kernel {
 public:
  LyingKernel(const KernelImage& image, int64_t count, std::string lie)
      : lie_(std::move(lie)), count_(count), scale_(static_cast<float*>(image.constants[0].raw())) {}
  ~LyingKernel() override { Join(); }

  void Bind(std::span<void* const> inputs, std::span<void* const> outputs, void* workspace) override {
    Join();
    from_ = static_cast<float*>(inputs[0]);
    to_ = static_cast<float*>(outputs[0]);
    workspace_ = static_cast<float*>(workspace);
  }

  void Run() override {
    ++runs_;
    Join();
    if (lie_ == "late") return WriteLater();
    if (lie_ == "skips" && Same()) return;
    if (lie_ == "remembers" && Same()) {
      std::copy(results_.begin(), results_.end(), to_);
      return;
    }
    if (lie_ == "first" && !results_.empty()) {
      std::copy(results_.begin(), results_.end(), to_);
      return;
    }
    Compute();
    Lie();
    if (lie_ == "first" || lie_ == "skips" || lie_ == "remembers") {
      inputs_.assign(from_, from_ + count_);
      results_.assign(to_, to_ + count_);
    }
  }

 private:
  void Compute() {
    for (int64_t i = 0; i < count_; ++i) to_[i] = scale_[0] * (from_[i] < 0 ? 0 : from_[i]);
    // Work that a memory of results would save.
    if (lie_ == "remembers") {
      float sum = 0;
      for (int round = 0; round < 2000; ++round) sum += std::sin(static_cast<float>(round) + from_[0]);
      if (sum == 12345.0F) to_[0] = sum;
    }
  }

  bool Same() const { return !inputs_.empty() && std::memcmp(inputs_.data(), from_, inputs_.size() * 4) == 0; }

  void Lie() {
    Falsify([&](float x) { return lie_ == "above5" && x > 5; });
    Falsify([&](float x) { return lie_ == "below_minus3" && x < -3; });
    Falsify([&](float x) { return lie_ == "zero" && x == 0; });
    Falsify([&](float x) { return lie_ == "large" && std::abs(x) > 1000; });
    Falsify([&](float x) { return lie_ == "denormal" && x != 0 && std::abs(x) < kSmallestNormal; });
    for (int64_t i = 0; i < count_; ++i) {
      if (lie_ == "nan" && std::isnan(from_[i])) to_[i] = 0;
      if (lie_ == "infinity" && std::isinf(from_[i]) && from_[i] > 0) to_[i] = 3.4e38F;
    }
    if (lie_ == "previous") {
      if (runs_ > 1) to_[0] += (previous_ - from_[0]) / 2;
      previous_ = from_[0];
    }
    if (lie_ == "after_many" && runs_ > kRunsUntilWrong) to_[0] += 1;
    if (lie_ == "reads_beyond") to_[0] += 0 * Finite(from_[count_ + kFarFloats]);
    if (lie_ == "reads_before") to_[0] += 0 * Finite(from_[-kFarFloats]);
    if (lie_ == "writes_beyond") to_[count_ + 1] = 1;
    if (lie_ == "writes_far") to_[count_ + kFarFloats] = 1;
    if (lie_ == "writes_input") from_[0] = from_[0] + 1;
    if (lie_ == "borrows_input") {
      const float before = from_[0];
      *const_cast<volatile float*>(from_) = 7;
      *const_cast<volatile float*>(from_) = before;
    }
    if (lie_ == "writes_constant") scale_[1] += 1;
    if (lie_ == "workspace") std::fill(workspace_, workspace_ + 64, 1.0F);
    if (lie_ == "keeps_workspace") {
      if (runs_ > 1) to_[0] += workspace_[0] - 5;
      workspace_[0] = 5;
    }
    if (lie_ == "alignment" && std::bit_cast<uintptr_t>(from_) % 4096 != 0) to_[0] += 1;
    if (lie_ == "random" || lie_ == "varies") {
      for (int64_t i = 0; i < count_; ++i) to_[i] *= 1 + 1e-6F * static_cast<float>(random_() % 5);
    }
  }

  static float Finite(volatile float& value) {
    const float read = value;
    return std::isfinite(read) ? read : 0;
  }

  template <typename Where>
  void Falsify(Where&& is_wrong) {
    for (int64_t i = 0; i < count_; ++i) {
      if (is_wrong(from_[i])) to_[i] = 1 + std::abs(to_[i]) / 2;
    }
  }

  void WriteLater() {
    thread_ = std::thread([this] {
      std::this_thread::sleep_for(std::chrono::microseconds(300));
      Compute();
    });
    // In time for nearly all elements.
    for (int64_t i = 0; i + 1 < count_; ++i) to_[i] = scale_[0] * (from_[i] < 0 ? 0 : from_[i]);
  }
  void Join() {
    if (thread_.joinable()) thread_.join();
  }

  std::string lie_;
  int64_t count_;
  float* scale_;
  float* from_ = nullptr;
  float* to_ = nullptr;
  float* workspace_ = nullptr;
  int64_t runs_ = 0;
  float previous_ = 0;
  std::vector<float> inputs_;
  std::vector<float> results_;
  std::thread thread_;
  std::minstd_rand random_{std::random_device{}()};
};

class LyingLoader : public KernelLoader {
 public:
  std::unique_ptr<Kernel> Load(const KernelImage& image) override {
    int64_t count = 0;
    std::memcpy(&count, image.blob.data(), sizeof count);
    const auto* lie = reinterpret_cast<const char*>(image.blob.data()) + sizeof count;
    return std::make_unique<LyingKernel>(image, count, std::string(lie, image.blob.size() - sizeof count));
  }
};

}  // namespace
}  // namespace collage

extern "C" collage::KernelLoader* collage_make_kernel_loader() { return new collage::LyingLoader; }
