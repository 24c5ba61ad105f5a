// sort.cc: operators that order elements.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "ir/ops/families.h"
#include "ir/ops/relations.h"
#include "ir/ops/traits.h"
#include "runtime/dispatch.h"

namespace collage {
namespace {

using V = std::vector<int64_t>;

/// Positions along the axis of `data` in order, equal elements in theirs, for each row: `visit(offset of the row's
/// first element, stride along the axis, positions)`.
void ForEachOrder(const Tensor& data, int64_t wanted_axis, bool ascending,
                  const std::function<void(int64_t first, int64_t stride, const V& order)>& visit) {
  const auto axis = static_cast<size_t>(NormalAxis(wanted_axis, data.rank()));
  const int64_t stride = Strides(data.shape())[axis];
  const int64_t length = data.shape()[axis];
  V order(static_cast<size_t>(length));
  DispatchType(data.dtype(), [&]<typename T>() {
    // Integers compare as such: 64-bit ones do not fit a double.
    const auto value = [&](int64_t i) {
      if constexpr (std::is_integral_v<T>) {
        return data.data<T>()[i];
      } else {
        return ToDouble(data.data<T>()[i]);
      }
    };
    for (int64_t i = 0; i < data.num_elements() / std::max<int64_t>(length, 1); ++i) {
      const int64_t first = i / stride * stride * length + i % stride;
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        const auto x = value(first + a * stride);
        const auto y = value(first + b * stride);
        return ascending ? x < y : x > y;
      });
      visit(first, stride, order);
    }
  });
}

void CheckAxis(const OpCall& call) { NormalAxis(call.attrs.Int("axis"), TensorArg(call, 0).rank()); }

OpDef Sort() {
  OpDef op;
  op.name = "sort";
  op.is_exact = true;
  op.value_sources = {0};
  op.doc = "The elements along an axis in order.";
  op.args = {"data"};
  op.attrs = {{"axis", AttrKind::kInt, -1, "the axis"},
              {"is_ascend", AttrKind::kBool, true, "whether the smallest comes first"}};
  op.pattern = OpPatternKind::kOpaque;
  op.relation = Relation([](const OpCall& call) {
    CheckAxis(call);
    return call.args[0];
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    ForEachOrder(
        inputs[0], attrs.Int("axis"), attrs.Bool("is_ascend"), [&](int64_t first, int64_t stride, const V& order) {
          for (size_t i = 0; i < order.size(); ++i) {
            CopyElement(inputs[0], first + order[i] * stride, outputs[0], first + static_cast<int64_t>(i) * stride);
          }
        });
  };
  op.examples = {{{F32({3, 9})}, {}}};
  return op;
}

OpDef ArgSort() {
  OpDef op = Sort();
  op.name = "argsort";
  op.is_exact = false;
  op.value_sources = {};
  op.doc = "The positions of the elements along an axis in order.";
  op.attrs.push_back({"dtype", AttrKind::kDType, "int32", "dtype of the result"});
  op.relation = Relation([](const OpCall& call) {
    CheckAxis(call);
    return TensorType(TensorArg(call, 0).shape(), call.attrs.Type("dtype"));
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    ForEachOrder(inputs[0], attrs.Int("axis"), attrs.Bool("is_ascend"),
                 [&](int64_t first, int64_t stride, const V& order) {
                   for (size_t i = 0; i < order.size(); ++i) {
                     outputs[0].Set(first + static_cast<int64_t>(i) * stride, static_cast<double>(order[i]));
                   }
                 });
  };
  return op;
}

OpDef TopK() {
  OpDef op;
  op.name = "topk";
  op.is_exact = true;
  op.index_limit = SizesFrom(0);
  op.doc = "The k first elements along an axis in order, and their positions.";
  op.args = {"data"};
  op.attrs = {{"k", AttrKind::kInt, 1, "how many; below 1: all"},
              {"axis", AttrKind::kInt, -1, "the axis"},
              {"ret_type", AttrKind::kString, "both", "both (a pair), values or indices"},
              {"is_ascend", AttrKind::kBool, false, "whether the smallest comes first"},
              {"dtype", AttrKind::kDType, "int32", "dtype of the positions"}};
  op.pattern = OpPatternKind::kOpaque;
  op.relation = Relation([](const OpCall& call) -> Type {
    const TensorTypeNode& data = TensorArg(call, 0);
    std::vector<Dim> shape = data.shape();
    Dim& dim = shape[NormalAxis(call.attrs.Int("axis"), data.rank())];
    const int64_t k = call.attrs.Int("k");
    if (!dim.is_any() && k > dim.size())
      throw RelationFailure{fmt::format("cannot take {} of {} elements", k, dim.size())};
    if (k >= 1) dim = Dim(k);
    const Type values = TensorType(shape, data.dtype());
    const Type indices = TensorType(shape, call.attrs.Type("dtype"));
    const std::string& what = call.attrs.String("ret_type");
    if (what == "values") return values;
    if (what == "indices") return indices;
    if (what != "both") throw RelationFailure{"returns both, values or indices, not '" + what + "'"};
    return TupleType({values, indices});
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    const std::string& what = attrs.String("ret_type");
    const auto axis = static_cast<size_t>(NormalAxis(attrs.Int("axis"), inputs[0].rank()));
    const int64_t length = inputs[0].shape()[axis];
    const int64_t k = outputs[0].shape()[axis];
    ForEachOrder(inputs[0], attrs.Int("axis"), attrs.Bool("is_ascend"),
                 [&](int64_t first, int64_t stride, const V& order) {
                   const int64_t row = first / (stride * length) * stride * k + first % stride;
                   for (int64_t i = 0; i < k; ++i) {
                     const int64_t from = order[i];
                     if (what != "indices") CopyElement(inputs[0], first + from * stride, outputs[0], row + i * stride);
                     if (what != "values")
                       outputs[what == "both" ? 1 : 0].Set(row + i * stride, static_cast<double>(from));
                   }
                 });
  };
  op.examples = {{{F32({3, 9})}, {{"k", 4}}}, {{F32({6, 5})}, {{"k", 2}, {"axis", 0}, {"is_ascend", true}}}};
  return op;
}

void UniqueReference(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
  // The data as [outer][length][inner]; slice l has the elements of all (outer, inner).
  const bool flat = attrs.IsNone("axis");
  const Shape shape = flat ? Shape{inputs[0].num_elements()} : inputs[0].shape();
  const auto axis = static_cast<size_t>(flat ? 0 : NormalAxis(attrs.Int("axis"), inputs[0].rank()));
  const int64_t inner = NumElements(Shape(shape.begin() + static_cast<int64_t>(axis) + 1, shape.end()));
  const int64_t outer = NumElements(Shape(shape.begin(), shape.begin() + static_cast<int64_t>(axis)));
  const int64_t length = shape[axis];
  std::map<std::vector<double>, V> places;  // slice → positions
  for (int64_t l = 0; l < length; ++l) {
    std::vector<double> slice;
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < inner; ++i) slice.push_back(inputs[0].At((o * length + l) * inner + i));
    }
    places[slice].push_back(l);
  }
  std::vector<V> groups;
  for (auto& [slice, positions] : places) groups.push_back(std::move(positions));
  if (!attrs.Bool("sorted")) std::sort(groups.begin(), groups.end());
  const auto count = static_cast<int64_t>(groups.size());
  Shape result = shape;
  result[axis] = count;
  outputs[0] = Tensor::Empty(result, inputs[0].dtype());
  outputs[1] = Tensor::Empty({count}, kInt32);
  outputs[2] = Tensor::Empty({length}, kInt32);
  outputs[3].Set(0, static_cast<double>(count));
  if (outputs.size() > 4) outputs[4] = Tensor::Empty({count}, kInt32);
  for (int64_t g = 0; g < count; ++g) {
    const V& positions = groups[g];
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t i = 0; i < inner; ++i) {
        CopyElement(inputs[0], (o * length + positions[0]) * inner + i, outputs[0], (o * count + g) * inner + i);
      }
    }
    outputs[1].Set(g, static_cast<double>(positions[0]));
    for (int64_t position : positions) outputs[2].Set(position, static_cast<double>(g));
    if (outputs.size() > 4) outputs[4].Set(g, static_cast<double>(positions.size()));
  }
}

