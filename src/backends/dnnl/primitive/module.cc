// module.cc: what the module offers: kernels, and answers about implementations.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

#include "backends/dnnl/primitive/build.h"
#include "backends/dnnl/primitive/packed_weights.h"
#include "backends/dnnl/query.h"
#include "collage/runtime/kernel.h"
#include "collage/support/error.h"

namespace collage::dnnl_toolchain {
namespace {

using dnnl::memory;

constexpr size_t kAlignment = 64;

size_t Aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// Scratchpad first, then the reordered inputs.
size_t WorkspaceBytes(const Built& built) {
  size_t bytes = Aligned(built.scratchpad.get_size());
  for (const Binding& binding : built.bindings) {
    if (binding.operand.input >= 0 && binding.given != binding.wanted) bytes += Aligned(binding.wanted.get_size());
  }
  return bytes;
}

/// Whether a constant of `binding` is read in another form than it is kept in.
bool IsPacked(const Binding& binding) { return binding.given != binding.wanted || binding.operand.zero != 0; }

/// Primitives by their specs and number of threads, while kernels use them: layers of equal shapes share one.
class SharedPrimitives {
 public:
  std::shared_ptr<const Built> Get(std::string_view spec, int num_threads) {
    const std::lock_guard lock(mutex_);
    std::weak_ptr<const Built>& known = built_[{std::string(spec), num_threads}];
    if (auto built = known.lock()) return built;
    auto built = std::make_shared<const Built>(Build(FromJson(spec)));
    known = built;
    std::erase_if(built_, [](const auto& entry) { return entry.second.expired(); });
    return built;
  }

  static SharedPrimitives& OfProcess() {
    static SharedPrimitives primitives;
    return primitives;
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<std::string, int>, std::weak_ptr<const Built>> built_;
};

void Check(dnnl_status_t status) {
  if (status != dnnl_success) {
    throw Error(ErrorCategory::kInternal, fmt::format("oneDNN failed with status {}", static_cast<int>(status)));
  }
}

/// Memory objects whose addresses `Bind` sets; execution goes through the C interface with arguments made once.
class DnnlKernel : public Kernel {
 public:
  DnnlKernel(std::shared_ptr<const Built> built, const KernelImage& image)
      : built_(std::move(built)),
        num_threads_(image.num_threads),
        dst_(built_->dst, Engine(), nullptr),
        scratchpad_(built_->scratchpad, Engine(), nullptr) {
    for (const Binding& binding : built_->bindings) AddArgument(binding, image);
    for (const auto& [argument, number] : built_->numbers) arguments_.push_back({argument, number.get()});
    arguments_.push_back({DNNL_ARG_DST, dst_.get()});
    arguments_.push_back({DNNL_ARG_SCRATCHPAD, scratchpad_.get()});
  }

  void Bind(std::span<void* const> inputs, std::span<void* const> outputs, void* workspace) override {
    const auto is_missing = [&](const auto& given) { return static_cast<size_t>(given.first) >= inputs.size(); };
    if (outputs.empty() || std::ranges::any_of(given_, is_missing)) {
      throw Error(ErrorCategory::kCorrupt, "a oneDNN kernel reads inputs that there are not");
    }
    auto* free = static_cast<std::byte*>(workspace);
    if (built_->scratchpad.get_size() > 0) scratchpad_.set_data_handle(free);
    free += Aligned(built_->scratchpad.get_size());
    for (auto& [index, given] : given_) given.set_data_handle(inputs[static_cast<size_t>(index)]);
    for (Conversion& conversion : conversions_) {
      conversion.target.set_data_handle(free);
      free += Aligned(conversion.target.get_desc().get_size());
    }
    dst_.set_data_handle(outputs[0]);
  }

  void Run() override {
    UseThreads(num_threads_);
    for (const Conversion& conversion : conversions_) {
      const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, given_[conversion.source].second.get()},
                                           {DNNL_ARG_TO, conversion.target.get()}};
      Check(dnnl_primitive_execute(conversion.reorder.get(), Stream().get(), 2, arguments));
    }
    Check(dnnl_primitive_execute(built_->primitive.get(), Stream().get(), static_cast<int>(arguments_.size()),
                                 arguments_.data()));
  }

