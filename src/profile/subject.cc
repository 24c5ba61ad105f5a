// subject.cc: plans and programs behind one interface.
#include "profile/subject.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "bytecode/bytecode.h"
#include "collage/support/error.h"
#include "profile/arena_map.h"
#include "runtime/random_inputs.h"

namespace collage {
namespace {

/// Throws kInput for tensors that no input is called by.
void CheckNames(const RunInputs& inputs, const std::vector<std::string>& names) {
  for (const auto& [name, tensor] : inputs.tensors) {
    if (std::ranges::find(names, name) != names.end()) continue;
    throw Error(ErrorCategory::kInput, fmt::format("the model has no input '{}'", name), "",
                fmt::format("its inputs are '{}'", fmt::join(names, "', '")));
  }
}

int64_t CodeBytes(const Executable& executable) {
  std::map<const std::byte*, size_t> pieces;
  for (size_t i = 0; i < executable.plan().kernels.size(); ++i) {
    const std::span<const std::byte> code = executable.blob(static_cast<int>(i));
    pieces[code.data()] = code.size();
  }
  int64_t bytes = 0;
  for (const auto& [place, size] : pieces) bytes += static_cast<int64_t>(size);
  return bytes;
}

class PlanSubject : public RunSubject {
 public:
  PlanSubject(const Executable& executable, const RunInputs& inputs) : executable_(executable), instance_(executable) {
    std::vector<std::string> names;
    for (const PortInfo& port : executable.inputs()) names.push_back(port.name);
    CheckNames(inputs, names);
    uint64_t seed = 1;
    for (size_t i = 0; i < names.size(); ++i) {
      const PortInfo port = executable.inputs()[i];
      const auto given = inputs.tensors.find(port.name);
      Tensor tensor = given == inputs.tensors.end() ? Tensor::Empty(port.shape, port.dtype) : given->second;
      if (given == inputs.tensors.end()) FillRandom(tensor, seed++);
      instance_.SetInput(i, tensor);
    }
  }

  void Run() override { instance_.Run(); }
  void Run(RunObserver& observer) override { instance_.Run(observer); }
  int num_threads() const override { return executable_.plan().num_threads; }
  std::vector<NamedPlan> plans() const override { return {{"", &executable_.plan()}}; }
  int64_t code_bytes() const override { return CodeBytes(executable_); }
  StepProfile Describe(const RunStep& step) const override {
    return DescribePlanStep(executable_.plan(), "", step.index);
  }
  std::optional<Work> WorkOf(const RunStep& step, std::span<const Tensor>) const override {
    return WorkOfPlanStep(executable_.plan(), step.index);
  }

 private:
  Executable executable_;
  ExecutionInstance instance_;
};

std::vector<Value> InputsOf(const vm::Executable& program, const RunInputs& inputs, const std::string& file) {
  const std::vector<Var> params = program.Parameters("main");
  std::vector<std::string> names;
  for (const Var& param : params) names.push_back(param->name());
  CheckNames(inputs, names);
  std::vector<Value> values;
  for (size_t i = 0; i < params.size(); ++i) {
    if (AsTensorType(params[i]->type_annotation()) == nullptr) {
      throw Error(ErrorCategory::kInput, fmt::format("input '{}' is no tensor", params[i]->name()), file,
                  "only programs of tensors are timed");
    }
    const auto given = inputs.tensors.find(params[i]->name());
    if (given != inputs.tensors.end()) {
      values.emplace_back(given->second);
      continue;
    }
    const Tensor tensor = Tensor::Empty(ShapeOfInput(program, "main", i, inputs, file),
                                        AsTensorType(params[i]->type_annotation())->dtype());
    FillRandom(tensor, i + 1);
    values.emplace_back(tensor);
  }
  return values;
}

class ProgramSubject : public RunSubject {
 public:
  ProgramSubject(const vm::Executable& program, const RunInputs& inputs, const std::string& file)
      : executable_(program), inputs_(InputsOf(program, inputs, file)), machine_(program) {
    for (const vm::VmFunction& function : Code().functions) {
      for (const vm::Instruction& instruction : function.code) {
        if (instruction.opcode == vm::Opcode::kOperator) places_.emplace(instruction.index, instruction.where);
      }
    }
  }

  void Run() override { machine_.Invoke("main", inputs_); }
  void Run(RunObserver& observer) override { machine_.Invoke("main", inputs_, {.observer = &observer}); }
  int num_threads() const override { return executable_.num_threads(); }

  std::vector<NamedPlan> plans() const override { return PlansOf(Code()); }
  std::vector<ArenaMap> other_arenas() const override {
    const std::vector<vm::ArenaPlace> places = machine_.Arena();
    if (places.empty()) return {};
    return {ArenaOf(places)};
  }
  int64_t code_bytes() const override {
    int64_t bytes = 0;
    for (const vm::KernelFunction& kernel : Code().kernels) bytes += CodeBytes(kernel.executable);
    for (const vm::DynamicKernel& kernel : Code().dynamic_kernels) {
      for (const vm::DynamicKernel::Code& code : kernel.codes) bytes += static_cast<int64_t>(code.blob.size());
    }
    return bytes;
  }
  std::vector<Tensor> other_constants() const override {
    std::vector<Tensor> constants = Code().constants;
    for (const vm::DynamicKernel& kernel : Code().dynamic_kernels) {
      constants.insert(constants.end(), kernel.constants.begin(), kernel.constants.end());
    }
    return constants;
  }

