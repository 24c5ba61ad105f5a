// c_api.cc: executables and instances for C. Every function checks its arguments and translates exceptions; all else is
// the C++ API's.
#include "collage/runtime/c_api.h"

#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "collage/runtime/executable.h"
#include "collage/support/error.h"
#include "runtime/c_api_error.h"
#include "runtime/c_api_tensor.h"
#include "support/edit_distance.h"
#include "support/file.h"

namespace collage {
namespace {

constexpr std::string_view kExecutableMagic = "CLGE";
constexpr std::string_view kBytecodeMagic{"CLGVM\0\0", 7};

/// What handles of one model share, and what the texts and shapes given out belong to.
struct Model {
  explicit Model(Executable the_executable)
      : executable(std::move(the_executable)), inputs(executable.inputs()), outputs(executable.outputs()) {}

  Executable executable;
  std::vector<PortInfo> inputs;
  std::vector<PortInfo> outputs;
};

template <typename T>
T& NotNull(T* pointer, const char* what) {
  if (pointer == nullptr) throw Error(ErrorCategory::kInput, fmt::format("the {} is null", what));
  return *pointer;
}

collage_file_kind KindOf(std::string_view begin) {
  if (begin.starts_with(kExecutableMagic)) return COLLAGE_FILE_EXECUTABLE;
  if (begin.starts_with(kBytecodeMagic)) return COLLAGE_FILE_BYTECODE;
  return COLLAGE_FILE_OTHER;
}

collage_file_kind KindOfFile(const char* path) {
  const std::shared_ptr<MappedFile> file = MappedFile::Open(path);
  return KindOf({reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()});
}

void RefuseBytecode(collage_file_kind kind, const std::string& where) {
  if (kind != COLLAGE_FILE_BYTECODE) return;
  throw Error(ErrorCategory::kUnsupported, "the file is bytecode, a program with control flow, not an executable",
              where, "run it with `collage run`, from Python, or with collage/vm/vm.h of libcollage");
}

const PortInfo& PortAt(const std::vector<PortInfo>& ports, size_t index, const char* what) {
  if (index < ports.size()) return ports[index];
  throw Error(ErrorCategory::kInput, fmt::format("there is no {} {}", what, index), "",
              fmt::format("the executable has {} {}{}", ports.size(), what, ports.size() == 1 ? "" : "s"));
}

size_t FindPort(const std::vector<PortInfo>& ports, const std::string& name, const char* what) {
  std::vector<std::string> names;
  for (const PortInfo& port : ports) {
    if (port.name == name) return names.size();
    names.push_back(port.name);
  }
  const std::vector<std::string> near = NearMisses(name, names);
  std::string all;
  for (const std::string& known : names) all += (all.empty() ? "'" : ", '") + known + "'";
  throw Error(ErrorCategory::kInput, fmt::format("there is no {} '{}'", what, name), "",
              near.empty() ? "there are " + all : fmt::format("did you mean '{}'?", near[0]));
}

/// Fills in as much as a caller compiled with `size` bytes knows of.
void Describe(const PortInfo& port, collage_tensor_info* info, size_t size) {
  NotNull(info, "tensor info");
  constexpr size_t kFirstSize = sizeof(collage_tensor_info);  // of ABI version 1: nobody knows less
  if (size < kFirstSize) {
    throw Error(ErrorCategory::kInput, fmt::format("a tensor info of {} bytes, not {}", size, kFirstSize), "",
                "give sizeof(collage_tensor_info)");
  }
  const collage_tensor_info known{port.name.c_str(), ToC(port.dtype), static_cast<int32_t>(port.shape.size()),
                                  port.shape.data(), CheckedBytes(port.shape, port.dtype).value_or(0)};
  std::memset(static_cast<void*>(info), 0, size);
  *info = known;
}

}  // namespace
}  // namespace collage

using collage::Describe;
using collage::Error;
using collage::ErrorCategory;
using collage::FindPort;
using collage::Guarded;
using collage::NotNull;
using collage::PortAt;
using collage::PortInfo;
using collage::Tensor;

struct [[gnu::visibility("hidden")]] collage_executable {
  std::shared_ptr<const collage::Model> model;
};

struct [[gnu::visibility("hidden")]] collage_instance {
  explicit collage_instance(std::shared_ptr<const collage::Model> the_model)
      : model(std::move(the_model)), instance(model->executable), inputs(model->inputs.size()) {
    for (const PortInfo& port : model->inputs) shapes_of_inputs.push_back(port.shape);
    for (const PortInfo& port : model->outputs) shapes_of_outputs.push_back(port.shape);
  }

