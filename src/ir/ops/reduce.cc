// reduce.cc: operators that combine the elements along axes.
#include <cmath>

#include "ir/ops/families.h"
#include "ir/ops/relations.h"

namespace collage {
namespace {

/// Folds elements one by one; `Finish` gives the result.
struct Fold {
  double start;
  double (*step)(double sum, double value);
  double (*finish)(double sum, int64_t count);
};

std::vector<AttrField> ReduceAttrs() {
  return {{"axis", AttrKind::kInts, {}, "axes to reduce; None: all"},
          {"keepdims", AttrKind::kBool, false, "whether reduced axes stay as size 1"},
          {"exclude", AttrKind::kBool, false, "whether axis lists those not to reduce"}};
}

std::vector<Dim> ReducedShape(const OpCall& call) {
  const TensorTypeNode& data = TensorArg(call, 0);
  std::vector<Dim> shape = data.shape();
  const std::vector<int> axes = ReduceAxes(call.attrs, data.rank());
  for (auto it = axes.rbegin(); it != axes.rend(); ++it) {
    if (call.attrs.Bool("keepdims")) {
      shape[static_cast<size_t>(*it)] = Dim(1);
    } else {
      shape.erase(shape.begin() + *it);
    }
  }
  return shape;
}

/// Calls `visit(input offset, output offset)` for every input element.
void ForEachReduced(const Shape& shape, const std::vector<int>& axes,
                    const std::function<void(int64_t from, int64_t to, const std::vector<int64_t>& index)>& visit) {
  Shape kept = shape;
  for (int axis : axes) kept[static_cast<size_t>(axis)] = 1;
  const std::vector<int64_t> strides = BroadcastStrides(kept, shape);
  int64_t from = 0;
  ForEachIndex(shape, [&](const std::vector<int64_t>& index) { visit(from++, Offset(index, strides), index); });
}

OpDef Reduction(std::string name, std::string doc, Fold fold) {
  OpDef op;
  op.name = std::move(name);
  op.doc = std::move(doc);
  op.args = {"data"};
  op.attrs = ReduceAttrs();
  op.pattern = OpPatternKind::kCommReduce;
  op.relation = Relation([](const OpCall& call) { return TensorType(ReducedShape(call), TensorArg(call, 0).dtype()); });
  op.reference = [fold](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    const int64_t results = outputs[0].num_elements();
    std::vector<double> sums(static_cast<size_t>(results), fold.start);
    ForEachReduced(inputs[0].shape(), ReduceAxes(attrs, inputs[0].rank()),
                   [&](int64_t from, int64_t to, const std::vector<int64_t>&) {
                     double& sum = sums[static_cast<size_t>(to)];
                     sum = fold.step(sum, inputs[0].At(from));
                   });
    const int64_t count = results == 0 ? 0 : inputs[0].num_elements() / results;
    for (int64_t i = 0; i < results; ++i) outputs[0].Set(i, fold.finish(sums[static_cast<size_t>(i)], count));
  };
  using V = std::vector<int64_t>;
  op.examples = {{{F32({3, 5, 33})}, {{"axis", V{-1}}, {"keepdims", true}}},
                 {{F32({3, 5, 33})}, {{"axis", V{1}}}},
                 {{F32({2, 8, 5, 7})}, {{"axis", V{2, 3}}, {"keepdims", true}}},
                 {{F32({4, 9})}, {}}};
  return op;
}

double Same(double sum, int64_t) { return sum; }

OpDef ArgReduction(std::string name, bool is_max) {
  OpDef op;
  op.name = std::move(name);
  op.doc = is_max ? "Index of the largest element." : "Index of the smallest element.";
  op.args = {"data"};
  op.attrs = ReduceAttrs();
  op.attrs.push_back({"select_last_index", AttrKind::kBool, false, "whether the last of equal elements is taken"});
  op.pattern = OpPatternKind::kCommReduce;
  op.relation = Relation([](const OpCall& call) { return TensorType(ReducedShape(call), kInt64); });
  op.reference = [is_max](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    const std::vector<int> axes = ReduceAxes(attrs, inputs[0].rank());
    const bool last = attrs.Bool("select_last_index");
    std::vector<double> best(static_cast<size_t>(outputs[0].num_elements()), is_max ? -INFINITY : INFINITY);
    ForEachReduced(inputs[0].shape(), axes, [&](int64_t from, int64_t to, const std::vector<int64_t>& index) {
      const double value = inputs[0].At(from);
      double& so_far = best[static_cast<size_t>(to)];
      const bool better = is_max ? value > so_far : value < so_far;
      if (!better && !(last && value == so_far)) return;
      so_far = value;
      int64_t position = 0;
      for (int axis : axes) position = position * inputs[0].shape()[static_cast<size_t>(axis)] + index[static_cast<size_t>(axis)];
      outputs[0].data<int64_t>()[to] = position;
    });
  };
  op.examples = {{{F32({3, 5, 7})}, {{"axis", std::vector<int64_t>{1}}}}};
  return op;
}

OpDef CumSum() {
  OpDef op;
  op.name = "cumsum";
  op.doc = "Running sums along an axis.";
  op.args = {"data"};
  op.attrs = {{"axis", AttrKind::kInt, 0, "the axis"},
              {"exclusive", AttrKind::kBool, false, "whether an element's own value is left out of its sum"}};
  op.pattern = OpPatternKind::kOpaque;
  op.relation = Relation([](const OpCall& call) {
    NormalAxis(call.attrs.Int("axis"), TensorArg(call, 0).rank());
    return call.args[0];
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    const Shape& shape = inputs[0].shape();
    const int64_t stride = Strides(shape)[static_cast<size_t>(NormalAxis(attrs.Int("axis"), inputs[0].rank()))];
    const int64_t length = shape[static_cast<size_t>(NormalAxis(attrs.Int("axis"), inputs[0].rank()))];
    for (int64_t i = 0; i < inputs[0].num_elements(); ++i) {
      const int64_t position = i / stride % length;
      const double own = inputs[0].At(i);
      if (attrs.Bool("exclusive")) {
        outputs[0].Set(i, position == 0 ? 0 : outputs[0].At(i - stride) + inputs[0].At(i - stride));
      } else {
        outputs[0].Set(i, position == 0 ? own : outputs[0].At(i - stride) + own);
      }
    }
  };
  return op;
}

}  // namespace

void AddReduceOps(std::vector<OpDef>& rows) {
  const auto add = [](double a, double b) { return a + b; };
  rows.push_back(Reduction("sum", "Sum.", {0, add, Same}));
  rows.push_back(Reduction("mean", "Mean.", {0, add, [](double s, int64_t n) { return s / static_cast<double>(n); }}));
  rows.push_back(Reduction("prod", "Product.", {1, [](double a, double b) { return a * b; }, Same}));
  rows.push_back(Reduction("max", "Largest.", {-INFINITY, [](double a, double b) { return a > b ? a : b; }, Same}));
  rows.push_back(Reduction("min", "Smallest.", {INFINITY, [](double a, double b) { return a < b ? a : b; }, Same}));
  rows.push_back(ArgReduction("argmax", true));
  rows.push_back(ArgReduction("argmin", false));
  rows.push_back(CumSum());
}

}  // namespace collage
