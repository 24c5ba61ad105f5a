// shape.cc: operators that move elements without computing on them.
#include <fmt/format.h>

#include <algorithm>

#include "ir/ops/families.h"
#include "ir/ops/relations.h"

namespace collage {
namespace {

using V = std::vector<int64_t>;

void CopyAll(std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) {
  outputs[0] = inputs[0].Reshaped(outputs[0].shape());
}

/// An operator whose result has the same elements in the same order.
OpDef ReshapeLike(std::string name, std::string doc, std::vector<AttrField> attrs,
                  std::function<std::vector<Dim>(const OpCall&)> shape) {
  OpDef op;
  op.name = std::move(name);
  op.doc = std::move(doc);
  op.args = {"data"};
  op.attrs = std::move(attrs);
  op.pattern = OpPatternKind::kInjective;
  op.is_reshape = true;
  op.relation = Relation([shape = std::move(shape)](const OpCall& call) {
    const DataType dtype = TensorArg(call, 0).dtype();
    return TensorType(shape(call), dtype);
  });
  op.reference = CopyAll;
  return op;
}

std::vector<Dim> SqueezedShape(const OpCall& call) {
  const TensorTypeNode& data = TensorArg(call, 0);
  std::vector<bool> drop(data.shape().size());
  if (call.attrs.IsNone("axis")) {
    for (size_t i = 0; i < drop.size(); ++i) drop[i] = data.shape()[i] == Dim(1);
  } else {
    for (int64_t axis : call.attrs.Ints("axis")) {
      const auto i = static_cast<size_t>(NormalAxis(axis, data.rank()));
      if (data.shape()[i] != Dim(1) && !data.shape()[i].is_any()) {
        throw RelationFailure{fmt::format("cannot squeeze axis {} of {}", axis, ToString(call.args[0]))};
      }
      drop[i] = true;
    }
  }
  std::vector<Dim> shape;
  for (size_t i = 0; i < drop.size(); ++i) {
    if (!drop[i]) shape.push_back(data.shape()[i]);
  }
  return shape;
}

std::vector<Dim> ExpandedShape(const OpCall& call) {
  std::vector<Dim> shape = TensorArg(call, 0).shape();
  const int rank = static_cast<int>(shape.size()) + 1;
  shape.insert(shape.begin() + NormalAxis(call.attrs.Int("axis"), rank),
               static_cast<size_t>(call.attrs.Int("num_newaxis")), Dim(1));
  return shape;
}

std::vector<Dim> FlattenedShape(const OpCall& call) {
  const std::vector<Dim>& shape = TensorArg(call, 0).shape();
  Dim rest(1);
  for (size_t i = 1; i < shape.size(); ++i) {
    rest = rest.is_any() || shape[i].is_any() ? Dim::Any() : Dim(rest.size() * shape[i].size());
  }
  return {shape.empty() ? Dim(1) : shape[0], rest};
}

V TransposeAxes(const Attrs& attrs, int rank) {
  V axes;
  if (attrs.IsNone("axes")) {
    for (int i = rank; i-- > 0;) axes.push_back(i);
    return axes;
  }
  std::vector<bool> seen(static_cast<size_t>(rank));
  for (int64_t axis : attrs.Ints("axes")) {
    axes.push_back(NormalAxis(axis, rank));
    seen[static_cast<size_t>(axes.back())] = true;
  }
  if (static_cast<int>(axes.size()) != rank || std::find(seen.begin(), seen.end(), false) != seen.end()) {
    throw RelationFailure{fmt::format("axes are no permutation of {} dimensions", rank)};
  }
  return axes;
}

OpDef TransposeOp() {
  OpDef op;
  op.name = "transpose";
  op.doc = "Permutes the dimensions.";
  op.args = {"data"};
  op.attrs = {{"axes", AttrKind::kInts, {}, "which dimension each of the result's is; None: reversed"}};
  op.pattern = OpPatternKind::kInjective;
  op.relation = Relation([](const OpCall& call) {
    const TensorTypeNode& data = TensorArg(call, 0);
    std::vector<Dim> shape;
    for (int64_t axis : TransposeAxes(call.attrs, data.rank()))
      shape.push_back(data.shape()[static_cast<size_t>(axis)]);
    return TensorType(shape, data.dtype());
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    const V axes = TransposeAxes(attrs, inputs[0].rank());
    const V own = Strides(inputs[0].shape());
    V strides;
    for (int64_t axis : axes) strides.push_back(own[static_cast<size_t>(axis)]);
    int64_t o = 0;
    ForEachIndex(outputs[0].shape(),
                 [&](const V& index) { CopyElement(inputs[0], Offset(index, strides), outputs[0], o++); });
  };
  op.examples = {{{F32({3, 17, 9})}, {{"axes", V{0, 2, 1}}}},
                 {{F32({1, 5, 4, 33})}, {{"axes", V{0, 2, 1, 3}}}},
                 {{F32({1, 7, 5, 6})}, {{"axes", V{0, 2, 3, 1}}}},
                 {{F32({12, 19})}, {}}};
  return op;
}

std::vector<const TensorTypeNode*> TupleTensors(const OpCall& call) {
  const TupleTypeNode* tuple = call.args.empty() ? nullptr : AsTupleType(call.args[0]);
  if (tuple == nullptr || tuple->fields().empty()) throw RelationFailure{"expects a tuple of tensors"};
  std::vector<const TensorTypeNode*> tensors;
  for (const Type& field : tuple->fields()) {
    tensors.push_back(AsTensorType(field));
    if (tensors.back() == nullptr || tensors.back()->rank() != tensors[0]->rank() ||
        tensors.back()->dtype() != tensors[0]->dtype()) {
      throw RelationFailure{"expects tensors of one rank and dtype, got " + ToString(call.args[0])};
    }
  }
  return tensors;
}

/// Copies [outer][length][inner] blocks of `source` to or from position `at` of axis in `whole`.
void CopySlices(const Tensor& part, const Tensor& whole, int axis, int64_t at, bool into_whole) {
  int64_t outer = 1;
  for (int i = 0; i < axis; ++i) outer *= whole.shape()[static_cast<size_t>(i)];
  const int64_t inner = NumElements(whole.shape()) == 0 ? 0 : Strides(whole.shape())[static_cast<size_t>(axis)];
  const int64_t length = part.shape()[static_cast<size_t>(axis)] * inner;
  const int64_t whole_length = whole.shape()[static_cast<size_t>(axis)] * inner;
  const size_t bytes = whole.dtype().size_bytes();
  for (int64_t o = 0; o < outer; ++o) {
    char* p = part.data<char>() + static_cast<size_t>(o * length) * bytes;
    char* w = whole.data<char>() + static_cast<size_t>(o * whole_length + at * inner) * bytes;
    const auto count = static_cast<size_t>(length) * bytes;
    into_whole ? std::copy(p, p + count, w) : std::copy(w, w + count, p);
  }
}

OpDef Concatenate() {
  OpDef op;
  op.name = "concatenate";
  op.doc = "Joins the tensors of a tuple along an axis.";
  op.args = {"data"};
  op.attrs = {{"axis", AttrKind::kInt, 0, "the axis"}};
  op.pattern = OpPatternKind::kInjective;
  op.relation = Relation([](const OpCall& call) {
    const auto tensors = TupleTensors(call);
    const auto axis = static_cast<size_t>(NormalAxis(call.attrs.Int("axis"), tensors[0]->rank()));
    std::vector<Dim> shape = tensors[0]->shape();
    for (size_t i = 1; i < tensors.size(); ++i) {
      for (size_t d = 0; d < shape.size(); ++d) {
        const Dim dim = tensors[i]->shape()[d];
        if (d == axis) {
          shape[d] = shape[d].is_any() || dim.is_any() ? Dim::Any() : Dim(shape[d].size() + dim.size());
        } else if (shape[d].is_any()) {
          shape[d] = dim;
        } else if (!dim.is_any() && dim != shape[d]) {
          throw RelationFailure{"cannot concatenate " + ToString(call.args[0])};
        }
      }
    }
    return TensorType(shape, tensors[0]->dtype());
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    const int axis = NormalAxis(attrs.Int("axis"), outputs[0].rank());
    int64_t at = 0;
    for (const Tensor& input : inputs) {
      CopySlices(input, outputs[0], axis, at, /*into_whole=*/true);
      at += input.shape()[static_cast<size_t>(axis)];
    }
  };
  op.examples = {{{TupleType({F32({2, 3, 5}), F32({2, 4, 5})})}, {{"axis", 1}}},
                 {{TupleType({F32({2, 3, 17}), F32({2, 3, 9}), F32({2, 3, 1})})}, {{"axis", -1}}},
                 {{TupleType({F32({1, 16, 4, 4}), F32({1, 8, 4, 4})})}, {{"axis", 1}}}};
  return op;
}

/// Sizes of the parts of a split.
V SplitSizes(const Attrs& attrs, int64_t length) {
  const AttrValue& value = attrs.Get("indices_or_sections");
  V sizes;
  if (value.as_int() != nullptr) {
    const int64_t sections = *value.as_int();
    if (sections < 1 || length % sections != 0) {
      throw RelationFailure{fmt::format("cannot split {} into {} equal parts", length, sections)};
    }
    sizes.assign(static_cast<size_t>(sections), length / sections);
    return sizes;
  }
  int64_t previous = 0;
  for (int64_t index : attrs.Ints("indices_or_sections")) {
    if (index < previous || index > length) throw RelationFailure{fmt::format("cannot split {} at {}", length, index)};
    sizes.push_back(index - previous);
    previous = index;
  }
  sizes.push_back(length - previous);
  return sizes;
}

OpDef Split() {
  OpDef op;
  op.name = "split";
  op.doc = "Cuts a tensor along an axis; the result is a tuple.";
  op.args = {"data"};
  op.attrs = {{"indices_or_sections", AttrKind::kInts, {}, "number of equal parts, or positions of the cuts", true},
              {"axis", AttrKind::kInt, 0, "the axis"}};
  op.pattern = OpPatternKind::kInjective;
  op.relation = Relation([](const OpCall& call) {
    const TensorTypeNode& data = TensorArg(call, 0);
    const auto axis = static_cast<size_t>(NormalAxis(call.attrs.Int("axis"), data.rank()));
    if (data.shape()[axis].is_any()) throw RelationFailure{"cannot split a dimension of unknown size"};
    std::vector<Type> fields;
    for (int64_t size : SplitSizes(call.attrs, data.shape()[axis].size())) {
      std::vector<Dim> shape = data.shape();
      shape[axis] = Dim(size);
      fields.push_back(TensorType(shape, data.dtype()));
    }
    return TupleType(fields);
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    const int axis = NormalAxis(attrs.Int("axis"), inputs[0].rank());
    int64_t at = 0;
    for (Tensor& output : outputs) {
      CopySlices(output, inputs[0], axis, at, /*into_whole=*/false);
      at += output.shape()[static_cast<size_t>(axis)];
    }
  };
  op.examples = {{{F32({2, 6, 9})}, {{"indices_or_sections", 3}, {"axis", 1}}},
                 {{F32({4, 48})}, {{"indices_or_sections", V{16, 20}}, {"axis", -1}}}};
  return op;
}

/// One sliced dimension: positions start, start + step, …, `count` of them.
struct SliceRange {
  int64_t start;
  int64_t step;
  int64_t count;
};

SliceRange ResolveSlice(int64_t begin, int64_t end, int64_t step, int64_t length) {
  if (step == 0) throw RelationFailure{"a slice's stride must not be 0"};
  const auto clamp = [&](int64_t at) {
    if (at < 0) at += length;
    return step > 0 ? std::clamp<int64_t>(at, 0, length) : std::clamp<int64_t>(at, -1, length - 1);
  };
  const int64_t first = clamp(begin);
  const int64_t last = step < 0 && end < -length ? -1 : clamp(end);
  const int64_t span = step > 0 ? last - first : first - last;
  const int64_t magnitude = step > 0 ? step : -step;
  return {first, step, span <= 0 ? 0 : (span + magnitude - 1) / magnitude};
}

std::vector<SliceRange> SliceRanges(const Attrs& attrs, const Shape& shape) {
  const V begin = attrs.Ints("begin");
  const V end = attrs.Ints("end");
  V strides = attrs.IsNone("strides") ? V{} : attrs.Ints("strides");
  strides.resize(begin.size(), 1);
  std::vector<SliceRange> ranges;
  for (int64_t size : shape) ranges.push_back({0, 1, size});
  for (size_t i = 0; i < begin.size(); ++i) {
    const auto axis = static_cast<size_t>(
        attrs.IsNone("axes") ? static_cast<int>(i) : NormalAxis(attrs.Ints("axes")[i], static_cast<int>(shape.size())));
    if (axis >= shape.size() || i >= end.size()) throw RelationFailure{"begin, end and axes differ in length"};
    ranges[axis] = ResolveSlice(begin[i], end[i], strides[i], shape[axis]);
  }
  return ranges;
}

OpDef StridedSlice() {
  OpDef op;
  op.name = "strided_slice";
  op.doc = "Every strides-th element from begin to end along axes.";
  op.args = {"data"};
  op.attrs = {{"begin", AttrKind::kInts, {}, "first positions", true},
              {"end", AttrKind::kInts, {}, "positions behind the last", true},
              {"strides", AttrKind::kInts, {}, "steps; None: 1"},
              {"axes", AttrKind::kInts, {}, "the axes; None: the leading ones"}};
  op.pattern = OpPatternKind::kInjective;
  op.relation = Relation([](const OpCall& call) {
    const TensorTypeNode& data = TensorArg(call, 0);
    if (!data.is_static()) throw RelationFailure{"slices static shapes only, got " + ToString(call.args[0])};
    std::vector<Dim> shape;
    for (const SliceRange& range : SliceRanges(call.attrs, data.static_shape())) shape.emplace_back(range.count);
    return TensorType(shape, data.dtype());
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    const auto ranges = SliceRanges(attrs, inputs[0].shape());
    const V strides = Strides(inputs[0].shape());
    int64_t o = 0;
    ForEachIndex(outputs[0].shape(), [&](const V& index) {
      int64_t from = 0;
      for (size_t d = 0; d < index.size(); ++d) from += (ranges[d].start + index[d] * ranges[d].step) * strides[d];
      CopyElement(inputs[0], from, outputs[0], o++);
    });
  };
  op.examples = {{{F32({5, 7, 19})}, {{"begin", V{1, 2}}, {"end", V{4, 100}}}},
                 {{F32({5, 37})}, {{"begin", V{3}}, {"end", V{30}}, {"axes", V{1}}}},
                 {{F32({5, 37})}, {{"begin", V{1}}, {"end", V{36}}, {"strides", V{3}}, {"axes", V{1}}}},
                 {{F32({4, 9})}, {{"begin", V{-1}}, {"end", V{-100}}, {"strides", V{-1}}, {"axes", V{1}}}}};
  return op;
}

OpDef BroadcastTo() {
  OpDef op;
  op.name = "broadcast_to";
  op.doc = "Repeats dimensions of size 1.";
  op.args = {"data"};
  op.attrs = {{"shape", AttrKind::kInts, {}, "the result's shape", true}};
  op.pattern = OpPatternKind::kBroadcast;
  op.relation = Relation([](const OpCall& call) {
    const V wanted = call.attrs.Ints("shape");
    const std::vector<Dim> shape(wanted.begin(), wanted.end());
    if (BroadcastShapes(TensorArg(call, 0).shape(), shape) != shape) {
      throw RelationFailure{"cannot broadcast " + ToString(call.args[0]) + " to the shape asked for"};
    }
    return TensorType(shape, TensorArg(call, 0).dtype());
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) {
    const V strides = BroadcastStrides(inputs[0].shape(), outputs[0].shape());
    int64_t o = 0;
    ForEachIndex(outputs[0].shape(),
                 [&](const V& index) { CopyElement(inputs[0], Offset(index, strides), outputs[0], o++); });
  };
  op.examples = {{{F32({3, 1, 17})}, {{"shape", V{2, 3, 4, 17}}}}, {{F32({5, 1})}, {{"shape", V{5, 19}}}}};
  return op;
}

OpDef Tile() {
  OpDef op;
  op.name = "tile";
  op.doc = "Repeats the whole tensor along each dimension.";
  op.args = {"data"};
  op.attrs = {{"reps", AttrKind::kInts, {}, "repetitions, one per dimension", true}};
  op.pattern = OpPatternKind::kBroadcast;
  op.relation = Relation([](const OpCall& call) {
    const TensorTypeNode& data = TensorArg(call, 0);
    const V reps = call.attrs.Ints("reps");
    if (reps.size() != data.shape().size()) throw RelationFailure{"expects one repetition per dimension"};
    std::vector<Dim> shape;
    for (size_t i = 0; i < reps.size(); ++i) {
      shape.push_back(data.shape()[i].is_any() ? Dim::Any() : Dim(data.shape()[i].size() * reps[i]));
    }
    return TensorType(shape, data.dtype());
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs&, std::span<Tensor> outputs) {
    const Shape& shape = inputs[0].shape();
    const V strides = Strides(shape);
    int64_t o = 0;
    ForEachIndex(outputs[0].shape(), [&](const V& index) {
      int64_t from = 0;
      for (size_t d = 0; d < index.size(); ++d) from += index[d] % shape[d] * strides[d];
      CopyElement(inputs[0], from, outputs[0], o++);
    });
  };
  op.examples = {{{F32({2, 5})}, {{"reps", V{2, 3}}}}};
  return op;
}

/// The source position of padded position `at`, or -1 for the constant.
int64_t PadSource(const std::string& mode, int64_t at, int64_t length) {
  if (at >= 0 && at < length) return at;
  if (mode == "edge") return std::clamp<int64_t>(at, 0, length - 1);
  if (mode == "reflect" && length > 1) {
    const int64_t period = 2 * (length - 1);
    const int64_t position = ((at % period) + period) % period;
    return position < length ? position : period - position;
  }
  return -1;
}

OpDef Pad() {
  OpDef op;
  op.name = "nn.pad";
  op.doc = "Adds elements around the data: a constant, the edge, or a reflection.";
  op.args = {"data", "pad_value"};
  op.attrs = {{"pad_width", AttrKind::kAny, {}, "[before, after] for every dimension", true},
              {"pad_mode", AttrKind::kString, "constant", "constant, edge or reflect"}};
  op.pattern = OpPatternKind::kInjective;
  op.relation = Relation([](const OpCall& call) {
    const TensorTypeNode& data = TensorArg(call, 0);
    const AttrValue::List* widths = call.attrs.Get("pad_width").as_list();
    if (widths == nullptr || widths->size() != data.shape().size()) {
      throw RelationFailure{"expects one [before, after] per dimension"};
    }
    std::vector<Dim> shape;
    for (size_t i = 0; i < widths->size(); ++i) {
      const AttrValue::List* pair = (*widths)[i].as_list();
      const bool fits =
          pair != nullptr && pair->size() == 2 && (*pair)[0].as_int() != nullptr && (*pair)[1].as_int() != nullptr;
      if (!fits) throw RelationFailure{"expects one [before, after] per dimension"};
      const int64_t extra = *(*pair)[0].as_int() + *(*pair)[1].as_int();
      if (!data.shape()[i].is_any() && data.shape()[i].size() + extra < 0)
        throw RelationFailure{"pads to a negative size"};
      shape.push_back(data.shape()[i].is_any() ? Dim::Any() : Dim(data.shape()[i].size() + extra));
    }
    return TensorType(shape, data.dtype());
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    V before;
    for (const AttrValue& pair : *attrs.Get("pad_width").as_list()) before.push_back(*(*pair.as_list())[0].as_int());
    const std::string& mode = attrs.String("pad_mode");
    const Shape& shape = inputs[0].shape();
    const V strides = Strides(shape);
    int64_t o = 0;
    ForEachIndex(outputs[0].shape(), [&](const V& index) {
      int64_t from = 0;
      for (size_t d = 0; d < index.size() && from >= 0; ++d) {
        const int64_t at = PadSource(mode, index[d] - before[d], shape[d]);
        from = at < 0 ? -1 : from + at * strides[d];
      }
      from < 0 ? CopyElement(inputs[1], 0, outputs[0], o++) : CopyElement(inputs[0], from, outputs[0], o++);
    });
  };
  const auto widths = [](std::vector<V> pairs) { return AttrValue::List(pairs.begin(), pairs.end()); };
  op.examples = {{{F32({1, 3, 5, 7}), F32({})}, {{"pad_width", widths({{0, 0}, {0, 0}, {1, 2}, {2, 1}})}}},
                 {{F32({4, 9}), F32({})}, {{"pad_width", widths({{1, 0}, {3, 2}})}, {"pad_mode", "reflect"}}}};
  return op;
}

}  // namespace

void AddShapeOps(std::vector<OpDef>& rows) {
  rows.push_back(ReshapeLike("reshape", "The same elements under another shape.",
                             {{"newshape",
                               AttrKind::kInts,
                               {},
                               "sizes; 0 copies, -1 infers, -2 copies the rest, -3 merges two, -4 splits",
                               true},
                              {"allowzero", AttrKind::kBool, false, "whether 0 is a size of 0"}},
                             [](const OpCall& call) {
                               const V newshape = call.attrs.Ints("newshape");
                               if (call.attrs.Bool("allowzero"))
                                 return std::vector<Dim>(newshape.begin(), newshape.end());
                               return ReshapedDims(TensorArg(call, 0).shape(), newshape);
                             }));
  rows.back().examples = {{{F32({3, 4, 5})}, {{"newshape", V{12, -1}}}}};
  rows.push_back(ReshapeLike(
      "expand_dims", "Inserts dimensions of size 1.",
      {{"axis", AttrKind::kInt, {}, "where", true}, {"num_newaxis", AttrKind::kInt, 1, "how many"}}, ExpandedShape));
  rows.back().pattern = OpPatternKind::kBroadcast;
  rows.back().examples = {{{F32({3, 4})}, {{"axis", 1}}}};
  rows.push_back(ReshapeLike("squeeze", "Removes dimensions of size 1.",
                             {{"axis", AttrKind::kInts, {}, "which; None: all"}}, SqueezedShape));
  rows.back().examples = {{{F32({3, 1, 4})}, {{"axis", V{1}}}}};
  rows.push_back(ReshapeLike("nn.batch_flatten", "Merges all dimensions but the first.", {}, FlattenedShape));
  rows.back().examples = {{{F32({2, 3, 4})}, {}}};
  rows.push_back(TransposeOp());
  rows.push_back(Concatenate());
  rows.push_back(Split());
  rows.push_back(StridedSlice());
  rows.push_back(BroadcastTo());
  rows.push_back(Tile());
  rows.push_back(Pad());
}

}  // namespace collage
