// c_api.cc: executables and instances for C, of plans and of programs. Every function checks its arguments and
// translates exceptions; all else is the C++ API's.
#include "collage/runtime/c_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "collage/runtime/executable.h"
#include "collage/support/error.h"
#include "runtime/c_api/c_api_error.h"
#include "runtime/c_api/c_api_tensor.h"
#include "runtime/plan/program.h"
#include "runtime/plan/signature.h"
#include "support/edit_distance.h"
#include "support/file.h"

namespace collage {
namespace {

constexpr std::string_view kExecutableMagic = "CLGE";
constexpr std::string_view kBytecodeMagic = "CLGP";
constexpr std::string_view kFormerBytecodeMagic{"CLGVM\0\0", 7};

/// State that the handles of one model share; owns the texts and shapes given out.
struct Model {
  explicit Model(Executable executable)
      : inputs(executable.inputs()),
        outputs(executable.outputs()),
        num_threads(executable.plan().num_threads),
        metadata_json(executable.plan().metadata_json),
        made(std::move(executable)) {}
  explicit Model(std::shared_ptr<const TensorProgram> program)
      : inputs(program->inputs()),
        outputs(program->outputs()),
        num_threads(program->num_threads()),
        metadata_json(program->metadata_json()),
        made(std::move(program)) {}