OpDef Unique() {
  OpDef op;
  op.name = "unique";
  op.doc =
      "Distinct elements (or slices along an axis), where each first is, which one every element equals, how many "
      "there are, and how often each occurs; sizes are known at run time only.";
  op.args = {"data"};
  op.attrs = {{"sorted", AttrKind::kBool, true, "in ascending order, or as they occur"},
              {"return_counts", AttrKind::kBool, false, "whether the result has a fifth field"},
              {"axis", AttrKind::kInt, {}, "slices along this axis are compared; None: elements"}};
  op.pattern = OpPatternKind::kOpaque;
  op.relation = Relation([](const OpCall& call) {
    const TensorTypeNode& data = TensorArg(call, 0);
    const Type any = TensorType(std::vector<Dim>{Dim::Any()}, kInt32);
    std::vector<Dim> shape{Dim::Any()};
    Dim all(1);
    for (const Dim& dim : data.shape()) all = all * dim;
    if (!call.attrs.IsNone("axis")) {
      const auto axis = static_cast<size_t>(NormalAxis(call.attrs.Int("axis"), data.rank()));
      shape = data.shape();
      all = shape[axis];
      shape[axis] = Dim::Any();
    }
    std::vector<Type> fields{TensorType(shape, data.dtype()), any, TensorType(std::vector<Dim>{all}, kInt32),
                             TensorType(Shape{1}, kInt32)};
    if (call.attrs.Bool("return_counts")) fields.push_back(any);
    return TupleType(fields);
  });
  op.reference = UniqueReference;
  return op;
}

}  // namespace

void AddSortOps(std::vector<OpDef>& rows) {
  rows.push_back(Sort());
  rows.push_back(ArgSort());
  rows.push_back(TopK());
  rows.push_back(Unique());
}

}  // namespace collage
