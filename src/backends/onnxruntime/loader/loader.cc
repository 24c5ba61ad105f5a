// loader.cc: kernels from blobs that hold an ONNX model.
#include <algorithm>
#include <memory>
#include <vector>

#include "backends/onnxruntime/blob.h"
#include "backends/onnxruntime/loader/library.h"
#include "collage/runtime/kernel.h"
#include "collage/support/error.h"

namespace collage::onnxruntime {
namespace {

class OnnxRuntimeKernel : public Kernel {
 public:
  OnnxRuntimeKernel(const Library& library, std::span<const std::byte> model, std::vector<Port> inputs,
                    std::vector<Port> outputs, int num_threads)
      : library_(library), inputs_(std::move(inputs)), outputs_(std::move(outputs)) {
    const SessionOptionsPtr options = MakeSessionOptions(library, num_threads);
    const auto check = [&]<typename Entry>(Entry, auto... args) {
      library_.Check<Entry>(ErrorCategory::kCorrupt, "read a kernel", args...);
    };
    check(CreateSessionFromArray{}, library_.env(), static_cast<const void*>(model.data()), model.size(),
          static_cast<const SessionOptions*>(options.get()), &session_);
    check(CreateIoBinding{}, session_, &binding_);
    is_symbolic_ =
        std::ranges::any_of(inputs_, &Port::is_symbolic) || std::ranges::any_of(outputs_, &Port::is_symbolic);
  }

  ~OnnxRuntimeKernel() override {
    ReleaseValues();
    if (binding_ != nullptr) library_.Call<ReleaseIoBinding>(binding_);
    if (session_ != nullptr) library_.Call<ReleaseSession>(session_);
  }

  void Bind(std::span<void* const> inputs, std::span<void* const> outputs, void*) override {
    // The last input of a kernel of any size has all dimensions (collage/target/symbolic_sizes.h).
    const size_t own_inputs = inputs_.size() + (is_symbolic_ ? 1 : 0);
    if (inputs.size() != own_inputs || outputs.size() != outputs_.size()) {
      throw Error(ErrorCategory::kCorrupt, "a kernel of ONNX Runtime has other inputs and outputs than the plan says");
    }
    addresses_.assign(inputs.begin(), inputs.begin() + static_cast<ptrdiff_t>(inputs_.size()));
    addresses_.insert(addresses_.end(), outputs.begin(), outputs.end());
    dimensions_ = is_symbolic_ ? static_cast<const int64_t*>(inputs.back()) : nullptr;
    if (!is_symbolic_) BindValues();
  }

  void Run() override {
    if (is_symbolic_) BindValues();
    library_.Check<RunWithBinding>(ErrorCategory::kInternal, "run a kernel", session_,
                                   static_cast<const RunOptions*>(nullptr), static_cast<const IoBinding*>(binding_));
  }

 private:
  void BindValues() {
    ReleaseValues();
    const int64_t* next = dimensions_;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      library_.Check<BindInput>(ErrorCategory::kInternal, "bind an input", binding_, inputs_[i].name.c_str(),
                                static_cast<const Value*>(Wrap(AtRun(inputs_[i], next), addresses_[i])));
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      void* const data = addresses_[inputs_.size() + i];
      library_.Check<BindOutput>(ErrorCategory::kInternal, "bind an output", binding_, outputs_[i].name.c_str(),
                                 static_cast<const Value*>(Wrap(AtRun(outputs_[i], next), data)));
    }
  }

  /// `port` with the sizes that this run gives it; moves `next` behind them. As it is where no sizes are symbolic.
  static Port AtRun(Port port, const int64_t*& next) {
    if (next == nullptr) return port;
    const size_t rank = port.shape.size();
    const bool is_symbolic = port.is_symbolic();
    port.shape.assign(next, next + rank);
    next += rank;
    for (size_t i = 0; is_symbolic && i < rank; ++i) port.bytes *= static_cast<size_t>(port.shape[i]);
    return port;
  }

  /// A tensor over the executor's memory.
  Value* Wrap(const Port& port, void* data) {
    Value* value = nullptr;
    library_.Check<CreateTensorWithDataAsOrtValue>(ErrorCategory::kInternal, "wrap memory", library_.memory(), data,
                                                   port.bytes, port.shape.data(), port.shape.size(), port.element_type,
                                                   &value);
    values_.push_back(value);
    return value;
  }

  void ReleaseValues() {
    for (Value* value : values_) library_.Call<ReleaseValue>(value);
    values_.clear();
  }

  const Library& library_;
  std::vector<Port> inputs_;
  std::vector<Port> outputs_;
  bool is_symbolic_ = false;
  std::vector<void*> addresses_;         ///< the inputs, then the outputs
  const int64_t* dimensions_ = nullptr;  ///< null unless sizes are symbolic
  Session* session_ = nullptr;
  IoBinding* binding_ = nullptr;
  std::vector<Value*> values_;
};

class OnnxRuntimeLoader : public KernelLoader {
 public:
  std::unique_ptr<Kernel> Load(const KernelImage& image) override {
    BlobParts parts = ReadBlob(image.blob);
    const Library& library = Library::Get(parts.description.library);
    return std::make_unique<OnnxRuntimeKernel>(library, parts.model, std::move(parts.description.inputs),
                                               std::move(parts.description.outputs), image.num_threads);
  }
};

}  // namespace
}  // namespace collage::onnxruntime

extern "C" collage::KernelLoader* collage_make_kernel_loader() { return new collage::onnxruntime::OnnxRuntimeLoader(); }