  std::vector<PortInfo> inputs;
  std::vector<PortInfo> outputs;
  int32_t num_threads;
  std::string metadata_json;
  std::variant<Executable, std::shared_ptr<const TensorProgram>> made;
};

/// An instance of a plan or of a program.
using AnyInstance = std::variant<ExecutionInstance, ProgramInstance>;

AnyInstance InstanceOf(const Model& model) {
  if (const auto* executable = std::get_if<Executable>(&model.made)) return ExecutionInstance(*executable);
  return ProgramInstance(std::get<std::shared_ptr<const TensorProgram>>(model.made));
}

template <typename T>
T& NotNull(T* pointer, const char* what) {
  if (pointer == nullptr) throw Error(ErrorCategory::kInput, fmt::format("the {} is null", what));
  return *pointer;
}

collage_file_kind KindOf(std::string_view begin) {
  if (begin.starts_with(kExecutableMagic)) return COLLAGE_FILE_EXECUTABLE;
  if (begin.starts_with(kBytecodeMagic) || begin.starts_with(kFormerBytecodeMagic)) return COLLAGE_FILE_BYTECODE;
  return COLLAGE_FILE_OTHER;
}

collage_file_kind KindOf(std::span<const std::byte> bytes) {
  return KindOf({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::shared_ptr<const Model> LoadFile(const char* path) {
  const std::shared_ptr<MappedFile> file = MappedFile::Open(path);
  if (KindOf(file->bytes()) != COLLAGE_FILE_BYTECODE) return std::make_shared<const Model>(Executable::Load(path));
  CheckSignature(file->bytes(), path);
  return std::make_shared<const Model>(LoadTensorProgram(file->bytes(), file, path));
}

std::shared_ptr<const Model> LoadBytes(std::span<const std::byte> bytes, const std::string& name) {
  if (KindOf(bytes) != COLLAGE_FILE_BYTECODE) return std::make_shared<const Model>(Executable::FromBytes(bytes, name));
  RefuseUnsigned(name);
  const Tensor copy = Tensor::Empty({static_cast<int64_t>(bytes.size())}, kUInt8);
  std::memcpy(copy.raw(), bytes.data(), bytes.size());
  return std::make_shared<const Model>(
      LoadTensorProgram({copy.data<std::byte>(), bytes.size()}, std::make_shared<Tensor>(copy), name));
}

std::shared_ptr<const Model> LoadStatic(std::span<std::byte> bytes, const std::string& name) {
  if (KindOf(bytes) == COLLAGE_FILE_BYTECODE) {
    return std::make_shared<const Model>(LoadTensorProgram(bytes, nullptr, name));
  }
  return std::make_shared<const Model>(Executable::FromMemory(bytes, nullptr, name));
}

void VerifyFile(const char* path) {
  const std::shared_ptr<MappedFile> file = MappedFile::Open(path);
  if (KindOf(file->bytes()) != COLLAGE_FILE_BYTECODE) return Executable::Verify(path);
  LoadTensorProgram(file->bytes(), file, path)->CheckConstants();
}

bool IsKnown(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](int64_t size) { return size >= 0; });
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
      : model(std::move(the_model)),
        instance(collage::InstanceOf(*model)),
        input_ports(model->inputs),
        output_ports(model->outputs),
        inputs(model->inputs.size()) {
    for (const PortInfo& port : model->inputs) shapes_of_inputs.push_back(port.shape);
    for (const PortInfo& port : model->outputs) shapes_of_outputs.push_back(port.shape);
  }

  std::shared_ptr<const collage::Model> model;
  collage::AnyInstance instance;
  std::vector<PortInfo> input_ports;                               ///< the model's, with the shapes of what is bound
  std::vector<PortInfo> output_ports;                              ///< the model's, with the shapes of the last run's
  std::vector<Tensor> inputs;                                      ///< what is bound
  std::vector<Tensor> owned = std::vector<Tensor>(inputs.size());  ///< memory of our own for inputs, once it was needed
  std::vector<collage::Shape> shapes_of_inputs;                    ///< what views point to, which C may write
  std::vector<collage::Shape> shapes_of_outputs;
  std::atomic<bool> in_use{false};

  void BindInput(size_t index, const Tensor& tensor) {
    std::visit([&](auto& any) { any.SetInput(index, tensor); }, instance);
    inputs[index] = tensor;
    input_ports[index].shape = tensor.shape();
  }
  void BindOutput(size_t index, const Tensor& tensor) {
    std::visit([&](auto& any) { any.SetOutput(index, tensor); }, instance);
  }
  const Tensor& Output(size_t index) const {
    return std::visit([&](const auto& any) -> const Tensor& { return any.Output(index); }, instance);
  }
  void Run() {
    std::visit([](auto& any) { any.Run(); }, instance);
    if (!std::holds_alternative<collage::ProgramInstance>(instance)) return;  // shapes are the same in every run
    for (size_t i = 0; i < output_ports.size(); ++i) output_ports[i].shape = Output(i).shape();
  }

  /// Memory of our own, bound.
  const Tensor& OwnInput(size_t index) {
    const PortInfo& port = input_ports[index];
    if (!owned[index].defined() || owned[index].shape() != port.shape) {
      owned[index] = Tensor::Zeros(port.shape, port.dtype);
    }
    if (!inputs[index].defined() || inputs[index].raw() != owned[index].raw()) BindInput(index, owned[index]);
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
  const PortInfo& input(size_t index) const { return PortAt(instance_.input_ports, index, "input"); }
  const PortInfo& output(size_t index) const { return PortAt(instance_.output_ports, index, "output"); }
  /// Returns an input whose shape must be known by now.
  const PortInfo& known_input(size_t index) const {
    const PortInfo& port = input(index);
    if (collage::IsKnown(port.shape)) return port;
    throw Error(ErrorCategory::kInput, fmt::format("the shape of input '{}' is not known yet", port.name), "",
                "give it by collage_instance_set_input_shape, or bind a tensor");
  }
  const PortInfo& known_output(size_t index) const {
    const PortInfo& port = output(index);
    if (collage::IsKnown(port.shape)) return port;
    throw Error(ErrorCategory::kInput, fmt::format("the shape of output '{}' is known after a run only", port.name));
  }
  /// Returns an output whose shape must be the same in every run.
  const PortInfo& fixed_output(size_t index) const {
    const PortInfo& port = PortAt(instance_.model->outputs, index, "output");
    if (collage::IsKnown(port.shape)) return port;
    throw Error(ErrorCategory::kInput, fmt::format("output '{}' may be of another shape in every run", port.name), "",
                "it cannot be bound: copy it, or read it where it lies");
  }

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
    NotNull(kind, "result") = collage::KindOf(collage::MappedFile::Open(path)->bytes());
  });
}

collage_status collage_executable_load(const char* path, collage_executable** executable) {
  return Guarded([&] {
    NotNull(path, "path");
    NotNull(executable, "result");
    *executable = new collage_executable{collage::LoadFile(path)};
  });
}

collage_status collage_executable_load_memory(const void* bytes, size_t size, const char* name,
                                              collage_executable** executable) {
  return Guarded([&] {
    NotNull(executable, "result");
    if (bytes == nullptr && size > 0) throw Error(ErrorCategory::kInput, "the bytes are null");
    const std::string where = name == nullptr ? "memory" : name;
    *executable = new collage_executable{collage::LoadBytes({static_cast<const std::byte*>(bytes), size}, where)};
  });
}

collage_status collage_executable_load_static(const void* bytes, size_t size, const char* name,
                                              collage_executable** executable) {
  return Guarded([&] {
    NotNull(executable, "result");
    if (bytes == nullptr && size > 0) throw Error(ErrorCategory::kInput, "the bytes are null");
    const std::string where = name == nullptr ? "memory" : name;
    // Nothing is written to what is mapped, or lies in read-only data: tensors just have no type for that.
    std::span<std::byte> all(static_cast<std::byte*>(const_cast<void*>(bytes)), size);
    *executable = new collage_executable{collage::LoadStatic(all, where)};
  });
}

collage_status collage_executable_verify(const char* path) {
  return Guarded([&] {
    NotNull(path, "path");
    collage::VerifyFile(path);
  });
}

collage_status collage_require_signatures(const char* public_key) {
  return Guarded([&] { collage::RequireSignatures(&NotNull(public_key, "path")); });
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
  return Guarded([&] { NotNull(num_threads, "result") = ModelOf(executable).num_threads; });
}

collage_status collage_executable_metadata(const collage_executable* executable, const char** json) {
  return Guarded([&] { NotNull(json, "result") = ModelOf(executable).metadata_json.c_str(); });
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
    const PortInfo& port = use.known_input(index);
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
    const PortInfo& port = use.known_input(index);
    collage::CheckBuffer(data, size_bytes, port, Called("input", port));
    const Tensor& own = use->OwnInput(index);
    if (size_bytes > 0) std::memmove(own.raw(), data, size_bytes);
  });
}