 private:
  /// An input that the primitive reads in another format than it arrives in.
  struct Conversion {
    size_t source;  // in given_
    memory target;
    dnnl::reorder reorder;
  };

  void AddArgument(const Binding& binding, const KernelImage& image) {
    if (binding.operand.constant >= 0) {
      const auto index = static_cast<size_t>(binding.operand.constant);
      const int last = std::max(binding.operand.constant, binding.operand.scales);
      if (last >= static_cast<int>(image.constants.size())) {
        throw Error(ErrorCategory::kCorrupt, "a oneDNN kernel lacks a constant");
      }
      if (IsPacked(binding)) {
        constants_.push_back(PackedWeights::OfProcess().Get(binding, image.constants));
      } else {
        constants_.push_back(std::make_shared<memory>(binding.given, Engine(), image.constants[index].raw()));
      }
      arguments_.push_back({binding.argument, constants_.back()->get()});
      return;
    }
    given_.emplace_back(binding.operand.input, memory(binding.given, Engine(), nullptr));
    if (binding.given == binding.wanted) {
      arguments_.push_back({binding.argument, given_.back().second.get()});
      return;
    }
    memory target(binding.wanted, Engine(), nullptr);
    arguments_.push_back({binding.argument, target.get()});
    conversions_.push_back({given_.size() - 1, target, dnnl::reorder(given_.back().second, target)});
  }

  std::shared_ptr<const Built> built_;
  int num_threads_;
  memory dst_;
  memory scratchpad_;
  std::vector<std::shared_ptr<memory>> constants_;
  std::vector<std::pair<int, memory>> given_;  // number of the input, and its memory
  std::vector<Conversion> conversions_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

class DnnlLoader : public KernelLoader {
 public:
  std::unique_ptr<Kernel> Load(const KernelImage& image) override {
    const std::string_view spec(reinterpret_cast<const char*>(image.blob.data()), image.blob.size());
    UseThreads(image.num_threads);
    try {
      return std::make_unique<DnnlKernel>(SharedPrimitives::OfProcess().Get(spec, image.num_threads), image);
    } catch (const dnnl::error& e) {
      throw Error(ErrorCategory::kUnavailable, fmt::format("oneDNN cannot make a kernel: {}", e.what()));
    }
  }
};

/// Without VNNI, products of bytes are added up in 16 bits, which overflow.
bool AddsBytesExactly() {
  constexpr int kAvx2Vnni = 0x8;
  constexpr int kAvx512Vnni = 0x40;
  return (static_cast<int>(dnnl::get_effective_cpu_isa()) & (kAvx2Vnni | kAvx512Vnni)) != 0;
}

Result<Implementation> Query(const Primitive& primitive, int num_threads) {
  UseThreads(num_threads);
  if (primitive.is_contraction() && !primitive.src.dtype.is_floating() && !AddsBytesExactly()) {
    return Reason{"products of 8-bit integers overflow on processors without VNNI instructions", "dnnl"};
  }
  try {
    const Built built = Build(primitive);
    if (built.is_reference()) {
      return Reason{fmt::format("oneDNN has its reference implementation only ('{}')", built.implementation), "dnnl"};
    }
    return Implementation{built.implementation, WorkspaceBytes(built)};
  } catch (const dnnl::error& e) {
    return Reason{fmt::format("oneDNN has no implementation: {}", e.what()), "dnnl"};
  }
}

}  // namespace
}  // namespace collage::dnnl_toolchain

extern "C" collage::KernelLoader* collage_dnnl_make_loader() { return new collage::dnnl_toolchain::DnnlLoader(); }

extern "C" collage::Result<collage::dnnl_toolchain::Implementation> collage_dnnl_query_implementation(
    const collage::dnnl_toolchain::Primitive& primitive, int num_threads) {
  return collage::dnnl_toolchain::Query(primitive, num_threads);
}