  std::shared_ptr<const collage::Model> model;
  collage::ExecutionInstance instance;
  std::vector<Tensor> inputs;                                      ///< what is bound
  std::vector<Tensor> owned = std::vector<Tensor>(inputs.size());  ///< memory of our own for inputs, once it was needed
  std::vector<collage::Shape> shapes_of_inputs;                    ///< what views point to, which C may write
  std::vector<collage::Shape> shapes_of_outputs;
  std::atomic<bool> in_use{false};

  void BindInput(size_t index, const Tensor& tensor) {
    instance.SetInput(index, tensor);
    inputs[index] = tensor;
  }

  /// Memory of our own, bound.
  const Tensor& OwnInput(size_t index) {
    const PortInfo& port = model->inputs[index];
    if (!owned[index].defined()) owned[index] = Tensor::Zeros(port.shape, port.dtype);
    if (inputs[index].raw() != owned[index].raw()) BindInput(index, owned[index]);
    return owned[index];
  }
};

namespace {

/// The time in which one thread uses an instance.
class Use {
 public:
  explicit Use(collage_instance* instance) : instance_(NotNull(instance, "instance")) {
    if (instance_.in_use.exchange(true, std::memory_order_acquire)) {
      throw Error(ErrorCategory::kInput, "the instance is in use by another thread", "",
                  "create an instance for each thread");
    }
  }
  ~Use() { instance_.in_use.store(false, std::memory_order_release); }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  collage_instance* operator->() const { return &instance_; }
  const PortInfo& input(size_t index) const { return PortAt(instance_.model->inputs, index, "input"); }
  const PortInfo& output(size_t index) const { return PortAt(instance_.model->outputs, index, "output"); }

 private:
  collage_instance& instance_;
};

std::string Called(const char* what, const PortInfo& port) { return fmt::format("{} '{}'", what, port.name); }

void Show(const Tensor& tensor, collage::Shape& shape, collage_tensor* view) {
  shape = tensor.shape();
  NotNull(view, "tensor") = {tensor.raw(),     {static_cast<decltype(view->device.device_type)>(COLLAGE_DEVICE_CPU), 0},
                             tensor.rank(),    collage::ToC(tensor.dtype()),
                             shape.data(),     nullptr,
                             /*byte_offset=*/0};
}

const collage::Model& ModelOf(const collage_executable* executable) { return *NotNull(executable, "executable").model; }

}  // namespace