collage_status collage_instance_bind_output(collage_instance* instance, size_t index, void* data, size_t size_bytes) {
  return Guarded([&] {
    const Use use(instance);
    const PortInfo& port = use.fixed_output(index);
    use->BindOutput(index, collage::ViewOf(data, size_bytes, port, Called("output", port)));
  });
}

collage_status collage_instance_bind_output_tensor(collage_instance* instance, size_t index,
                                                   const collage_tensor* tensor) {
  return Guarded([&] {
    const Use use(instance);
    use->BindOutput(index, collage::ViewOf(tensor, Called("output", use.fixed_output(index))));
  });
}

collage_status collage_instance_copy_output(collage_instance* instance, size_t index, void* data, size_t size_bytes) {
  return Guarded([&] {
    const Use use(instance);
    const PortInfo& port = use.known_output(index);
    collage::CheckBuffer(data, size_bytes, port, Called("output", port));
    if (size_bytes > 0) std::memmove(data, use->Output(index).raw(), size_bytes);
  });
}

collage_status collage_instance_get_input(collage_instance* instance, size_t index, collage_tensor* tensor) {
  return Guarded([&] {
    const Use use(instance);
    use.known_input(index);
    NotNull(tensor, "tensor");
    const Tensor& bound = use->inputs[index].defined() ? use->inputs[index] : use->OwnInput(index);
    Show(bound, use->shapes_of_inputs[index], tensor);
  });
}

collage_status collage_instance_get_output(collage_instance* instance, size_t index, collage_tensor* tensor) {
  return Guarded([&] {
    const Use use(instance);
    use.known_output(index);
    Show(use->Output(index), use->shapes_of_outputs[index], tensor);
  });
}

collage_status collage_instance_run(collage_instance* instance) {
  return Guarded([&] {
    const Use use(instance);
    use->Run();
  });
}

collage_status collage_instance_set_input_shape(collage_instance* instance, size_t index, const int64_t* shape,
                                                int32_t ndim) {
  return Guarded([&] {
    const Use use(instance);
    const PortInfo& port = use.input(index);
    if (ndim < 0 || (ndim > 0 && shape == nullptr)) {
      throw Error(ErrorCategory::kInput, Called("input", port) + ": the shape is null, or of a negative length");
    }
    collage::Shape wanted(shape, shape + ndim);
    if (!collage::ShapeFits(wanted, use->model->inputs[index].shape) ||
        !collage::CheckedBytes(wanted, port.dtype).has_value()) {
      throw Error(ErrorCategory::kInput,
                  fmt::format("{} wants {}, got {}", Called("input", port),
                              collage::ToString(use->model->inputs[index].shape), collage::ToString(wanted)));
    }
    if (wanted == port.shape) return;
    use->input_ports[index].shape = std::move(wanted);
    use->OwnInput(index);
  });
}

collage_status collage_instance_get_output_info(collage_instance* instance, size_t index, collage_tensor_info* info,
                                                size_t info_size) {
  return Guarded([&] {
    const Use use(instance);
    Describe(use.known_output(index), info, info_size);
  });
}

}  // extern "C"
