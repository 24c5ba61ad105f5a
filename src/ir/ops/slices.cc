// slices.cc: operators that join tensors along an axis, cut them and put elements around them.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "ir/ops/families.h"
#include "ir/ops/relations.h"
#include "ir/ops/traits.h"

namespace collage {
namespace {

using V = std::vector<int64_t>;

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
  for (int i = 0; i < axis; ++i) outer *= whole.shape()[i];
  const int64_t inner = NumElements(whole.shape()) == 0 ? 0 : Strides(whole.shape())[axis];
  const int64_t length = part.shape()[axis] * inner;
  const int64_t whole_length = whole.shape()[axis] * inner;
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
  op.is_exact = true;
  SetMovesElements(op);
  op.equal_dims = JoinDims;
  op.keeps_rows = [](const OpCall& call, const Type& result) {
    const int64_t axis = call.attrs.Int("axis");
    return axis != 0 && axis != -AsTensorType(result)->rank();
  };
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
          shape[d] = Plus(shape[d], dim);
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
      at += input.shape()[axis];
    }
  };
  op.examples = {{{TupleType({F32({2, 3, 5}), F32({2, 4, 5})})}, {{"axis", 1}}},
                 {{TupleType({F32({2, 3, 17}), F32({2, 3, 9}), F32({2, 3, 1})})}, {{"axis", -1}}},
                 {{TupleType({F32({1, 16, 4, 4}), F32({1, 8, 4, 4})})}, {{"axis", 1}}}};
  return op;
}

constexpr int64_t kMostParts = 1 << 16;

