// placed_calls.cc: see placed_calls.h.
#include "backends/native/compiler/driver/placed_calls.h"

#include <algorithm>
#include <optional>

#include "collage/support/error.h"

namespace collage::native {
namespace {

bool IsReshape(const Expr& expr) {
  const CallNode* call = As<CallNode>(expr);
  return call != nullptr && call->op() != nullptr && call->op()->is_reshape;
}

class CallPlacer {
 public:
  CallPlacer(PartitionState& state, const PartitionRequest& request, std::vector<PlacedValue>& values)
      : state_(state), request_(request), values_(values), num_results_(values.size()) {}

  PlacedCall Place(const CalledComposite& called) {
    const Shape shape = ShapeOf(called.result);
    const std::optional<Buffer> result = ResultOf(called.result);
    BoundaryLayouts known;
    for (const Expr& argument : called.arguments) {
      known.inputs.push_back(LayoutOf(ShapeOf(argument), state_.expressions.FindBuffer(argument)));
    }
    const bool is_reshaped = result && result->shape != shape;
    known.outputs.push_back(is_reshaped ? Layout::kPlain : LayoutOf(shape, result ? &*result : nullptr));
    Result<ExternCall> call = CallFor(called, known, request_.num_threads);
    if (!call.ok()) throw Error(ErrorCategory::kUnsupported, call.reason().text);
    PlacedCall placed{&called, std::move(*call), {}, {}, {}};
    const BoundaryLayouts wanted = WantedLayouts(placed.call, called);
    for (size_t i = 0; i < called.arguments.size(); ++i) {
      PlaceArgument(called.arguments[i], wanted.inputs[i], placed);
    }
    const std::vector<int64_t> strides = LayoutStrides(shape, wanted.outputs[0]);
    const bool fits = is_reshaped ? wanted.outputs[0] == Layout::kPlain : result && result->strides == strides;
    placed.output = fits ? *result : state_.AddWorkspace(shape, wanted.outputs[0], TensorTypeOf(called.result).dtype());
    placed.output.shape = shape;
    placed.output.strides = strides;
    state_.expressions.SetBuffer(called.result, placed.output);
    return placed;
  }

 private:
  static BoundaryLayouts WantedLayouts(const ExternCall& call, const CalledComposite& called) {
    const BoundaryLayouts plain = PlainLayouts(called.arguments.size(), 1);
    if (call.layouts == BoundaryLayouts{}) return plain;
    if (call.layouts.inputs.size() != plain.inputs.size() || call.layouts.outputs.size() != 1) {
      throw Error(ErrorCategory::kInput,
                  fmt::format("the function for '{}' wants {} inputs and {} results, got {} and 1", called.label,
                              call.layouts.inputs.size(), call.layouts.outputs.size(), plain.inputs.size()));
    }
    return call.layouts;
  }

  /// How a value lies before it is known what a function wants: as it does in memory; values that are computed here as
  /// those at the boundary.
  Layout LayoutOf(const Shape& shape, const Buffer* buffer) const {
    constexpr Layout kLast = Layout::kChannelsLast;
    if (shape.size() < 3 || shape.size() > 5) return Layout::kPlain;
    if (buffer != nullptr) return buffer->strides == LayoutStrides(shape, kLast) ? kLast : Layout::kPlain;
    const auto is_last = [](Layout layout) { return IsChannelsLast(layout); };
    const BoundaryLayouts& own = request_.layouts;
    const bool has_last = std::ranges::any_of(own.inputs, is_last) || std::ranges::any_of(own.outputs, is_last);
    return has_last ? kLast : Layout::kPlain;
  }

  /// The buffer of the partition's result that is `value` or a reshape of it, if there is one.
  std::optional<Buffer> ResultOf(const Expr& value) const {
    for (size_t i = 0; i < num_results_; ++i) {
      const Buffer& buffer = values_[i].buffer;
      Expr expr = values_[i].expr;
      while (IsReshape(expr) && buffer.is_contiguous()) expr = As<CallNode>(expr)->args()[0];
      if (expr == value && buffer.dtype == TensorTypeOf(value).dtype()) return buffer;
    }
    return std::nullopt;
  }

  void PlaceArgument(const Expr& argument, Layout layout, PlacedCall& placed) {
    const TensorTypeNode& type = TensorTypeOf(argument);
    const Shape shape = type.static_shape();
    const std::vector<int64_t> strides = LayoutStrides(shape, layout);
    const auto fits = [&](const Buffer& own) { return own.dtype == type.dtype() && own.strides == strides; };
    const Buffer* own = state_.expressions.FindBuffer(argument);
    for (size_t i = num_results_; own == nullptr && i < values_.size(); ++i) {
      if (values_[i].expr == argument && fits(values_[i].buffer)) own = &values_[i].buffer;
    }
    if (own != nullptr && fits(*own)) {
      placed.inputs.push_back(*own);
      return;
    }
    placed.inputs.push_back(state_.AddWorkspace(shape, layout, type.dtype()));
    placed.computed.push_back(values_.size());
    values_.push_back({argument, placed.inputs.back()});
  }

  PartitionState& state_;
  const PartitionRequest& request_;
  std::vector<PlacedValue>& values_;
  size_t num_results_;
};

}  // namespace

std::vector<PlacedCall> PlaceCalls(PartitionState& state, const PartitionRequest& request,
                                   const std::vector<CalledComposite>& calls, std::vector<PlacedValue>& values) {
  CallPlacer placer(state, request, values);
  std::vector<PlacedCall> placed;
  for (const CalledComposite& called : calls) placed.push_back(placer.Place(called));
  return placed;
}

}  // namespace collage::native
