// loader.cc: kernels from blobs that hold an ONNX model. A blob: the length of a text (8 bytes, little endian), the
// text, JSON {"library": where ONNX Runtime was, "version": …, "inputs" and "outputs": [{"name", "shape",
// "element_type"}]}, the model.
#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "backends/onnxruntime/loader/c_api.h"
#include "collage/runtime/kernel.h"
#include "collage/support/error.h"

namespace collage::onnxruntime {
namespace {

using Json = nlohmann::json;

constexpr const char* kHint = "install it with pip install onnxruntime, or name its library in $COLLAGE_ONNXRUNTIME";

/// The library and its one environment, which live as long as the process.
class Library {
 public:
  /// Opens it when it is first asked for. Throws kUnavailable with the loader's reason.
  static Library& Get(const std::string& hinted) {
    static std::mutex mutex;
    static Library* library = nullptr;
    const std::lock_guard lock(mutex);
    if (library == nullptr) library = new Library(hinted);
    return *library;
  }

  template <typename Entry, typename... Args>
  auto Call(Args... args) const {
    return Entry::Of(api_)(args...);
  }

  /// Throws `category` when ONNX Runtime reports an error.
  template <typename Entry, typename... Args>
  void Check(ErrorCategory category, const char* doing, Args... args) const {
    Status* status = Call<Entry>(args...);
    if (status == nullptr) return;
    const std::string message = Call<GetErrorMessage>(static_cast<const Status*>(status));
    Call<ReleaseStatus>(status);
    throw Error(category, fmt::format("ONNX Runtime cannot {}: {}", doing, message));
  }

  const Env* env() const { return env_; }
  const MemoryInfo* memory() const { return memory_; }
  const std::string& version() const { return version_; }

 private:
  explicit Library(const std::string& hinted) {
    void* handle = Open(hinted);
    const auto get_base = reinterpret_cast<const ApiBase* (*)()>(dlsym(handle, "OrtGetApiBase"));
    if (get_base == nullptr) {
      throw Error(ErrorCategory::kUnavailable, "ONNX Runtime's library has no OrtGetApiBase", "", kHint);
    }
    const ApiBase* base = get_base();
    version_ = base->version();
    api_ = base->get_api(kApiVersion);
    if (api_ == nullptr) {
      throw Error(ErrorCategory::kUnavailable, fmt::format("ONNX Runtime {} is too old", version_), "", kHint);
    }
    Check<CreateEnv>(ErrorCategory::kUnavailable, "start", kLogErrors, "collage", &env_);
    Check<CreateCpuMemoryInfo>(ErrorCategory::kUnavailable, "start", kDeviceAllocator, kMemTypeDefault, &memory_);
  }

  /// What may be the library, in the order in which it is tried.
  static std::vector<std::string> Candidates(const std::string& hinted) {
    std::vector<std::string> paths;
    if (const char* chosen = std::getenv("COLLAGE_ONNXRUNTIME")) paths.emplace_back(chosen);
    if (!hinted.empty()) paths.push_back(hinted);
    std::error_code ignored;
    for (const auto& file : std::filesystem::directory_iterator(COLLAGE_ONNXRUNTIME_FOLDER, ignored)) {
      const std::string name = file.path().filename().string();
      if (name.starts_with("libonnxruntime.so")) paths.push_back(file.path().string());
    }
    paths.emplace_back("libonnxruntime.so.1");
    return paths;
  }

  static void* Open(const std::string& hinted) {
    std::string reasons;
    for (const std::string& path : Candidates(hinted)) {
      if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
      reasons += (reasons.empty() ? "" : "; ") + std::string(dlerror());
    }
    throw Error(ErrorCategory::kUnavailable, "ONNX Runtime's library cannot be opened: " + reasons, "", kHint);
  }

