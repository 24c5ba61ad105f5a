// module.cc: what the module offers: kernels, and answers whether there is one.
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstring>

#include "backends/xnnpack/operators/build.h"
#include "backends/xnnpack/query.h"
#include "collage/runtime/kernel.h"
#include "collage/support/error.h"

namespace collage::xnnpack_toolchain {
namespace {

void Initialise() {
  static const xnn_status status = xnn_initialize(nullptr);
  Check(status, "be initialised");
}

/// The process's pool behind pthreadpool's interface; null, which computes on the caller, when another library of that
/// name was loaded first: its pools are none of ours.
pthreadpool_t PoolFor(int num_threads) {
  static const pthreadpool_t pool = [] {
    void* library = dlopen("libpthreadpool.so.0", RTLD_LAZY | RTLD_NOLOAD);
    void* ours = library == nullptr ? nullptr : dlsym(library, "collage_shared_pthreadpool");
    return reinterpret_cast<pthreadpool_t>(ours);
  }();
  return num_threads > 1 ? pool : nullptr;
}

size_t ElementBytes(const Operand& operand) { return operand.element == Element::kFloat32 ? sizeof(float) : 1; }

/// Whether XNNPACK could read past the end of `operand` at `address` into a page that may not be there. Its kernels
/// read whole vectors of 16 bytes where channels end within one.
bool MayReadBeyondPage(const Operand& operand, const void* address) {
  const size_t row_bytes = Size(operand.shape.empty() ? 1 : operand.shape.back()) * ElementBytes(operand);
  if (row_bytes % XNN_EXTRA_BYTES == 0) return false;
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t end = reinterpret_cast<uintptr_t>(address) + Size(NumElements(operand.shape)) * ElementBytes(operand);
  return (end - 1) / page != (end - 1 + XNN_EXTRA_BYTES) / page;
}

class XnnpackKernel : public Kernel {
 public:
  XnnpackKernel(const Operation& operation, const KernelImage& image)
      : operands_(operation.data),
        pool_(PoolFor(image.num_threads)),
        parts_(Build(operation, image.constants)),
        addresses_(operation.data.size()),
        copies_(operation.data.size()) {
    for (const Operand& operand : operands_) {
      constants_.push_back(operand.constant < 0 ? nullptr : ConstantOf(operand, image.constants).raw());
    }
  }

  void Bind(std::span<void* const> inputs, std::span<void* const> outputs, void*) override {
    for (size_t i = 0; i < operands_.size(); ++i) {
      const Operand& operand = operands_[i];
      if (constants_[i] == nullptr && Size(operand.input) >= inputs.size()) {
        throw Error(ErrorCategory::kCorrupt, "an XNNPACK kernel reads inputs that there are not");
      }
      const void* address = constants_[i] != nullptr ? constants_[i] : inputs[Size(operand.input)];
      copies_[i] = {};
      if (MayReadBeyondPage(operand, address)) {
        const size_t bytes = Size(NumElements(operand.shape)) * ElementBytes(operand);
        copies_[i] = {address, bytes, std::vector<std::byte>(bytes + XNN_EXTRA_BYTES)};
        address = copies_[i].padded.data();
      }
      addresses_[i] = address;
    }
    for (const Part& part : parts_)
      Check(part.set_up(part.op.get(), addresses_.data(), outputs[0], pool_), "be set up");
  }

  void Run() override {
    for (Copy& copy : copies_) {
      if (copy.bytes > 0) std::memcpy(copy.padded.data(), copy.source, copy.bytes);
    }
    for (const Part& part : parts_) {
      const xnn_status status = xnn_run_operator(part.op.get(), pool_);
      if (status != xnn_status_success) Check(status, "run");
    }
  }

 private:
  /// An operand that ends where its page ends is read from a copy.
  struct Copy {
    const void* source = nullptr;
    size_t bytes = 0;
    std::vector<std::byte> padded;
  };

  std::vector<Operand> operands_;
  pthreadpool_t pool_;
  std::vector<Part> parts_;
  std::vector<const void*> constants_;  // by operand; null for inputs
  std::vector<const void*> addresses_;
  std::vector<Copy> copies_;
};

class XnnpackLoader : public KernelLoader {
 public:
  std::unique_ptr<Kernel> Load(const KernelImage& image) override {
    Initialise();
    const Operation operation = FromJson({reinterpret_cast<const char*>(image.blob.data()), image.blob.size()});
    return std::make_unique<XnnpackKernel>(operation, image);
  }
};

Result<void> Query(const Operation& operation, std::span<const Tensor> constants) {
  try {
    Initialise();
    Build(operation, constants);
    return {};
  } catch (const Error& e) {
    return Reason{e.message(), "xnnpack"};
  }
}

}  // namespace
}  // namespace collage::xnnpack_toolchain

extern "C" collage::KernelLoader* collage_xnnpack_make_loader() {
  return new collage::xnnpack_toolchain::XnnpackLoader();
}

extern "C" collage::Result<void> collage_xnnpack_query_operator(const collage::xnnpack_toolchain::Operation& operation,
                                                                std::span<const collage::Tensor> constants) {
  return collage::xnnpack_toolchain::Query(operation, constants);
}
