// loader.cc: images as kernels. The image itself says how it is launched: one thread of it writes that from the
// arguments, when addresses are known.
#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "backends/cuda_driver/device.h"
#include "backends/cuda_driver/loaded_module.h"
#include "backends/cutlass/kernel.h"
#include "collage/runtime/kernel.h"

namespace collage::cutlass {
namespace {

using cutlass_interface::Arguments;
using cutlass_interface::Move;
using cutlass_interface::Prepared;

constexpr uint32_t kMostThreads = 1024;

/// Blobs have the largest number in place of infinity.
float Bound(double number) {
  constexpr double kMost = std::numeric_limits<float>::max();
  return number > kMost ? std::numeric_limits<float>::infinity() : static_cast<float>(number);
}

class CutlassLaunch : public Kernel {
 public:
  CutlassLaunch(CutlassKernel kernel, std::span<const Tensor> constants)
      : device_(cuda_driver::GetCudaDevice()),
        driver_(cuda_driver::GetDriver()),
        kernel_(std::move(kernel)),
        constants_(cuda_driver::CopyConstants(device_, constants)) {
    device_.Enter();
    module_ = std::make_unique<cuda_driver::LoadedModule>(driver_, kernel_.images, kernel_.architecture, "cutlass");
    prepare_ = module_->Find("collage_prepare");
    run_ = module_->Find("collage_run");
    move_ = module_->Find("collage_move");
  }

  // The module is unloaded in the GPU's context.
  ~CutlassLaunch() override { device_.Enter(); }
  CutlassLaunch(const CutlassLaunch&) = delete;
  CutlassLaunch& operator=(const CutlassLaunch&) = delete;

  void Bind(std::span<void* const> inputs, std::span<void* const> outputs, void* workspace) override {
    if (outputs.empty()) throw Error(ErrorCategory::kCorrupt, "a kernel of CUTLASS has no result", "cutlass");
    Arguments arguments{};
    arguments.a = AddressOf(kernel_.a, inputs);
    arguments.b = AddressOf(kernel_.b, inputs);
    arguments.bias = AddressOf(kernel_.bias, inputs);
    arguments.other = AddressOf(kernel_.other, inputs);
    arguments.result = outputs[0];
    arguments.problem = kernel_.problem;
    SetMoves(arguments, static_cast<std::byte*>(workspace));
    arguments.low = Bound(kernel_.low);
    arguments.high = Bound(kernel_.high);
    Prepare(arguments);
  }

  void Run() override {
    for (Move& move : before_) Launch(move);
    void* parameters[] = {prepared_.parameters};
    driver_.Check(driver_.LaunchKernel(run_, prepared_.grid[0], prepared_.grid[1], prepared_.grid[2], prepared_.threads,
                                       1, 1, prepared_.shared_bytes, device_.Enter(), parameters, nullptr),
                  "launch a kernel of CUTLASS");
    for (Move& move : after_) Launch(move);
  }

 private:
  void* AddressOf(const Place& place, std::span<void* const> inputs) const {
    if (place.is_none()) return nullptr;
    const auto number = static_cast<size_t>(place.number);
    if (place.is_constant) return constants_[number].address();
    if (number < inputs.size()) return inputs[number];
    throw Error(ErrorCategory::kCorrupt, "a kernel of CUTLASS reads inputs that there are not", "cutlass");
  }

  /// Has plain images moved to the workspace before, and from it afterwards.
  void SetMoves(Arguments& arguments, std::byte* workspace) {
    before_.clear();
    after_.clear();
    const cutlass_interface::Problem& p = kernel_.problem;
    const int64_t pixels = p.result_height * p.result_width;
    const Move of_a{
        nullptr, nullptr, p.images, kernel_.channels, p.height * p.width, p.channels, 1, kernel_.element_bytes};
    const Move of_result{nullptr, nullptr, p.images, p.filters, pixels, p.filters, 1, kernel_.result_bytes};
    const auto move_in = [&](Move move, int64_t offset, const void*& address) {
      if (offset == Place::kNone) return;
      move.from = address;
      move.to = workspace + offset;
      address = move.to;
      before_.push_back(move);
    };
    move_in(of_a, kernel_.moved_a, arguments.a);
    move_in(of_result, kernel_.moved_other, arguments.other);
    if (kernel_.moved_result == Place::kNone) return;
    after_.push_back(of_result);
    after_.back().to_channels_last = 0;
    after_.back().to = arguments.result;
    arguments.result = workspace + kernel_.moved_result;
    after_.back().from = arguments.result;
  }

  void Launch(Move& move) {
    const auto tiles = [](int64_t size) { return static_cast<unsigned>((size + Move::kEdge - 1) / Move::kEdge); };
    void* parameters[] = {&move};
    driver_.Check(
        driver_.LaunchKernel(move_, tiles(move.pixels), tiles(move.stored), static_cast<unsigned>(move.images),
                             Move::kThreads, 1, 1, 0, device_.Enter(), parameters, nullptr),
        "move images for a kernel of CUTLASS");
  }

  void Prepare(Arguments& arguments) {
    if (written_.address() == nullptr) written_ = DeviceBuffer(Memory::kCuda, sizeof(Prepared));
    void* target = written_.address();
    void* parameters[] = {&arguments, &target};
    driver_.Check(driver_.LaunchKernel(prepare_, 1, 1, 1, 1, 1, 1, 0, device_.Enter(), parameters, nullptr),
                  "prepare a kernel of CUTLASS");
    device_.CopyOut(&prepared_, target, sizeof prepared_);
    const bool is_usable = prepared_.threads > 0 && prepared_.threads <= kMostThreads &&
                           prepared_.shared_bytes <= cuda_driver::kMostSharedBytes &&
                           prepared_.parameter_bytes <= Prepared::kMostParameterBytes;
    if (!is_usable) throw Error(ErrorCategory::kCorrupt, "a kernel of CUTLASS says nothing of its launch", "cutlass");
    module_->ReserveShared(run_, prepared_.shared_bytes);
  }

  cuda_driver::CudaDevice& device_;
  const cuda_driver::Driver& driver_;
  CutlassKernel kernel_;
  std::vector<DeviceBuffer> constants_;
  std::unique_ptr<cuda_driver::LoadedModule> module_;
  cuda_driver::Function prepare_ = nullptr, run_ = nullptr, move_ = nullptr;
  std::vector<Move> before_, after_;  ///< images that lie plain
  DeviceBuffer written_;
  Prepared prepared_{};
};

class CutlassLoader : public KernelLoader {
 public:
  std::unique_ptr<Kernel> Load(const KernelImage& image) override {
    return std::make_unique<CutlassLaunch>(CutlassKernelFrom(image.blob, image.constants), image.constants);
  }
};

}  // namespace
}  // namespace collage::cutlass

extern "C" collage::KernelLoader* collage_make_kernel_loader() { return new collage::cutlass::CutlassLoader; }