  const void* const* api_ = nullptr;
  Env* env_ = nullptr;
  MemoryInfo* memory_ = nullptr;
  std::string version_;
};

struct Port {
  std::string name;
  std::vector<int64_t> shape;
  int element_type = 0;  ///< TensorProto.DataType, which is ONNXTensorElementDataType, too
  size_t bytes = 0;
};

std::vector<Port> PortsFrom(const Json& rows) {
  std::vector<Port> ports;
  for (const Json& row : rows) {
    ports.push_back({row.at("name"), row.at("shape"), row.at("element_type"), row.at("bytes")});
  }
  return ports;
}

class OnnxRuntimeKernel : public Kernel {
 public:
  OnnxRuntimeKernel(const Library& library, std::span<const std::byte> model, std::vector<Port> inputs,
                    std::vector<Port> outputs, int num_threads)
      : library_(library), inputs_(std::move(inputs)), outputs_(std::move(outputs)) {
    SessionOptions* options = nullptr;
    const auto check = [&]<typename Entry>(Entry, auto... args) {
      library_.Check<Entry>(ErrorCategory::kCorrupt, "read a kernel", args...);
    };
    check(CreateSessionOptions{}, &options);
    const std::unique_ptr<SessionOptions, std::function<void(SessionOptions*)>> owner(
        options, [this](SessionOptions* dead) { library_.Call<ReleaseSessionOptions>(dead); });
    check(SetIntraOpNumThreads{}, options, num_threads);
    check(SetInterOpNumThreads{}, options, 1);
    check(SetSessionGraphOptimizationLevel{}, options, kOptimizeAll);
    // Between runs its threads must not take processors from other kernels' threads.
    check(AddSessionConfigEntry{}, options, "session.force_spinning_stop", "1");
    check(CreateSessionFromArray{}, library_.env(), static_cast<const void*>(model.data()), model.size(),
          static_cast<const SessionOptions*>(options), &session_);
    check(CreateIoBinding{}, session_, &binding_);
  }

  ~OnnxRuntimeKernel() override {
    ReleaseValues();
    if (binding_ != nullptr) library_.Call<ReleaseIoBinding>(binding_);
    if (session_ != nullptr) library_.Call<ReleaseSession>(session_);
  }

  void Bind(std::span<void* const> inputs, std::span<void* const> outputs, void*) override {
    ReleaseValues();
    for (size_t i = 0; i < inputs.size(); ++i) {
      library_.Check<BindInput>(ErrorCategory::kInternal, "bind an input", binding_, inputs_.at(i).name.c_str(),
                                static_cast<const Value*>(Wrap(inputs_[i], inputs[i])));
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      library_.Check<BindOutput>(ErrorCategory::kInternal, "bind an output", binding_, outputs_.at(i).name.c_str(),
                                 static_cast<const Value*>(Wrap(outputs_[i], outputs[i])));
    }
  }

  void Run() override {
    library_.Check<RunWithBinding>(ErrorCategory::kInternal, "run a kernel", session_,
                                   static_cast<const RunOptions*>(nullptr), static_cast<const IoBinding*>(binding_));
  }

 private:
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
  Session* session_ = nullptr;
  IoBinding* binding_ = nullptr;
  std::vector<Value*> values_;
};

class OnnxRuntimeLoader : public KernelLoader {
 public:
  std::unique_ptr<Kernel> Load(const KernelImage& image) override {
    uint64_t size = 0;
    if (image.blob.size() < sizeof size) Damaged("too short");
    std::memcpy(&size, image.blob.data(), sizeof size);
    const std::span<const std::byte> rest = image.blob.subspan(sizeof size);
    if (size > rest.size()) Damaged("its description is cut off");
    const std::string_view text(reinterpret_cast<const char*>(rest.data()), size);
    try {
      const Json json = Json::parse(text);
      const Library& library = Library::Get(json.value("library", ""));
      return std::make_unique<OnnxRuntimeKernel>(library, rest.subspan(size), PortsFrom(json.at("inputs")),
                                                 PortsFrom(json.at("outputs")), image.num_threads);
    } catch (const Json::exception& error) {
      Damaged(error.what());
    }
  }

 private:
  [[noreturn]] static void Damaged(const std::string& how) {
    throw Error(ErrorCategory::kCorrupt, "no kernel of ONNX Runtime: " + how);
  }
};

}  // namespace
}  // namespace collage::onnxruntime

extern "C" collage::KernelLoader* collage_make_kernel_loader() { return new collage::onnxruntime::OnnxRuntimeLoader(); }