/// Sizes of the parts of a split.
V SplitSizes(const Attrs& attrs, int64_t length) {
  const AttrValue& value = attrs.Get("indices_or_sections");
  V sizes;
  if (value.as_int() != nullptr) {
    const int64_t sections = *value.as_int();
    if (sections < 1 || sections > kMostParts || length % sections != 0) {
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

/// As SplitSizes; an unknown length must be one that can be split so.
std::vector<Dim> SplitDims(const Attrs& attrs, Dim length) {
  if (!length.is_any()) {
    const V sizes = SplitSizes(attrs, length.size());
    return {sizes.begin(), sizes.end()};
  }
  const AttrValue& value = attrs.Get("indices_or_sections");
  const int64_t* sections = value.as_int();
  if (sections != nullptr && (*sections < 1 || *sections > kMostParts)) {
    throw RelationFailure{fmt::format("cannot split into {} equal parts", *sections)};
  }
  const auto whole = length.symbolic();
  if (sections != nullptr) {
    const Dim part = whole ? Dim::Of(SymbolicSize::FloorDivide(*whole, *sections)) : Dim::Any();
    return std::vector<Dim>(static_cast<size_t>(*sections), part);
  }
  std::vector<Dim> parts;
  int64_t previous = 0;
  for (int64_t index : attrs.Ints("indices_or_sections")) {
    if (index < previous) throw RelationFailure{fmt::format("cannot split at {} behind {}", index, previous)};
    parts.emplace_back(index - previous);
    previous = index;
  }
  parts.push_back(whole ? Dim::Of(*whole - previous) : Dim::Any());
  return parts;
}

OpDef Split() {
  OpDef op;
  op.name = "split";
  op.is_exact = true;
  SetMovesElements(op);
  op.equal_dims = PartDims;
  op.doc = "Cuts a tensor along an axis; the result is a tuple.";
  op.args = {"data"};
  op.attrs = {{"indices_or_sections", AttrKind::kInts, {}, "number of equal parts, or positions of the cuts", true},
              {"axis", AttrKind::kInt, 0, "the axis"}};
  op.pattern = OpPatternKind::kInjective;
  op.relation = Relation([](const OpCall& call) {
    const TensorTypeNode& data = TensorArg(call, 0);
    const auto axis = static_cast<size_t>(NormalAxis(call.attrs.Int("axis"), data.rank()));
    const Dim whole = data.shape()[axis];
    std::vector<Type> fields;
    for (Dim size : SplitDims(call.attrs, whole)) {
      std::vector<Dim> shape = data.shape();
      shape[axis] = size;
      fields.push_back(TensorType(shape, data.dtype()));
    }
    return TupleType(fields);
  });
  op.reference = [](std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
    const int axis = NormalAxis(attrs.Int("axis"), inputs[0].rank());
    int64_t at = 0;
    for (Tensor& output : outputs) {
      CopySlices(output, inputs[0], axis, at, /*into_whole=*/false);
      at += output.shape()[axis];
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
  const int64_t magnitude = step > 0 ? step : -std::max(step, -std::numeric_limits<int64_t>::max());
  return {first, step, span <= 0 ? 0 : (span - 1) / magnitude + 1};
}

std::vector<SliceRange> SliceRanges(const Attrs& attrs, const Shape& shape) {
  const V begin = attrs.Ints("begin");
  const V end = attrs.Ints("end");
  V strides = attrs.IsNone("strides") ? V{} : attrs.Ints("strides");
  strides.resize(begin.size(), 1);
  if (end.size() != begin.size() || (!attrs.IsNone("axes") && attrs.Ints("axes").size() != begin.size())) {
    throw RelationFailure{"begin, end and axes differ in length"};
  }
  std::vector<SliceRange> ranges;
  for (int64_t size : shape) ranges.push_back({0, 1, size});
  for (size_t i = 0; i < begin.size(); ++i) {
    const auto axis = static_cast<size_t>(
        attrs.IsNone("axes") ? static_cast<int>(i) : NormalAxis(attrs.Ints("axes")[i], static_cast<int>(shape.size())));
    if (axis >= shape.size()) throw RelationFailure{"begin has more entries than the data dimensions"};
    ranges[axis] = ResolveSlice(begin[i], end[i], strides[i], shape[axis]);
  }
  return ranges;
}

/// The size of dimension `dim` of the result; its length is symbolic or unknown.
Dim SlicedDim(const Attrs& attrs, int dim, const TensorTypeNode& data) {
  const auto length = data.shape()[dim].symbolic();
  if (!length) return Dim::Any();
  const V begin = attrs.Ints("begin");
  for (size_t i = 0; i < begin.size(); ++i) {
    const int64_t axis = attrs.IsNone("axes") ? static_cast<int64_t>(i) : attrs.Ints("axes")[i];
    if (NormalAxis(axis, data.rank()) != dim) continue;
    const int64_t step = attrs.IsNone("strides") || attrs.Ints("strides").size() <= i ? 1 : attrs.Ints("strides")[i];
    const auto size = SlicedSize(begin[i], attrs.Ints("end")[i], step, *length);
    return size ? Dim::Of(*size) : Dim::Any();
  }
  return Dim::Of(*length);
}

OpDef StridedSlice() {
  OpDef op;
  op.name = "strided_slice";
  op.is_exact = true;
  SetMovesElements(op);
  op.equal_dims = SliceDims;
  op.keeps_rows = RowsUnlessFirstIn("axes");
  op.doc = "Every strides-th element from begin to end along axes.";
  op.args = {"data"};
  op.attrs = {{"begin", AttrKind::kInts, {}, "first positions", true},
              {"end", AttrKind::kInts, {}, "positions behind the last", true},
              {"strides", AttrKind::kInts, {}, "steps; None: 1"},
              {"axes", AttrKind::kInts, {}, "the axes; None: the leading ones"}};
  op.pattern = OpPatternKind::kInjective;
  op.relation = Relation([](const OpCall& call) {
    const TensorTypeNode& data = TensorArg(call, 0);
    Shape sizes;
    for (const Dim& dim : data.shape()) sizes.push_back(dim.is_any() ? 1 : dim.size());
    std::vector<Dim> shape;
    for (const SliceRange& range : SliceRanges(call.attrs, sizes)) {
      const Dim& dim = data.shape()[shape.size()];
      shape.push_back(dim.is_any() ? SlicedDim(call.attrs, static_cast<int>(shape.size()), data) : Dim(range.count));
    }
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

/// The source position of padded position `at`, or -1 for the constant.
int64_t PadSource(const std::string& mode, int64_t at, int64_t length) {
  if (at >= 0 && at < length) return at;
  if (mode == "edge") return std::clamp<int64_t>(at, 0, length - 1);
  if (mode == "reflect") {
    if (length == 1) return 0;
    const int64_t period = 2 * (length - 1);
    const int64_t position = ((at % period) + period) % period;
    return position < length ? position : period - position;
  }
  return -1;
}

void PadReference(std::span<const Tensor> inputs, const Attrs& attrs, std::span<Tensor> outputs) {
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
}

Type PadRelation(const OpCall& call) {
  const TensorTypeNode& data = TensorArg(call, 0);
  CheckDTypeOfFirst(call, 1);
  for (Dim dim : TensorArg(call, 1).shape()) {
    if (!MayEqual(dim, 1)) throw RelationFailure{"expects one value to pad with, got " + ToString(call.args[1])};
  }
  const std::string& mode = call.attrs.String("pad_mode");
  if (mode != "constant" && mode != "edge" && mode != "reflect")
    throw RelationFailure{"pads by constant, edge or reflect, not by '" + mode + "'"};
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
    const int64_t before = *(*pair)[0].as_int(), after = *(*pair)[1].as_int();
    constexpr int64_t kMost = int64_t{1} << 61;
    if (std::max(before, after) > kMost || std::min(before, after) < -kMost)
      throw RelationFailure{fmt::format("cannot pad by {} and {}: the most is 2^61", before, after)};
    const int64_t extra = before + after;
    const Dim& dim = data.shape()[i];
    if (!dim.is_any() && dim.size() + extra < 0) throw RelationFailure{"pads to a negative size"};
    const bool is_empty = !dim.is_any() && dim.size() == 0;
    if (is_empty && extra > 0 && mode != "constant") {
      throw RelationFailure{fmt::format("dimension {} is empty: there is nothing to repeat beyond it", i)};
    }
    const auto size = dim.symbolic();
    shape.push_back(size ? Dim::Of(*size + extra) : Dim::Any());
  }
  return TensorType(shape, data.dtype());
}

OpDef Pad() {
  OpDef op;
  op.name = "nn.pad";
  op.layout_agnostic = true;
  op.is_exact = true;
  op.doc = "Adds elements around the data: a constant, the edge, or a reflection.";
  op.args = {"data", "pad_value"};
  op.attrs = {{"pad_width", AttrKind::kAny, {}, "[before, after] for every dimension", true},
              {"pad_mode", AttrKind::kString, "constant", "constant, edge or reflect"}};
  op.pattern = OpPatternKind::kInjective;
  op.relation = Relation(PadRelation);
  op.reference = PadReference;
  const auto widths = [](std::vector<V> pairs) { return AttrValue::List(pairs.begin(), pairs.end()); };
  op.examples = {{{F32({1, 3, 5, 7}), F32({})}, {{"pad_width", widths({{0, 0}, {0, 0}, {1, 2}, {2, 1}})}}},
                 {{F32({4, 9}), F32({})}, {{"pad_width", widths({{1, 0}, {3, 2}})}, {"pad_mode", "reflect"}}}};
  return op;
}

}  // namespace

void AddSliceOps(std::vector<OpDef>& rows) {
  rows.push_back(Concatenate());
  rows.push_back(Split());
  rows.push_back(StridedSlice());
  rows.push_back(Pad());
}

}  // namespace collage
