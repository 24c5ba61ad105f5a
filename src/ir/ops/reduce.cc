// reduce.cc: operators that combine the elements along axes.
#include <cmath>

#include "ir/ops/families.h"
#include "ir/ops/relations.h"
#include "ir/ops/traits.h"

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
      shape[*it] = Dim(1);
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
  for (int axis : axes) kept[axis] = 1;
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
  op.equal_dims = ReduceDims;
  op.keeps_rows = RowsOfReduction;
  op.relation = Relation([](const OpCall& call) { return TensorType(ReducedShape(call), TensorArg(call, 0).dtype()); });
  op.reference = [fold](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    const int64_t results = outputs[0].num_elements();
    std::vector<double> sums(static_cast<size_t>(results), fold.start);
    ForEachReduced(inputs[0].shape(), ReduceAxes(attrs, inputs[0].rank()),
                   [&](int64_t from, int64_t to, const std::vector<int64_t>&) {
                     double& sum = sums[to];
                     sum = fold.step(sum, inputs[0].At(from));
                   });
    const int64_t count = results == 0 ? 0 : inputs[0].num_elements() / results;
    for (int64_t i = 0; i < results; ++i) outputs[0].Set(i, fold.finish(sums[i], count));
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
  op.equal_dims = ReduceDims;
  op.keeps_rows = RowsOfReduction;
  op.relation = Relation([](const OpCall& call) { return TensorType(ReducedShape(call), kInt64); });
  op.reference = [is_max](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    const std::vector<int> axes = ReduceAxes(attrs, inputs[0].rank());
    const bool last = attrs.Bool("select_last_index");
    std::fill_n(outputs[0].data<int64_t>(), outputs[0].num_elements(), 0);  // where nothing is better than nothing
    std::vector<double> best(static_cast<size_t>(outputs[0].num_elements()), is_max ? -INFINITY : INFINITY);
    ForEachReduced(inputs[0].shape(), axes, [&](int64_t from, int64_t to, const std::vector<int64_t>& index) {
      const double value = inputs[0].At(from);
      double& so_far = best[to];
      const bool better = is_max ? value > so_far : value < so_far;
      if (!better && !(last && value == so_far)) return;
      so_far = value;
      int64_t position = 0;
      for (int axis : axes) position = position * inputs[0].shape()[axis] + index[axis];
      outputs[0].data<int64_t>()[to] = position;
    });
  };
  op.examples = {{{F32({3, 5, 7})}, {{"axis", std::vector<int64_t>{1}}}}};
  return op;
}

/// Running sums or products.
OpDef Cumulative(std::string name, std::string doc, double start, double (*combine)(double, double)) {
  OpDef op;
  op.name = std::move(name);
  op.doc = std::move(doc);
  op.args = {"data"};
  op.attrs = {{"axis", AttrKind::kInt, {}, "the axis", true},  // TVM's default is to flatten
              {"dtype", AttrKind::kDType, "", "dtype of the result; empty: the data's"},
              {"exclusive", AttrKind::kBool, false, "whether an element's own value is left out"}};
  op.pattern = OpPatternKind::kOpaque;
  op.summed_over = SummedOver::kAxis;
  op.equal_dims = SameShapeDims;
  op.relation = Relation([](const OpCall& call) {
    NormalAxis(call.attrs.Int("axis"), TensorArg(call, 0).rank());
    const std::string& dtype = call.attrs.String("dtype");
    return TensorType(TensorArg(call, 0).shape(),
                      dtype.empty() ? TensorArg(call, 0).dtype() : DataType::FromString(dtype));
  });
  op.reference = [start, combine](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    const Shape& shape = inputs[0].shape();
    const auto axis = static_cast<size_t>(NormalAxis(attrs.Int("axis"), inputs[0].rank()));
    const int64_t stride = Strides(shape)[axis];
    const bool exclusive = attrs.Bool("exclusive");
    for (int64_t row = 0; row < inputs[0].num_elements() / std::max<int64_t>(shape[axis], 1); ++row) {
      const int64_t first = row / stride * stride * shape[axis] + row % stride;
      double so_far = start;
      for (int64_t i = 0; i < shape[axis]; ++i) {
        const double next = combine(so_far, inputs[0].At(first + i * stride));
        outputs[0].Set(first + i * stride, exclusive ? so_far : next);
        so_far = next;
      }
    }
  };
  op.examples = {{{F32({3, 5})}, {{"axis", 1}}}, {{F32({3, 5})}, {{"axis", 0}, {"exclusive", true}}}};
  return op;
}

