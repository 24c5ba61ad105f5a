// replay_run.cc: a run of what was planned: addresses, and a launch for each step.
#include <algorithm>
#include <ranges>

#include "bytecode/replay.h"
#include "collage/support/error.h"
#include "ir/eval/interpreter.h"
#include "runtime/plan/in_place.h"

namespace collage::vm {

void* Replay::Address(int root, const std::vector<Value>& args, std::byte* arena) const {
  const Root& of = roots_[static_cast<size_t>(root)];
  switch (of.where) {
    case Root::kArgument: return args[of.index].tensor().raw();
    case Root::kArena: return arena + of.index;
    default: return of.tensor.raw();
  }
}

Tensor Replay::TensorOf(const Planned& planned, const std::vector<Value>& args, std::byte* arena) const {
  const Root& root = roots_[static_cast<size_t>(planned.root)];
  if (root.where == Root::kArena) return Tensor::View(planned.shape, root.dtype, arena + root.index, nullptr);
  const Tensor& tensor = root.where == Root::kArgument ? args[root.index].tensor() : root.tensor;
  return tensor.shape() == planned.shape ? tensor : tensor.Reshaped(planned.shape);
}

Value Replay::ValueOf(const Planned& planned, const std::vector<Value>& args, std::byte* arena) const {
  if (planned.known.defined()) return planned.known;
  if (!planned.is_tuple) return TensorOf(planned, args, arena);
  std::vector<Value> fields;
  for (const Planned& field : planned.fields) fields.push_back(ValueOf(field, args, arena));
  return Value::Tuple(std::move(fields));
}

void Replay::TakeResults(const std::vector<Value>& args, TensorPool& pool, std::span<const Tensor> destinations) {
  for (Root& root : roots_) {
    if (root.where != Root::kResult) continue;
    root.tensor = Tensor();
    if (root.destination >= 0 && static_cast<size_t>(root.destination) < destinations.size()) {
      const Tensor& given = destinations[static_cast<size_t>(root.destination)];
      const bool fits = given.defined() && given.dtype() == root.dtype &&
                        given.num_elements() == NumElements(root.shape) &&
                        reinterpret_cast<uintptr_t>(given.raw()) % TensorPool::kAlignment == 0;
      // No argument lies there, but the one that it may replace.
      const auto stands_against = [&](size_t i) {
        const Tensor& argument = args[i].tensor();
        return Overlap(argument, given) && !(static_cast<int>(i) == root.replaces && argument.raw() == given.raw());
      };
      if (fits && std::ranges::none_of(std::views::iota(size_t{0}, args.size()), stands_against))
        root.tensor = given.shape() == root.shape ? given : given.Reshaped(root.shape);
    }
    if (!root.tensor.defined()) root.tensor = pool.Take(root.shape, root.dtype);
  }
}

bool Replay::LaunchObserved(Step& step, const std::vector<Value>& args, std::byte* arena, TensorPool& pool,
                            RunObserver& observer) {
  std::vector<Tensor> inputs;
  for (const Planned& input : step.inputs) inputs.push_back(TensorOf(input, args, arena));
  observer.Begin(step.at, inputs);
  const bool is_done = Launch(step, args, arena, pool, nullptr);
  observer.End();
  return is_done;
}

/// Steps of plans are told of by their instances, others by LaunchObserved.
bool Replay::Launch(Step& step, const std::vector<Value>& args, std::byte* arena, TensorPool& pool,
                    RunObserver* observer) {
  if (observer != nullptr && step.kind != Step::kPlan) return LaunchObserved(step, args, arena, pool, *observer);
  switch (step.kind) {
    case Step::kCode:
      sources_.clear();
      targets_.clear();
      for (const Planned& input : step.inputs) sources_.push_back(Address(input.root, args, arena));
      sources_.push_back(step.sizes.raw());
      for (const int output : step.outputs) targets_.push_back(Address(output, args, arena));
      step.dynamic->RunCode(sources_, targets_);
      return true;
    case Step::kRows: {
      std::vector<Tensor> inputs, outputs;
      for (const Planned& input : step.inputs) inputs.push_back(TensorOf(input, args, arena));
      for (const int output : step.outputs) outputs.push_back(WholeOf(output, arena));
      step.dynamic->RunRows(inputs, outputs);
      return true;
    }
    case Step::kPlan:
      for (size_t i = 0; i < step.inputs.size(); ++i) {
        step.instance->SetInput(i, TensorOf(step.inputs[i], args, arena));
      }
      for (size_t i = 0; i < step.outputs.size(); ++i) step.instance->SetOutput(i, WholeOf(step.outputs[i], arena));
      if (observer == nullptr) {
        step.instance->Run();
      } else {
        step.instance->Run(*observer, step.at.plan);
      }
      return true;
    case Step::kEvaluate: {
      std::vector<Value> values;
      for (const Planned& arg : step.args) values.push_back(ValueOf(arg, args, arena));
      const std::vector<Tensor> results = FlattenTensors(step.evaluate(values, pool));
      if (results.size() != step.outputs.size()) return false;
      for (size_t i = 0; i < results.size(); ++i) {
        Root& root = roots_[static_cast<size_t>(step.outputs[i])];
        if (results[i].shape() != root.shape || results[i].dtype() != root.dtype) return false;
        // A view of what the arena holds would not outlive it.
        const auto* begin = results[i].data<std::byte>();
        root.tensor = begin >= arena && begin < arena + arena_bytes_ ? results[i].Clone() : results[i];
      }
      return true;
    }
  }
  return false;
}

Tensor Replay::WholeOf(int root, std::byte* arena) const {
  const Root& of = roots_[static_cast<size_t>(root)];
  if (of.where != Root::kArena) return of.tensor;
  return Tensor::View(of.shape, of.dtype, arena + of.index, nullptr);
}

std::optional<Value> Replay::Run(const std::vector<Value>& args, std::byte* arena, TensorPool& pool,
                                 std::span<const Tensor> destinations, RunObserver* observer) {
  TakeResults(args, pool, destinations);
  std::optional<Value> result;
  try {
    const bool is_whole =
        std::ranges::all_of(steps_, [&](Step& step) { return Launch(step, args, arena, pool, observer); });
    if (is_whole) result = ResultOf(result_, args, arena);
  } catch (const Error&) {
    result.reset();  // it is the interpreter's to say what is wrong, and where
  }
  for (Root& root : roots_) {
    if (root.where == Root::kResult || root.where == Root::kEvaluated) root.tensor = Tensor();
  }
  return result;
}

/// Copies values that are kept for later runs: callers may write to results.
Value Replay::ResultOf(const Planned& planned, const std::vector<Value>& args, std::byte* arena) const {
  if (planned.is_tuple) {
    std::vector<Value> fields;
    for (const Planned& field : planned.fields) fields.push_back(ResultOf(field, args, arena));
    return Value::Tuple(std::move(fields));
  }
  const Tensor tensor = TensorOf(planned, args, arena);
  return planned.known.defined() ? tensor.Clone() : tensor;
}

}  // namespace collage::vm
