// dynamic_instance.cc: shapes by the operators' relations, then one call of machine code.
#include "bytecode/dynamic_instance.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "bytecode/result_shapes.h"
#include "collage/runtime/thread_pool.h"
#include "collage/support/error.h"
#include "ir/eval/interpreter.h"
#include "ir/ops/dynamic.h"
#include "ir/tensor_types.h"

namespace collage::vm {
namespace {

[[noreturn]] void FailAsDamaged(const DynamicKernel& kernel) {
  throw Error(ErrorCategory::kCorrupt, fmt::format("what kernel '{}' knows of its shapes is damaged", kernel.name));
}

/// Arguments of a step that say sizes.
std::vector<int> ValueArgs(const DynamicSizes::Step& step) {
  if (step.op != nullptr && IsSizedByValues(*step.op)) return step.args;
  const DynamicOp* op = step.op == nullptr ? nullptr : FindDynamicOp(step.op->name);
  if (op == nullptr || step.args.size() < op->first_value + op->attrs.size()) return {};
  const std::span<const int> values = ValuesOf(*op, std::span<const int>(step.args));
  return {values.begin(), values.end()};
}

/// Makes a static operator of a step whose arguments say sizes: `values`.
void BindValues(DynamicSizes::Step& step, const std::vector<Tensor>& values) {
  if (IsSizedByValues(*step.op)) {
    const Tensor made = FlattenTensors(ApplyOp(*step.op, step.attrs, {values.begin(), values.end()})).at(0);
    step.args.clear();
    step.attrs = CompleteAttrs(GetOp("zeros")->def(), {{"shape", made.shape()}, {"dtype", made.dtype()}});
    step.op = &GetOp("zeros")->def();
    return;
  }
  const DynamicOp& op = *FindDynamicOp(step.op->name);
  step.args = DataOf(op, std::span<const int>(step.args));
  step.attrs = StaticAttrs(op, step.attrs, values);
  step.op = &GetOp(op.static_name)->def();
}

}  // namespace

DynamicInstance::DynamicInstance(const Program& program, const DynamicKernel& kernel)
    : program_(program), kernel_(kernel) {
  SetNumThreads(std::max(kernel.num_threads, 1));
  for (const DynamicKernel::Code& code : kernel.codes) {
    LoadedCode& loaded = codes_.emplace_back();
    loaded.code = &code;
    for (const int constant : code.constants)
      loaded.constants.push_back(kernel.constants[static_cast<size_t>(constant)]);
  }
  std::set<size_t> params;
  for (const DynamicSizes::Step& step : kernel.sizes.steps) {
    for (const int value : ValueArgs(step)) {
      has_values_ = true;
      if (kernel.sizes.steps[static_cast<size_t>(value)].kind == DynamicSizes::Step::kParameter) {
        params.insert(static_cast<size_t>(value));
      }
    }
  }
  value_params_.assign(params.begin(), params.end());
}

/// The kernel's steps with static operators in place of those that read sizes from arguments.
DynamicSizes DynamicInstance::WithValues(const std::vector<Tensor>& inputs) const {
  using Step = DynamicSizes::Step;
  DynamicSizes sizes = kernel_.sizes;
  std::vector<Tensor> known = inputs;  // of each step; undefined where a run computes it
  size_t constants = 0;
  for (Step& step : sizes.steps) {
    if (step.kind == Step::kParameter) continue;
    known.emplace_back();
    if (step.kind == Step::kConstant && !kernel_.step_constants.empty()) {
      known.back() = kernel_.step_constants.at(constants++);
    }
    const std::vector<int> args = ValueArgs(step);
    if (args.empty()) continue;
    std::vector<Tensor> values;
    for (const int arg : args) values.push_back(known[static_cast<size_t>(arg)]);
    if (!std::ranges::all_of(values, &Tensor::defined)) FailAsDamaged(kernel_);
    BindValues(step, values);
  }
  return sizes;
}

Kernel& DynamicInstance::Load(LoadedCode& code) const {
  if (code.kernel == nullptr) {
    for (const Tensor& constant : code.constants) program_.CheckConstant(constant);
    code.workspace = Tensor::Empty({code.code->workspace_bytes}, kUInt8);
    code.kernel = GetKernelLoader(code.code->loader).Load({code.code->blob, code.constants, kernel_.num_threads});
  }
  return *code.kernel;
}

/// Dimensions of the inputs, then of the outputs, one behind the other.
Tensor DynamicInstance::DimensionsOf(const Shapes& shapes) {
  std::vector<int64_t> all;
  for (const Shape& input : shapes.inputs) all.insert(all.end(), input.begin(), input.end());
  for (const auto& [output, _] : shapes.outputs) all.insert(all.end(), output.begin(), output.end());
  return Tensor::Of<int64_t>({static_cast<int64_t>(all.size())}, kInt64, all);
}

const DynamicInstance::Shapes& DynamicInstance::ShapesFor(const std::vector<Tensor>& inputs) {
  Shapes shapes;
  for (const size_t param : value_params_) {
    const Tensor& value = inputs[param];
    if (value.raw() == nullptr && value.num_elements() > 0) {
      throw Error(ErrorCategory::kInput, fmt::format("'{}' needs to know argument {}", kernel_.name, param));
    }
    shapes.values.push_back(value);
  }
  const auto fits = [&](const Shapes& other) {
    return std::ranges::equal(other.inputs, inputs, {}, {}, &Tensor::shape) &&
           std::ranges::equal(other.values, shapes.values, BitEqual);
  };
  const auto found = std::ranges::find_if(known_, fits);
  if (found != known_.end()) return *found;
  for (Tensor& value : shapes.values) value = value.Clone();
  std::vector<Type> types;
  for (const Tensor& input : inputs) {
    shapes.inputs.push_back(input.shape());
    types.push_back(TensorType(input.shape(), input.dtype()));
  }
  if (kernel_.takes_dimensions) {
    for (const Tensor& constant : kernel_.step_constants) program_.CheckConstant(constant);
    shapes.result = ResultTypeOf(kernel_, types);
  } else {
    const std::vector<Type> all = TypesOfValues(has_values_ ? WithValues(inputs) : kernel_.sizes, types);
    const auto sizes = ValuesOf(kernel_.sizes, all);
    if (sizes) shapes.sizes = Tensor::Of<int64_t>({static_cast<int64_t>(sizes->size())}, kInt64, *sizes);
    shapes.result = all[static_cast<size_t>(kernel_.sizes.result)];
  }
  if (!HasTensorsOnly(shapes.result)) FailAsDamaged(kernel_);
  for (const Type& leaf : FlattenTensorTypes(shapes.result)) {
    if (!AsTensorType(leaf)->is_static()) FailAsDamaged(kernel_);
    shapes.outputs.emplace_back(AsTensorType(leaf)->static_shape(), AsTensorType(leaf)->dtype());
  }
  if (kernel_.takes_dimensions) {
    shapes.sizes = DimensionsOf(shapes);
    return Remember(std::move(shapes));
  }
  // No element of an empty tensor can be read, whatever the index.
  const bool has_indices = std::ranges::any_of(
      kernel_.sizes.steps, [](const DynamicSizes::Step& step) { return step.op != nullptr && step.op->index_limit; });
  const auto is_empty = [](const Tensor& tensor) { return tensor.num_elements() == 0; };
  shapes.is_evaluated = !shapes.sizes || (has_indices && std::ranges::any_of(inputs, is_empty));
  return Remember(std::move(shapes));
}

const DynamicInstance::Shapes& DynamicInstance::Remember(Shapes shapes) {
  if (known_.size() < kMostKnown) return known_.emplace_back(std::move(shapes));
  Shapes& replaced = known_[next_];
  next_ = (next_ + 1) % kMostKnown;
  return replaced = std::move(shapes);
}

/// Operator by operator.
Value DynamicInstance::Evaluate(const std::vector<Value>& args) const {
  using Step = DynamicSizes::Step;
  std::vector<Value> values;
  size_t constants = 0;
  for (const Step& step : kernel_.sizes.steps) {
    std::vector<Value> own;
    for (const int arg : step.args) own.push_back(values[static_cast<size_t>(arg)]);
    switch (step.kind) {
      case Step::kParameter: values.push_back(args.at(values.size())); break;
      case Step::kConstant: {
        const Tensor& constant = kernel_.step_constants.at(constants++);
        program_.CheckConstant(constant);
        values.emplace_back(constant);
        break;
      }
      case Step::kCall: values.push_back(ApplyOp(*step.op, step.attrs, own)); break;
      case Step::kTuple: values.push_back(Value::Tuple(std::move(own))); break;
      case Step::kField: {
        const auto field = static_cast<size_t>(step.field);
        if (own[0].kind() != Value::Kind::kTuple || field >= own[0].fields().size()) FailAsDamaged(kernel_);
        values.push_back(own[0].fields()[field]);
        break;
      }
    }
  }
  return values[static_cast<size_t>(kernel_.sizes.result)];
}

void DynamicInstance::RunRows(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) {
  // Parameters that have rows are those whose number of them the types leave open.
  std::vector<bool> has_rows(inputs.size());
  for (const DynamicSizes::Variable& variable : kernel_.sizes.variables) {
    for (const DynamicSizes::Place& place : variable.places) {
      if (static_cast<size_t>(place.value) < inputs.size()) has_rows[static_cast<size_t>(place.value)] = true;
    }
  }
  const int64_t all = outputs.empty() || outputs[0].rank() == 0 ? 0 : outputs[0].shape()[0];
  const auto have_all = [&](const Tensor& tensor) { return tensor.rank() > 0 && tensor.shape()[0] == all; };
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!has_rows[i] || have_all(inputs[i])) continue;
    throw Error(ErrorCategory::kInput,
                fmt::format("'{}' makes {} rows of {}", kernel_.name, all, ToString(inputs[i].shape())));
  }
  if (!std::ranges::all_of(outputs, have_all)) FailAsDamaged(kernel_);
  const auto at = [&](const Tensor& tensor, int64_t row) {
    return tensor.data<std::byte>() + static_cast<int64_t>(tensor.size_bytes()) / all * row;
  };
  int64_t row = 0;
  for (LoadedCode& code : codes_) {
    for (; row + code.code->rows <= all; row += code.code->rows) {
      std::vector<void*> sources, targets;
      for (size_t i = 0; i < inputs.size(); ++i) sources.push_back(has_rows[i] ? at(inputs[i], row) : inputs[i].raw());
      for (const Tensor& output : outputs) targets.push_back(at(output, row));
      Kernel& kernel = Load(code);
      kernel.Bind(sources, targets, code.workspace.raw());
      kernel.Run();
    }
  }
}

