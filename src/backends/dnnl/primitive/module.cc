// module.cc: what the module offers: kernels, and answers about implementations.
#include <fmt/format.h>

#include <map>
#include <memory>
#include <mutex>

#include "backends/dnnl/primitive/call_plan.h"
#include "backends/dnnl/primitive/kernel.h"
#include "collage/support/error.h"

namespace collage::dnnl_toolchain {
namespace {

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

class DnnlLoader : public KernelLoader {
 public:
  std::unique_ptr<Kernel> Load(const KernelImage& image) override {
    const std::string_view spec(reinterpret_cast<const char*>(image.blob.data()), image.blob.size());
    UseThreads(image.num_threads);
    try {
      return std::make_unique<DnnlKernel>(SharedPrimitives::OfProcess().Get(spec, image.num_threads), image.constants,
                                          image.num_threads);
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

Result<PreparedCall> Prepare(const Primitive& primitive, std::span<const Tensor> constants, int num_threads) {
  const Result<Implementation> found = Query(primitive, num_threads);
  if (!found.ok()) return found.reason();
  return PrepareCall(primitive, *found, constants, num_threads);
}

}  // namespace
}  // namespace collage::dnnl_toolchain

extern "C" collage::KernelLoader* collage_dnnl_make_loader() { return new collage::dnnl_toolchain::DnnlLoader(); }

extern "C" collage::Result<collage::dnnl_toolchain::Implementation> collage_dnnl_query_implementation(
    const collage::dnnl_toolchain::Primitive& primitive, int num_threads) {
  return collage::dnnl_toolchain::Query(primitive, num_threads);
}

extern "C" collage::Result<collage::dnnl_toolchain::PreparedCall> collage_dnnl_prepare_primitive_call(
    const collage::dnnl_toolchain::Primitive& primitive, std::span<const collage::Tensor> constants, int num_threads) {
  return collage::dnnl_toolchain::Prepare(primitive, constants, num_threads);
}

extern "C" void* collage_dnnl_find_call(const char* request) { return collage::dnnl_toolchain::FindCall(request); }
