// in_place.cc: a walk from each output to the step that writes it.
#include "runtime/plan/in_place.h"

#include <algorithm>
#include <optional>

namespace collage {
namespace {

using Value = ExecutionPlan::Value;
using Step = ExecutionPlan::Step;

class InPlaceFinder {
 public:
  InPlaceFinder(const ExecutionPlan& plan, const std::vector<std::vector<InPlaceResult>>& kernels)
      : plan_(plan), kernels_(kernels) {}

  std::vector<InPlaceResult> Find() const {
    std::vector<InPlaceResult> found;
    for (size_t output = 0; output < plan_.outputs.size(); ++output) {
      const std::optional<size_t> writer = WriterOf(output);
      if (!writer) continue;
      if (const std::optional<int> input = InputFor(*writer, output)) {
        found.push_back({*input, static_cast<int>(output)});
      }
    }
    return found;
  }

 private:
  const Value& Root(int value) const {
    const Value& own = plan_.values[static_cast<size_t>(value)];
    return own.alias_of >= 0 ? plan_.values[static_cast<size_t>(own.alias_of)] : own;
  }
  bool Is(int value, Value::Storage storage, size_t number) const {
    const Value& root = Root(value);
    return root.storage == storage && root.offset_or_index == static_cast<int64_t>(number);
  }
  bool AreAlike(int a, int b) const {
    const Value &one = plan_.values[static_cast<size_t>(a)], &other = plan_.values[static_cast<size_t>(b)];
    return one.layout == Layout::kPlain && other.layout == Layout::kPlain && one.dtype == other.dtype &&
           NumElements(one.shape) == NumElements(other.shape);
  }
  auto IsOutput(size_t number) const {
    return [this, number](int value) { return Is(value, Value::Storage::kOutput, number); };
  }

  /// The only step that writes `output`.
  std::optional<size_t> WriterOf(size_t output) const {
    std::optional<size_t> writer;
    for (size_t i = 0; i < plan_.steps.size(); ++i) {
      if (std::ranges::none_of(plan_.steps[i].outputs, IsOutput(output))) continue;
      if (writer) return std::nullopt;
      writer = i;
    }
    return writer;
  }

  /// The input in whose place step `writer` writes `output`.
  std::optional<int> InputFor(size_t writer, size_t output) const {
    const Step& step = plan_.steps[writer];
    for (const InPlaceResult& one : kernels_[writer]) {
      const int from = step.inputs.at(static_cast<size_t>(one.input));
      const int to = step.outputs.at(static_cast<size_t>(one.output));
      const Value& source = Root(from);
      if (!IsOutput(output)(to) || source.storage != Value::Storage::kInput || !AreAlike(from, to)) continue;
      const auto reads = [&](int value) {
        return Is(value, Value::Storage::kInput, static_cast<size_t>(source.offset_or_index));
      };
      const auto is_read_by = [&](const Step& other) { return std::ranges::any_of(other.inputs, reads); };
      const bool is_last =
          std::ranges::count_if(step.inputs, reads) == 1 &&
          std::none_of(plan_.steps.begin() + static_cast<int64_t>(writer) + 1, plan_.steps.end(), is_read_by);
      if (is_last) return static_cast<int>(source.offset_or_index);
    }
    return std::nullopt;
  }

  const ExecutionPlan& plan_;
  const std::vector<std::vector<InPlaceResult>>& kernels_;  ///< by step
};

}  // namespace

bool Overlap(const Tensor& a, const Tensor& b) {
  const auto *a_begin = a.data<std::byte>(), *b_begin = b.data<std::byte>();
  return a_begin < b_begin + b.size_bytes() && b_begin < a_begin + a.size_bytes();
}

std::vector<InPlaceResult> InPlaceOutputs(const ExecutionPlan& plan,
                                          const std::vector<std::vector<InPlaceResult>>& kernels) {
  return InPlaceFinder(plan, kernels).Find();
}

}  // namespace collage