std::vector<Tensor> DynamicInstance::CheckArguments(const std::vector<Value>& args) const {
  std::vector<Tensor> inputs;
  for (const Value& arg : args) {
    if (arg.kind() != Value::Kind::kTensor) {
      throw Error(ErrorCategory::kInput, fmt::format("'{}' is called with {}", kernel_.name, ToString(arg)));
    }
    // The code was compiled for these types.
    if (inputs.size() >= kernel_.params.size()) FailAsDamaged(kernel_);
    const Result<void> fits = CheckFits(arg, kernel_.params[inputs.size()]);
    if (!fits.ok()) {
      throw Error(ErrorCategory::kInput,
                  fmt::format("argument {} of '{}' {}", inputs.size(), kernel_.name, fits.reason().text));
    }
    inputs.push_back(arg.tensor());
  }
  return inputs;
}

void DynamicInstance::RunCode(std::span<void* const> sources, std::span<void* const> targets) {
  Kernel& kernel = Load(codes_.back());
  kernel.Bind(sources, targets, nullptr);
  kernel.Run();
}

Value DynamicInstance::Run(const std::vector<Value>& args, TensorPool& pool) {
  const std::vector<Tensor> inputs = CheckArguments(args);
  const Shapes& shapes = ShapesFor(inputs);
  if (!is_by_rows() && shapes.is_evaluated) return Evaluate(args);
  std::vector<Tensor> outputs;
  for (const auto& [shape, dtype] : shapes.outputs) outputs.push_back(pool.Take(shape, dtype));
  if (is_by_rows()) {
    RunRows(inputs, outputs);
  } else {
    std::vector<void*> sources, targets;
    for (const Tensor& input : inputs) sources.push_back(input.raw());
    sources.push_back(shapes.sizes->raw());
    for (const Tensor& output : outputs) targets.push_back(output.raw());
    RunCode(sources, targets);
  }
  size_t next = 0;
  return UnflattenTensors(shapes.result, [&] { return outputs[next++]; });
}

}  // namespace collage::vm