extern "C" {

collage_status collage_file_get_kind(const char* path, collage_file_kind* kind) {
  return Guarded([&] {
    NotNull(path, "path");
    NotNull(kind, "result") = collage::KindOfFile(path);
  });
}

collage_status collage_executable_load(const char* path, collage_executable** executable) {
  return Guarded([&] {
    NotNull(path, "path");
    NotNull(executable, "result");
    collage::RefuseBytecode(collage::KindOfFile(path), path);
    auto model = std::make_shared<const collage::Model>(collage::Executable::Load(path));
    *executable = new collage_executable{std::move(model)};
  });
}

collage_status collage_executable_load_memory(const void* bytes, size_t size, const char* name,
                                              collage_executable** executable) {
  return Guarded([&] {
    NotNull(executable, "result");
    if (bytes == nullptr && size > 0) throw Error(ErrorCategory::kInput, "the bytes are null");
    const std::string where = name == nullptr ? "memory" : name;
    collage::RefuseBytecode(collage::KindOf({static_cast<const char*>(bytes), size}), where);
    auto model = std::make_shared<const collage::Model>(
        collage::Executable::FromBytes({static_cast<const std::byte*>(bytes), size}, where));
    *executable = new collage_executable{std::move(model)};
  });
}

collage_status collage_executable_verify(const char* path) {
  return Guarded([&] {
    NotNull(path, "path");
    collage::RefuseBytecode(collage::KindOfFile(path), path);
    collage::Executable::Verify(path);
  });
}

void collage_executable_release(collage_executable* executable) { delete executable; }

collage_status collage_executable_num_inputs(const collage_executable* executable, size_t* count) {
  return Guarded([&] { NotNull(count, "result") = ModelOf(executable).inputs.size(); });
}

collage_status collage_executable_num_outputs(const collage_executable* executable, size_t* count) {
  return Guarded([&] { NotNull(count, "result") = ModelOf(executable).outputs.size(); });
}

collage_status collage_executable_get_input(const collage_executable* executable, size_t index,
                                            collage_tensor_info* info, size_t info_size) {
  return Guarded([&] { Describe(PortAt(ModelOf(executable).inputs, index, "input"), info, info_size); });
}

collage_status collage_executable_get_output(const collage_executable* executable, size_t index,
                                             collage_tensor_info* info, size_t info_size) {
  return Guarded([&] { Describe(PortAt(ModelOf(executable).outputs, index, "output"), info, info_size); });
}

collage_status collage_executable_find_input(const collage_executable* executable, const char* name, size_t* index) {
  return Guarded([&] {
    NotNull(name, "name");
    NotNull(index, "result") = FindPort(ModelOf(executable).inputs, name, "input");
  });
}

collage_status collage_executable_find_output(const collage_executable* executable, const char* name, size_t* index) {
  return Guarded([&] {
    NotNull(name, "name");
    NotNull(index, "result") = FindPort(ModelOf(executable).outputs, name, "output");
  });
}

collage_status collage_executable_num_threads(const collage_executable* executable, int32_t* num_threads) {
  return Guarded([&] { NotNull(num_threads, "result") = ModelOf(executable).executable.plan().num_threads; });
}

collage_status collage_executable_metadata(const collage_executable* executable, const char** json) {
  return Guarded([&] { NotNull(json, "result") = ModelOf(executable).executable.plan().metadata_json.c_str(); });
}

collage_status collage_instance_create(const collage_executable* executable, collage_instance** instance) {
  return Guarded([&] {
    NotNull(instance, "result");
    NotNull(executable, "executable");
    *instance = new collage_instance(executable->model);
  });
}

void collage_instance_release(collage_instance* instance) { delete instance; }

collage_status collage_instance_bind_input(collage_instance* instance, size_t index, const void* data,
                                           size_t size_bytes) {
  return Guarded([&] {
    const Use use(instance);
    const PortInfo& port = use.input(index);
    // Inputs are only read; a tensor does not tell.
    use->BindInput(index, collage::ViewOf(const_cast<void*>(data), size_bytes, port, Called("input", port)));
  });
}

collage_status collage_instance_bind_input_tensor(collage_instance* instance, size_t index,
                                                  const collage_tensor* tensor) {
  return Guarded([&] {
    const Use use(instance);
    use->BindInput(index, collage::ViewOf(tensor, Called("input", use.input(index))));
  });
}

collage_status collage_instance_copy_input(collage_instance* instance, size_t index, const void* data,
                                           size_t size_bytes) {
  return Guarded([&] {
    const Use use(instance);
    const PortInfo& port = use.input(index);
    collage::CheckBuffer(data, size_bytes, port, Called("input", port));
    const Tensor& own = use->OwnInput(index);
    if (size_bytes > 0) std::memmove(own.raw(), data, size_bytes);
  });
}

collage_status collage_instance_bind_output(collage_instance* instance, size_t index, void* data, size_t size_bytes) {
  return Guarded([&] {
    const Use use(instance);
    const PortInfo& port = use.output(index);
    use->instance.SetOutput(index, collage::ViewOf(data, size_bytes, port, Called("output", port)));
  });
}

collage_status collage_instance_bind_output_tensor(collage_instance* instance, size_t index,
                                                   const collage_tensor* tensor) {
  return Guarded([&] {
    const Use use(instance);
    use->instance.SetOutput(index, collage::ViewOf(tensor, Called("output", use.output(index))));
  });
}

collage_status collage_instance_copy_output(collage_instance* instance, size_t index, void* data, size_t size_bytes) {
  return Guarded([&] {
    const Use use(instance);
    const PortInfo& port = use.output(index);
    collage::CheckBuffer(data, size_bytes, port, Called("output", port));
    if (size_bytes > 0) std::memmove(data, use->instance.Output(index).raw(), size_bytes);
  });
}

collage_status collage_instance_get_input(collage_instance* instance, size_t index, collage_tensor* tensor) {
  return Guarded([&] {
    const Use use(instance);
    use.input(index);
    NotNull(tensor, "tensor");
    const Tensor& bound = use->inputs[index].defined() ? use->inputs[index] : use->OwnInput(index);
    Show(bound, use->shapes_of_inputs[index], tensor);
  });
}

collage_status collage_instance_get_output(collage_instance* instance, size_t index, collage_tensor* tensor) {
  return Guarded([&] {
    const Use use(instance);
    use.output(index);
    Show(use->instance.Output(index), use->shapes_of_outputs[index], tensor);
  });
}

collage_status collage_instance_run(collage_instance* instance) {
  return Guarded([&] {
    const Use use(instance);
    use->instance.Run();
  });
}

}  // extern "C"
