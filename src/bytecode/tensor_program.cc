// tensor_program.cc: programs whose @main takes and gives tensors, for those who know no more than these.
#include <fmt/format.h>

#include <algorithm>

#include "bytecode/bytecode.h"
#include "collage/support/error.h"
#include "collage/vm/vm.h"
#include "ir/tensor_types.h"
#include "runtime/plan/program.h"

namespace collage::vm {
namespace {

PortInfo PortOf(std::string name, const Type& type, const std::string& file) {
  const TensorTypeNode& tensor = *AsTensorType(type);
  PortInfo port{std::move(name), {}, tensor.dtype()};
  Shape known;
  for (const Dim& dim : tensor.shape()) {
    port.shape.push_back(dim.is_any() ? -1 : dim.size());
    if (!dim.is_any()) known.push_back(dim.size());
  }
  if (!CheckedBytes(known, tensor.dtype())) {
    throw Error(ErrorCategory::kCorrupt, fmt::format("'{}' of the program is too large for any memory", port.name),
                file);
  }
  return port;
}

class MachineOfTensors : public TensorProgram::Machine {
 public:
  explicit MachineOfTensors(Executable executable) : machine_(std::move(executable)) {}
  std::vector<Tensor> Run(const std::vector<Tensor>& inputs, const std::vector<Tensor>& destinations) override {
    return FlattenTensors(machine_.Invoke("main", {inputs.begin(), inputs.end()}, {.destinations = destinations}));
  }

 private:
  vm::Machine machine_;
};

class LoadedProgram : public TensorProgram {
 public:
  LoadedProgram(Executable executable, const std::string& name) : executable_(std::move(executable)) {
    const Program& program = executable_.program();
    const auto main = std::find(program.globals.begin(), program.globals.end(), "main");
    if (main == program.globals.end()) {
      throw Error(ErrorCategory::kUnsupported, "the program has no function '@main'", name);
    }
    Describe(program.functions[static_cast<size_t>(main - program.globals.begin())], name);
    const std::vector<std::string> names = executable_.ResultNames("main");
    for (size_t i = 0; i < outputs_.size(); ++i) outputs_[i].name = names[i];
    std::string regions;
    for (const KernelFunction& kernel : program.kernels) {
      const ExecutionPlan& plan = kernel.executable.plan();
      num_threads_ = std::max(num_threads_, plan.num_threads);
      regions += (regions.empty() ? "" : ", ") + plan.metadata_json;
    }
    for (const DynamicKernel& kernel : program.dynamic_kernels)
      num_threads_ = std::max(num_threads_, kernel.num_threads);
    metadata_json_ = fmt::format("{{\"regions\": [{}]}}", regions);
  }

  const std::vector<PortInfo>& inputs() const override { return inputs_; }
  const std::vector<PortInfo>& outputs() const override { return outputs_; }
  int num_threads() const override { return num_threads_; }
  const std::string& metadata_json() const override { return metadata_json_; }
  std::unique_ptr<Machine> NewMachine() const override { return std::make_unique<MachineOfTensors>(executable_); }
  void CheckConstants() const override { executable_.CheckConstants(); }

 private:
  void Describe(const VmFunction& main, const std::string& name) {
    for (size_t i = 0; i < main.params.size(); ++i) {
      if (main.params[i] == nullptr || AsTensorType(main.params[i]) == nullptr) {
        throw Error(ErrorCategory::kUnsupported,
                    fmt::format("parameter '{}' of the program is {}, not a tensor", main.param_names[i],
                                main.params[i] == nullptr ? "of no declared type" : ToString(main.params[i])),
                    name, "values of other types are for collage/vm/vm.h of libcollage");
      }
      inputs_.push_back(PortOf(main.param_names[i], main.params[i], name));
    }
    if (main.result == nullptr || !HasTensorsOnly(main.result)) {
      throw Error(
          ErrorCategory::kUnsupported, "the program is not known to give tensors", name,
          "values of other types are for collage/vm/vm.h of libcollage; what an older release compiled is to be "
          "compiled again");
    }
    for (const Type& type : FlattenTensorTypes(main.result)) outputs_.push_back(PortOf("", type, name));
  }

  Executable executable_;
  std::vector<PortInfo> inputs_;
  std::vector<PortInfo> outputs_;
  int num_threads_ = 1;
  std::string metadata_json_;
};

}  // namespace
}  // namespace collage::vm

extern "C" __attribute__((visibility("default"))) void collage_load_tensor_program(
    std::span<std::byte> bytes, std::shared_ptr<void> owner, const std::string& name,
    std::shared_ptr<const collage::TensorProgram>& program) {
  program = std::make_shared<collage::vm::LoadedProgram>(
      collage::vm::Executable::Deserialize(bytes, std::move(owner), name), name);
}