OpDef Variance() {
  OpDef op =
      Reduction("variance", "Mean squared distance from the mean.", {0, [](double a, double) { return a; }, Same});
  op.args = {"data", "mean"};
  op.min_args = 1;
  op.attrs.push_back({"unbiased", AttrKind::kBool, false, "whether the sum is divided by one less than the count"});
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    const std::vector<int> axes = ReduceAxes(attrs, inputs[0].rank());
    const auto results = static_cast<size_t>(outputs[0].num_elements());
    const double count =
        static_cast<double>(inputs[0].num_elements()) / static_cast<double>(std::max<size_t>(results, 1));
    std::vector<double> means(results, 0);
    std::vector<double> sums(results, 0);
    using V = std::vector<int64_t>;
    ForEachReduced(inputs[0].shape(), axes,
                   [&](int64_t from, int64_t to, const V&) { means[to] += inputs[0].At(from) / count; });
    ForEachReduced(inputs[0].shape(), axes, [&](int64_t from, int64_t to, const V&) {
      const double distance = inputs[0].At(from) - means[to];
      sums[to] += distance * distance;
    });
    const double divisor = attrs.Bool("unbiased") ? count - 1 : count;
    for (size_t i = 0; i < results; ++i) outputs[0].Set(static_cast<int64_t>(i), sums[i] / divisor);
  };
  return op;
}

OpDef Logical(std::string name, std::string doc, Fold fold) {
  OpDef op = Reduction(std::move(name), std::move(doc), fold);
  op.relation = Relation([](const OpCall& call) {
    if (!TensorArg(call, 0).dtype().is_bool()) throw RelationFailure{"expects bools, got " + ToString(call.args[0])};
    return TensorType(ReducedShape(call), kBool);
  });
  op.examples = {{{TensorType(Shape{3, 5}, kBool)}, {{"axis", std::vector<int64_t>{1}}}, 0, 1}};
  return op;
}

}  // namespace

void AddReduceOps(std::vector<OpDef>& rows) {
  const auto add = [](double a, double b) { return a + b; };
  rows.push_back(Reduction("sum", "Sum.", {0, add, Same}));
  rows.push_back(Reduction("mean", "Mean.", {0, add, [](double s, int64_t n) { return s / static_cast<double>(n); }}));
  rows.push_back(Reduction("prod", "Product.", {1, [](double a, double b) { return a * b; }, Same}));
  rows.push_back(Reduction("max", "Largest.", {-INFINITY, [](double a, double b) { return a > b ? a : b; }, Same}));
  rows.back().is_exact = true;
  rows.push_back(Reduction("min", "Smallest.", {INFINITY, [](double a, double b) { return a < b ? a : b; }, Same}));
  rows.back().is_exact = true;
  rows.push_back(ArgReduction("argmax", true));
  rows.push_back(ArgReduction("argmin", false));
  const auto multiply = [](double a, double b) { return a * b; };
  rows.push_back(Cumulative("cumsum", "Running sums along an axis.", 0, add));
  rows.push_back(Cumulative("cumprod", "Running products along an axis.", 1, multiply));
  rows.push_back(Variance());
  rows.push_back(
      Logical("all", "Whether all hold.", {1, [](double a, double b) { return a != 0 && b != 0 ? 1.0 : 0.0; }, Same}));
  rows.push_back(
      Logical("any", "Whether one holds.", {0, [](double a, double b) { return a != 0 || b != 0 ? 1.0 : 0.0; }, Same}));
}

}  // namespace collage