  StepProfile Describe(const RunStep& step) const override {
    if (step.kind == RunStep::kPlanStep) {
      const vm::KernelFunction& kernel = Code().kernels[static_cast<size_t>(step.plan)];
      return DescribePlanStep(kernel.executable.plan(), kernel.name, step.index);
    }
    StepProfile profile;
    if (step.kind == RunStep::kEvaluation) {
      profile.kind = "evaluation";
      profile.toolchain = "reference";
      profile.operators = Code().op_calls[static_cast<size_t>(step.index)].op->name;
      const auto place = places_.find(step.index);
      if (place != places_.end() && !place->second.empty()) profile.nodes = {place->second};
      return profile;
    }
    profile = DescribeDynamicKernel(Code().dynamic_kernels[static_cast<size_t>(step.index)]);
    if (step.kind == RunStep::kEvaluatedKernel) {
      profile.kind = "evaluated kernel";
      profile.toolchain = "reference";
    }
    return profile;
  }

  std::optional<Work> WorkOf(const RunStep& step, std::span<const Tensor> inputs) const override {
    switch (step.kind) {
      case RunStep::kPlanStep:
        return WorkOfPlanStep(Code().kernels[static_cast<size_t>(step.plan)].executable.plan(), step.index);
      case RunStep::kEvaluation: return std::nullopt;
      default: return WorkOfKernel(Code().dynamic_kernels[static_cast<size_t>(step.index)], inputs);
    }
  }

 private:
  const vm::Program& Code() const { return executable_.program(); }

  /// Products of float32 alike: how narrow types are computed is not known here.
  static std::optional<Work> WorkOfKernel(const vm::DynamicKernel& kernel, std::span<const Tensor> inputs) {
    std::vector<Type> params;
    for (const Tensor& input : inputs) params.push_back(TensorType(input.shape(), input.dtype()));
    Work work;
    try {
      const std::vector<Type> types = TypesOfValues(kernel.sizes, params);
      for (const DynamicSizes::Step& step : kernel.sizes.steps) {
        if (step.op == nullptr || !step.op->multiply_adds) continue;
        std::vector<Type> args;
        for (const int arg : step.args) args.push_back(types[static_cast<size_t>(arg)]);
        work.products += step.op->multiply_adds({args, step.attrs});
      }
      work.multiply_adds = work.products;
      for (const Type& type : FlattenTensorTypes(types[static_cast<size_t>(kernel.sizes.result)])) {
        const TensorTypeNode& tensor = *AsTensorType(type);
        work.boundary_bytes +=
            static_cast<double>(NumElements(tensor.static_shape())) * static_cast<double>(tensor.dtype().size_bytes());
      }
    } catch (const Error&) {
      return std::nullopt;  // a size follows from data
    }
    for (const Tensor& input : inputs) work.boundary_bytes += static_cast<double>(input.size_bytes());
    for (const Tensor& constant : kernel.constants) work.constant_bytes += static_cast<double>(constant.size_bytes());
    return work;
  }

  vm::Executable executable_;
  std::vector<Value> inputs_;
  vm::Machine machine_;
  std::map<int, std::string> places_;  ///< by operator call: its place in the model
};

}  // namespace

Shape ShapeOfInput(const vm::Executable& program, const std::string& function, size_t index, const RunInputs& inputs,
                   const std::string& file) {
  const Var param = program.Parameters(function).at(index);
  const auto given = inputs.shapes.find(param->name());
  if (given != inputs.shapes.end() && std::ranges::none_of(given->second, [](int64_t size) { return size < 0; })) {
    return given->second;
  }
  const NamedDimensions dimensions = program.Dimensions(function);
  Shape shape;
  for (const Dim& dim : AsTensorType(param->type_annotation())->shape()) {
    if (!dim.is_any()) {
      shape.push_back(dim.size());
      continue;
    }
    const std::string name = dimensions.NameOf(index, shape.size());
    const auto size = inputs.sizes.find(name);
    if (size == inputs.sizes.end()) {
      throw Error(ErrorCategory::kInput,
                  fmt::format("input '{}' is of dynamic shape, {}", param->name(), ToString(param->type_annotation())),
                  file, fmt::format("say at which size to run: --dim {}=<size>", name));
    }
    shape.push_back(size->second);
  }
  return shape;
}

std::unique_ptr<RunSubject> MakeSubject(const Executable& executable, const RunInputs& inputs) {
  return std::make_unique<PlanSubject>(executable, inputs);
}

std::unique_ptr<RunSubject> MakeSubject(const vm::Executable& program, const RunInputs& inputs,
                                        const std::string& file) {
  return std::make_unique<ProgramSubject>(program, inputs, file);
}

std::unique_ptr<RunSubject> LoadSubject(const std::filesystem::path& file, const RunInputs& inputs) {
  if (vm::Executable::IsBytecode(file)) return MakeSubject(vm::Executable::Load(file), inputs, file.string());
  return MakeSubject(Executable::Load(file), inputs);
}

}  // namespace collage
