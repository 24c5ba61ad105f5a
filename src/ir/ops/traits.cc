// traits.cc: which dimensions of an operator are equal, which rows stay apart, what integers count.
#include "ir/ops/traits.h"

#include <algorithm>
#include <limits>

#include "collage/ir/dynamic_sizes.h"
#include "ir/ops/relations.h"

namespace collage {
namespace {

int RankOf(const Type& type) { return AsTensorType(type)->rank(); }

/// Dimensions of the same number, as many as both tensors have.
void EquateAll(const Type& a, DimRef a_ref, const Type& b, DimRef b_ref, DimEquations& equations) {
  for (int dim = 0; dim < std::min(RankOf(a), RankOf(b)); ++dim) {
    a_ref.dim = b_ref.dim = dim;
    equations.Equal(a_ref, b_ref);
  }
}

/// Traits say nothing of layouts of the data other than channels-first.
bool IsChannelsFirst(const OpCall& call, const char* attr) {
  const std::string* layout = call.attrs.Get(attr).as_string();
  return layout == nullptr || layout->empty() || layout->starts_with("NC");
}

/// `kernel(d)`: the window's size along spatial dimension d.
void WindowDims(const OpCall& call, const std::function<Dim(size_t d)>& kernel, DimEquations& equations) {
  const int rank = RankOf(call.args[0]) - 2;
  const std::vector<int64_t> strides = PerDimension(call.attrs.Ints("strides"), rank);
  const std::vector<int64_t> dilation = PerDimension(call.attrs.Ints("dilation"), rank);
  const Padding padding = SpatialPadding(call.attrs, rank);
  for (size_t d = 0; d < static_cast<size_t>(rank); ++d) {
    const Dim size = kernel(d);
    if (size.is_any() || strides[d] != 1) continue;
    const int dim = static_cast<int>(d) + 2;
    const bool keeps_size = padding.before[d] + padding.after[d] == (size.size() - 1) * dilation[d];
    if (keeps_size) equations.Equal({.dim = dim}, {.argument = 0, .dim = dim});
  }
}

void MatrixDims(const OpCall& call, const Type& result, bool transpose_a, bool transpose_b, DimEquations& equations) {
  const int rank = RankOf(result), a_rank = RankOf(call.args[0]), b_rank = RankOf(call.args[1]);
  equations.Equal({.dim = rank - 2}, {.argument = 0, .dim = a_rank - (transpose_a ? 1 : 2)});
  equations.Equal({.dim = rank - 1}, {.argument = 1, .dim = b_rank - (transpose_b ? 2 : 1)});
  equations.Equal({.argument = 0, .dim = a_rank - (transpose_a ? 2 : 1)},
                  {.argument = 1, .dim = b_rank - (transpose_b ? 1 : 2)});
  for (int dim = 0; dim + 2 < rank; ++dim) {
    std::vector<DimRef> operands;
    for (const int argument : {0, 1}) {
      const TensorTypeNode& tensor = *AsTensorType(call.args[argument]);
      if (tensor.rank() != rank) continue;
      if (tensor.shape()[dim] != Dim(1)) operands.push_back({.argument = argument, .dim = dim});
    }
    equations.Broadcast({.dim = dim}, operands);
  }
}

/// Dimensions but attribute `axis` are those of each field of `parts`; references begin from `whole` and `part`.
void AlongAxis(const OpCall& call, const Type& whole_type, DimRef whole, const Type& parts, DimRef part,
               DimEquations& equations) {
  const int rank = RankOf(whole_type);
  const int axis = NormalAxis(call.attrs.Int("axis"), rank);
  const auto fields = static_cast<int>(FlattenTensorTypes(parts).size());
  for (part.field = 0; part.field < fields; ++part.field) {
    for (int dim = 0; dim < rank; ++dim) {
      whole.dim = part.dim = dim;
      if (dim != axis) equations.Equal(whole, part);
    }
  }
}

/// Whether attribute `name`, a number or several, names dimensions of a tensor of `rank`, the first not among them.
bool LeavesFirst(const Attrs& attrs, const char* name, int64_t rank) {
  if (attrs.IsNone(name)) return false;
  std::vector<int64_t> axes;
  if (attrs.Get(name).as_int() != nullptr) axes = {attrs.Int(name)};
  if (axes.empty()) axes = attrs.Ints(name);
  return std::ranges::all_of(axes, [&](int64_t axis) { return axis != 0 && axis != -rank; });
}

/// The first argument is a batch of images, and no other is a batch.
bool RowsOfImages(const OpCall& call, const Type& result) {
  const auto has_batch_first = [&](const char* attr) {
    const std::string layout = call.attrs.StringOr(attr, "");
    return layout.empty() || layout.starts_with('N');
  };
  return RowsOfFirst(call, result) && has_batch_first("layout") && has_batch_first("data_layout");
}

/// The rows of batches that broadcast lie along the result's first dimension.
bool RowsOfBroadcast(const OpCall& call, const Type& result) {
  return std::ranges::all_of(call.args,
                             [&](const Type& arg) { return !IsBatch(arg) || RankOf(arg) == RankOf(result); });
}

}  // namespace

void SetElementwise(OpDef& op) {
  op.elementwise = true;
  op.keeps_rows = RowsOfBroadcast;
}

void SetMovesElements(OpDef& op) {
  op.moves_elements = true;
  op.value_sources = {0};
}

void SetSpatial(OpDef& op) {
  op.spatial = true;
  op.keeps_rows = RowsOfImages;
}

// ---- equal dimensions ----

void SameShapeDims(const OpCall& call, const Type& result, DimEquations& equations) {
  EquateAll(result, {}, call.args[0], {.argument = 0}, equations);
}

void PerChannelDims(const OpCall& call, const Type& result, DimEquations& equations) {
  SameShapeDims(call, result, equations);
  equations.Equal({.dim = NormalAxis(call.attrs.Int("axis"), RankOf(result))}, {.argument = 1});
}

void TransposedDims(const OpCall& call, const Type& result, DimEquations& equations) {
  const int rank = RankOf(result);
  for (int i = 0; i < rank; ++i) {
    const int axis = call.attrs.IsNone("axes") ? rank - 1 - i : NormalAxis(call.attrs.Ints("axes")[i], rank);
    equations.Equal({.dim = i}, {.argument = 0, .dim = axis});
  }
}

EqualDimsFn ProductDims(bool transpose_a, bool transpose_b) {
  return [=](const OpCall& call, const Type& result, DimEquations& equations) {
    MatrixDims(call, result, transpose_a, transpose_b, equations);
  };
}

void MatmulDims(const OpCall& call, const Type& result, DimEquations& equations) {
  MatrixDims(call, result, call.attrs.Bool("transpose_a"), call.attrs.Bool("transpose_b"), equations);
}

void ConvolutionDims(const OpCall& call, const Type&, DimEquations& equations) {
  if (!IsChannelsFirst(call, "data_layout")) return;
  equations.Equal({.dim = 0}, {.argument = 0, .dim = 0});
  WindowDims(
      call, [&](size_t d) { return AsTensorType(call.args[1])->shape()[d + 2]; }, equations);
}

void PoolDims(const OpCall& call, const Type& result, DimEquations& equations) {
  if (!IsChannelsFirst(call, "layout")) return;
  GlobalPoolDims(call, result, equations);
  const std::vector<int64_t> size = PerDimension(call.attrs.Ints("pool_size"), RankOf(result) - 2);
  WindowDims(
      call, [&](size_t d) { return Dim(size[d]); }, equations);
}

void GlobalPoolDims(const OpCall& call, const Type&, DimEquations& equations) {
  if (!IsChannelsFirst(call, "layout")) return;
  for (const int dim : {0, 1}) equations.Equal({.dim = dim}, {.argument = 0, .dim = dim});
}

void TakeDims(const OpCall& call, const Type&, DimEquations& equations) {
  if (call.attrs.IntOr("batch_dims", 0) != 0 || call.attrs.IsNone("axis")) return;
  const int rank = RankOf(call.args[0]), more = RankOf(call.args[1]);
  const int axis = NormalAxis(call.attrs.Int("axis"), rank);
  for (int dim = 0; dim < rank; ++dim) {
    if (dim != axis) equations.Equal({.dim = dim < axis ? dim : dim - 1 + more}, {.argument = 0, .dim = dim});
  }
  for (int dim = 0; dim < more; ++dim) equations.Equal({.dim = axis + dim}, {.argument = 1, .dim = dim});
}

void SliceDims(const OpCall& call, const Type& result, DimEquations& equations) {
  const int rank = RankOf(result);
  std::vector<bool> is_cut(static_cast<size_t>(rank));
  for (size_t i = 0; i < call.attrs.Ints("begin").size(); ++i) {
    is_cut[call.attrs.IsNone("axes") ? i : static_cast<size_t>(NormalAxis(call.attrs.Ints("axes")[i], rank))] = true;
  }
  for (int dim = 0; dim < rank; ++dim) {
    if (!is_cut[dim]) equations.Equal({.dim = dim}, {.argument = 0, .dim = dim});
  }
}

void JoinDims(const OpCall& call, const Type& result, DimEquations& equations) {
  AlongAxis(call, result, {}, call.args[0], {.argument = 0}, equations);
}

void PartDims(const OpCall& call, const Type& result, DimEquations& equations) {
  AlongAxis(call, call.args[0], {.argument = 0}, result, {}, equations);
}

void ReduceDims(const OpCall& call, const Type&, DimEquations& equations) {
  const int rank = RankOf(call.args[0]);
  std::vector<bool> is_reduced(static_cast<size_t>(rank));
  for (const int axis : ReduceAxes(call.attrs, rank)) is_reduced[axis] = true;
  const bool keeps = call.attrs.Bool("keepdims");
  int at = 0;
  for (int dim = 0; dim < rank; ++dim) {
    const bool stays = !is_reduced[dim];
    if (stays) equations.Equal({.dim = at}, {.argument = 0, .dim = dim});
    at += stays || keeps ? 1 : 0;
  }
}

// ---- rows of batches ----

bool RowsOfFirst(const OpCall& call, const Type&) {
  return IsBatch(call.args[0]) && std::none_of(call.args.begin() + 1, call.args.end(), IsBatch);
}

bool RowsOffAxis(const OpCall& call, const Type& result) {
  return RowsOfFirst(call, result) && LeavesFirst(call.attrs, "axis", RankOf(call.args[0]));
}

KeepsRowsFn RowsUnlessFirstIn(const char* name) {
  return [name](const OpCall& call, const Type&) { return LeavesFirst(call.attrs, name, RankOf(call.args[0])); };
}

bool RowsOfReduction(const OpCall& call, const Type&) {
  return LeavesFirst(call.attrs, "axis", RankOf(call.args[0])) && !call.attrs.Bool("exclude");
}

bool RowsOfReshape(const OpCall& call, const Type& result) {
  if (!IsBatch(call.args[0]) || !IsBatch(result)) return false;
  // The first dimension is what is left of all others, which are as many elements as they were.
  const std::vector<int64_t> sizes = call.attrs.Ints("newshape");
  const auto row = [](const Type& type) {
    int64_t elements = 1;
    const std::vector<Dim>& shape = AsTensorType(type)->shape();
    for (size_t i = 1; i < shape.size(); ++i) elements *= shape[i].size();
    return elements;
  };
  return !sizes.empty() && (sizes[0] == -1 || sizes[0] == 0) && row(result) == row(call.args[0]);
}

// ---- indices ----

int64_t KnownSize(const OpCall& call, size_t argument, int64_t dim) {
  const TensorTypeNode* type = AsTensorType(call.args[argument]);
  if (type == nullptr || type->rank() == 0) return -1;
  const Dim size = type->shape().at(dim < 0 ? dim + type->rank() : dim);
  return size.is_any() ? -1 : size.size();
}

IndexLimitFn IndicesAlongAxis(size_t index) {
  return [index](const OpCall& call, size_t argument) -> std::optional<int64_t> {
    if (argument != index) return std::nullopt;
    return KnownSize(call, 0, call.attrs.IntOr("axis", 0));
  };
}

std::optional<int64_t> IndexTuples(const OpCall& call, size_t argument) {
  if (argument != 1) return std::nullopt;
  const int64_t batch_dims = call.attrs.IntOr("batch_dims", 0);
  int64_t smallest = std::numeric_limits<int64_t>::max();
  for (int64_t i = 0; i < KnownSize(call, 1, 0); ++i) {
    smallest = std::min(smallest, KnownSize(call, 0, batch_dims + i));
  }
  return smallest;
}

IndexLimitFn SizesFrom(size_t first) {
  return [first](const OpCall&, size_t argument) -> std::optional<int64_t> {
    if (argument < first) return std::nullopt;
    return -1;
  };
}

}  // namespace collage
