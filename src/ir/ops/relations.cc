// relations.cc: shape arithmetic of the op table.
#include "ir/ops/relations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "collage/runtime/thread_pool.h"
#include "collage/support/error.h"

namespace collage {

namespace {

// Below 2^63, so that no product of some of a tensor's sizes overflows, whatever is computed of it.
constexpr int64_t kLargestBytes = int64_t{1} << 62;

/// Fails for a tensor within `type` that no memory could hold. Dimensions of size 0 and unknown ones count as 1:
/// strides are products of the others.
void CheckSizes(const Type& type) {
  if (const TupleTypeNode* tuple = AsTupleType(type)) {
    for (const Type& field : tuple->fields()) CheckSizes(field);
    return;
  }
  const TensorTypeNode* tensor = AsTensorType(type);
  if (tensor == nullptr) return;
  auto bytes = static_cast<int64_t>(tensor->dtype().size_bytes());
  for (const Dim& dim : tensor->shape()) {
    if (dim.is_any()) continue;
    if (dim.size() < 0) throw RelationFailure{fmt::format("has {}, of a negative size", ToString(type))};
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(dim.size(), 1), &bytes) || bytes > kLargestBytes)
      throw RelationFailure{fmt::format("has {}, of more than 2^62 bytes", ToString(type))};
  }
}

}  // namespace

TypeRelation Relation(std::function<Type(const OpCall&)> function) {
  return [function = std::move(function)](const OpCall& call) -> Result<Type> {
    try {
      for (const Type& arg : call.args) CheckSizes(arg);
      Type type = function(call);
      CheckSizes(type);
      return type;
    } catch (const RelationFailure& failure) {
      return Reason{failure.text, "type relation"};
    }
  };
}

const TensorTypeNode& TensorArg(const OpCall& call, size_t index) {
  if (index >= call.args.size()) throw RelationFailure{fmt::format("argument {} is missing", index)};
  const TensorTypeNode* type = AsTensorType(call.args[index]);
  if (type == nullptr) {
    throw RelationFailure{fmt::format("expects a tensor as argument {}, got {}", index, ToString(call.args[index]))};
  }
  return *type;
}

const TensorTypeNode& TensorArg(const OpCall& call, size_t index, int rank) {
  const TensorTypeNode& type = TensorArg(call, index);
  if (type.rank() != rank) {
    throw RelationFailure{fmt::format("expects {}-d data, got {}", rank, ToString(call.args[index]))};
  }
  return type;
}

int NormalAxis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank)
    throw RelationFailure{fmt::format("axis {} is out of range for rank {}", axis, rank)};
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

namespace {

/// The size of what is stretched to fit both; plain `Any` where either may be the one that is 1.
Dim BroadcastAny(const Dim& a, const Dim& b) {
  if (a.IsSame(b)) return a;
  const auto x = a.symbolic(), y = b.symbolic();
  if (!x || !y) return Dim::Any();
  // min(y, k) with k > 1 is 1 where y is only, and fits y where it is y only.
  const auto is_capped = [](const SymbolicSize& capped, const SymbolicSize& size) {
    if (capped.constant() != 0 || capped.terms().size() != 1 || capped.terms()[0].coefficient != 1) return false;
    const std::vector<SymbolicSize::FactorRef>& factors = capped.terms()[0].factors;
    if (factors.size() != 1 || factors[0]->kind != SymbolicSize::Factor::Kind::kMinimum) return false;
    const SymbolicSize& first = factors[0]->operands[0];
    const SymbolicSize& second = factors[0]->operands[1];
    return (first == size && second.lower_bound() > 1) || (second == size && first.lower_bound() > 1);
  };
  if (is_capped(*x, *y)) return b;
  if (is_capped(*y, *x)) return a;
  return Dim::Any();
}

}  // namespace

std::vector<Dim> BroadcastShapes(const std::vector<Dim>& a, const std::vector<Dim>& b) {
  const size_t rank = std::max(a.size(), b.size());
  std::vector<Dim> result(rank, Dim(1));
  for (size_t i = 0; i < rank; ++i) {
    const Dim x = i < rank - a.size() ? Dim(1) : a[i - (rank - a.size())];
    const Dim y = i < rank - b.size() ? Dim(1) : b[i - (rank - b.size())];
    if (x == Dim(1)) {
      result[i] = y;
    } else if (y == Dim(1)) {
      result[i] = x;
    } else if (x.is_any() && y.is_any()) {
      result[i] = BroadcastAny(x, y);
    } else if (x == y || y.is_any()) {
      result[i] = x;
    } else if (x.is_any()) {
      result[i] = y;
    } else {
      throw RelationFailure{fmt::format("cannot broadcast {} and {}", ToString(TensorType(a, kFloat32)),
                                        ToString(TensorType(b, kFloat32)))};
    }
  }
  return result;
}

std::vector<int> ReduceAxes(const Attrs& attrs, int rank) {
  std::vector<bool> chosen(static_cast<size_t>(rank), attrs.IsNone("axis"));
  if (!attrs.IsNone("axis")) {
    for (int64_t axis : attrs.Ints("axis")) chosen[NormalAxis(axis, rank)] = true;
    if (attrs.Bool("exclude")) chosen.flip();
  }
  std::vector<int> axes;
  for (int i = 0; i < rank; ++i) {
    if (chosen[i]) axes.push_back(i);
  }
  return axes;
}

Dim Times(Dim a, Dim b) {
  if (a.is_any() || b.is_any()) return a * b;
  int64_t product = 0;
  if (__builtin_mul_overflow(a.size(), b.size(), &product) || product < 0)
    throw RelationFailure{fmt::format("the size {} times {} is beyond 64 bits", a.size(), b.size())};
  return product;
}

Dim Plus(Dim a, Dim b) {
  if (a.is_any() || b.is_any()) return a + b;
  int64_t sum = 0;
  if (__builtin_add_overflow(a.size(), b.size(), &sum) || sum < 0)
    throw RelationFailure{fmt::format("the size {} plus {} is beyond 64 bits", a.size(), b.size())};
  return sum;
}

void CheckRange(const char* name, const std::vector<int64_t>& values, int64_t least) {
  for (int64_t value : values) {
    if (value >= least && value <= std::numeric_limits<int32_t>::max()) continue;
    throw RelationFailure{fmt::format("expects {} from {} to 2^31 - 1, got {}", name, least, value)};
  }
}

void CheckWithin(const OpCall& call, int axis) {
  const std::vector<Dim>& data = TensorArg(call, 0).shape();
  const std::vector<Dim>& indices = TensorArg(call, 1, static_cast<int>(data.size())).shape();
  for (size_t d = 0; d < data.size(); ++d) {
    const bool fits = data[d].is_any() || indices[d].is_any() || indices[d].size() <= data[d].size();
    if (fits || static_cast<int>(d) == axis) continue;
    throw RelationFailure{fmt::format("expects indices within {} but along axis {}, got {}", ToString(call.args[0]),
                                      axis, ToString(call.args[1]))};
  }
}

void CheckDTypeOfFirst(const OpCall& call, size_t index) {
  if (TensorArg(call, index).dtype() == TensorArg(call, 0).dtype()) return;
  throw RelationFailure{
      fmt::format("expects equal dtypes, got {} and {}", ToString(call.args[0]), ToString(call.args[index]))};
}

Dim WindowedDim(Dim size, int64_t kernel, int64_t stride, int64_t pad_before, int64_t pad_after, int64_t dilation,
                bool ceil_mode) {
  CheckRange("kernels, strides and dilations", {kernel, stride, dilation}, 1);
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (std::max(pad_before, pad_after) > kMost || std::min(pad_before, pad_after) < -kMost)
    throw RelationFailure{fmt::format("cannot pad by {} and {}: the most is 2^31 - 1", pad_before, pad_after)};
  if (size.is_any()) {
    const auto symbolic = size.symbolic();
    if (!symbolic) return Dim::Any();
    const SymbolicSize room = *symbolic + (pad_before + pad_after - ((kernel - 1) * dilation + 1));
    const SymbolicSize count = SymbolicSize::FloorDivide(room, stride) + 1;
    if (!ceil_mode) return Dim::Of(count);
    // The last that begins within the data or its leading padding.
    return Dim::Of(SymbolicSize::Minimum(SymbolicSize::CeilDivide(room, stride) + 1,
                                         SymbolicSize::CeilDivide(*symbolic + pad_before, stride)));
  }
  const int64_t room = size.size() + pad_before + pad_after - ((kernel - 1) * dilation + 1);
  if (room < 0) {
    throw RelationFailure{fmt::format("a window of {} does not fit into {} with padding {} and {}", kernel, size.size(),
                                      pad_before, pad_after)};
  }
  if (!ceil_mode) return room / stride + 1;
  int64_t count = room / stride + (room % stride != 0 ? 1 : 0) + 1;
  // A last window must begin within the data or its leading padding.
  if ((count - 1) * stride >= size.size() + pad_before) --count;
  return count;
}

std::optional<SymbolicSize> SlicedSize(const SymbolicSize& begin, const SymbolicSize& end, int64_t step,
                                       const SymbolicSize& length) {
  // "To the end" is written as one of several large numbers; no dimension is as long.
  constexpr int64_t kEnd = std::numeric_limits<int32_t>::max();
  const SymbolicSize least = step > 0 ? 0 : -1, most = step > 0 ? length : length - 1;
  const auto clamped = [&](const SymbolicSize& at) -> std::optional<SymbolicSize> {
    if (at.is_known() && at.known() >= kEnd) return most;
    if (at.is_known() && at.known() <= -kEnd) return least;
    if (at.lower_bound() >= 0) return SymbolicSize::Minimum(at, most);
    if (at.upper_bound() < 0) return SymbolicSize::Maximum(at + length, least);
    return std::nullopt;
  };
  const auto first = clamped(begin), last = clamped(end);
  if (!first || !last) return std::nullopt;
  const SymbolicSize span = SymbolicSize::Maximum(step > 0 ? *last - *first : *first - *last, 0);
  return SymbolicSize::CeilDivide(span, step > 0 ? step : -step);
}

std::vector<int64_t> PerDimension(std::vector<int64_t> values, int rank) {
  if (values.size() == 1) values.assign(static_cast<size_t>(rank), values[0]);
  if (static_cast<int>(values.size()) != rank) {
    throw RelationFailure{fmt::format("expects {} values per attribute, got {}", rank, values.size())};
  }
  return values;
}

Padding SpatialPadding(const Attrs& attrs, int rank) {
  std::vector<int64_t> values = attrs.Ints("padding");
  if (static_cast<int>(values.size()) == 2 * rank) {
    return {{values.begin(), values.begin() + rank}, {values.begin() + rank, values.end()}};
  }
  values = PerDimension(std::move(values), rank);
  return {values, values};
}

std::pair<int64_t, int64_t> ValidRange(int64_t size, int64_t count, int64_t stride, int64_t shift) {
  const int64_t first = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
  const int64_t last = size - shift <= 0 ? 0 : (size - shift - 1) / stride + 1;
  return {std::min(first, count), std::min(last, count)};
}

namespace {

/// `whole / part` where the one is a multiple of the other for all sizes.
std::optional<Dim> Quotient(const Dim& whole, const Dim& part) {
  const auto a = whole.symbolic(), b = part.symbolic();
  const auto quotient = a && b ? SymbolicSize::DivideExactly(*a, *b) : std::nullopt;
  return quotient ? std::optional(Dim::Of(*quotient)) : std::nullopt;
}

/// The two dimensions into which reshape's -4 splits `whole`; -1 is a size that follows from the other.
std::pair<Dim, Dim> SplitDim(const Dim& whole, int64_t first, int64_t second) {
  Dim left = first == -1 ? Dim::Any() : Dim(first);
  Dim right = second == -1 ? Dim::Any() : Dim(second);
  if ((!left.is_any() && left.size() < 1) || (!right.is_any() && right.size() < 1))
    throw RelationFailure{"splits a dimension with -4 into positive sizes only"};
  const auto quotient = [&](const Dim& part) {
    if (!whole.is_any()) return Dim(whole.size() / part.size());
    return Quotient(whole, part).value_or(Dim::Any());
  };
  if (left.is_any() && !right.is_any()) left = quotient(right);
  if (right.is_any() && !left.is_any()) right = quotient(left);
  return {left, right};
}

/// The product of the dimensions that are not `left_out`; an empty list leaves none out.
Dim ElementsOf(const std::vector<Dim>& shape, const std::vector<bool>& left_out) {
  Dim elements(1);
  for (size_t i = 0; i < shape.size(); ++i) {
    if (left_out.empty() || !left_out[i]) elements = Times(elements, shape[i]);
  }
  return elements;
}

void CheckElements(const Dim& before, const Dim& after, const std::vector<Dim>& result) {
  if (before.is_any() || after.is_any() || before == after) return;
  throw RelationFailure{
      fmt::format("cannot reshape {} elements to {}", before.size(), ToString(TensorType(result, kFloat32)))};
}

/// Sets `result[inferred]`, which is 1, so that there are `before` elements; `after` is how many there are now.
void InferDim(const Dim& before, const Dim& after, int inferred, std::vector<Dim>& result) {
  if (before.is_any() || after.is_any() || after.size() == 0) {
    result[inferred] = Quotient(before, after).value_or(Dim::Any());
    return;
  }
  result[inferred] = Dim(before.size() / after.size());
  CheckElements(before, Dim(before.size() / after.size() * after.size()), result);
}

}  // namespace

std::vector<Dim> ReshapedDims(const std::vector<Dim>& shape, const std::vector<int64_t>& newshape) {
  std::vector<Dim> result;
  size_t source = 0;
  int inferred = -1;
  // Copied dimensions are on both sides: they do not matter for the inferred one, even if they are dynamic or 0.
  std::vector<bool> is_copied_from(shape.size());
  std::vector<bool> is_copied_to;
  const auto next = [&]() -> Dim {
    if (source >= shape.size()) throw RelationFailure{"newshape asks for more dimensions than there are"};
    return shape[source++];
  };
  for (size_t i = 0; i < newshape.size(); ++i) {
    const int64_t wanted = newshape[i];
    if (wanted > 0) {
      result.emplace_back(wanted);
      ++source;
    } else if (wanted == 0) {
      result.push_back(next());
      is_copied_from[source - 1] = true;
      is_copied_to.resize(result.size());
      is_copied_to.back() = true;
    } else if (wanted == -1) {
      if (inferred >= 0) throw RelationFailure{"newshape has -1 twice: only one size follows from the others"};
      inferred = static_cast<int>(result.size());
      result.emplace_back(1);
      ++source;
    } else if (wanted == -2) {
      while (source < shape.size()) result.push_back(next());
    } else if (wanted == -3) {
      const Dim first = next();
      result.push_back(Times(first, next()));
    } else if (wanted == -4) {
      if (i + 2 >= newshape.size()) throw RelationFailure{"newshape has -4 without two sizes behind it"};
      const auto [left, right] = SplitDim(next(), newshape[i + 1], newshape[i + 2]);
      result.push_back(left);
      result.push_back(right);
      i += 2;
    } else {
      throw RelationFailure{fmt::format("newshape has {}, which is no size", wanted)};
    }
  }
  is_copied_to.resize(result.size());
  if (inferred < 0) {
    CheckElements(ElementsOf(shape, {}), ElementsOf(result, {}), result);
  } else {
    InferDim(ElementsOf(shape, is_copied_from), ElementsOf(result, is_copied_to), inferred, result);
  }
  return result;
}

std::vector<int64_t> Strides(const Shape& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

std::vector<int64_t> BroadcastStrides(const Shape& shape, const Shape& target) {
  const std::vector<int64_t> own = Strides(shape);
  std::vector<int64_t> strides(target.size(), 0);
  const size_t offset = target.size() - shape.size();
  for (size_t i = 0; i < shape.size(); ++i) strides[i + offset] = shape[i] == 1 ? 0 : own[i];
  return strides;
}

void ForEachIndex(const Shape& shape, const std::function<void(const std::vector<int64_t>&)>& visit) {
  const int64_t count = NumElements(shape);
  std::vector<int64_t> index(shape.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    visit(index);
    for (size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
}

int64_t Offset(const std::vector<int64_t>& index, const std::vector<int64_t>& strides) {
  int64_t offset = 0;
  for (size_t i = 0; i < index.size(); ++i) offset += index[i] * strides[i];
  return offset;
}

void InParallel(int64_t count, const std::function<void(int64_t, int64_t)>& body) {
  ParallelFor(
      count,
      [](void* context, int64_t begin, int64_t end) {
        (*static_cast<const std::function<void(int64_t, int64_t)>*>(context))(begin, end);
      },
      const_cast<std::function<void(int64_t, int64_t)>*>(&body));
}

void CopyElement(const Tensor& source, int64_t from, const Tensor& target, int64_t to) {
  const size_t bytes = source.dtype().size_bytes();
  std::memcpy(target.data<char>() + static_cast<size_t>(to) * bytes,
              source.data<char>() + static_cast<size_t>(from) * bytes, bytes);
}

namespace {

/// CopyStrided for elements of one size. Two dimensions, the target's last and the one along which the source lies
/// closest, are walked in blocks that stay in cache.
template <typename Word>
void CopyStridedWords(const Word* source, const std::vector<int64_t>& strides, Word* target, const Shape& shape) {
  constexpr int64_t kBlock = 32;
  const size_t last = shape.size() - 1;
  size_t near = last;
  for (size_t d = 0; d < last; ++d) {
    if (shape[d] > 1 && (near == last || strides[d] < strides[near])) near = d;
  }
  const std::vector<int64_t> own = Strides(shape);
  Shape rest = shape;
  rest[last] = 1;
  rest[near] = 1;
  const int64_t rows = near == last ? 1 : shape[near];
  ForEachIndex(rest, [&](const std::vector<int64_t>& index) {
    const Word* from = source + Offset(index, strides);
    Word* to = target + Offset(index, own);
    for (int64_t row_block = 0; row_block < rows; row_block += kBlock) {
      for (int64_t block = 0; block < shape[last]; block += kBlock) {
        for (int64_t row = row_block; row < std::min(row_block + kBlock, rows); ++row) {
          for (int64_t i = block; i < std::min(block + kBlock, shape[last]); ++i) {
            to[row * own[near] + i] = from[row * strides[near] + i * strides[last]];
          }
        }
      }
    }
  });
}

}  // namespace

void CopyStrided(const Tensor& source, const std::vector<int64_t>& strides, const Tensor& target) {
  if (target.num_elements() == 0) return;
  if (target.rank() == 0) return CopyElement(source, 0, target, 0);
  const auto copy = [&]<typename Word>(Word) {
    CopyStridedWords(source.data<Word>(), strides, target.data<Word>(), target.shape());
  };
  switch (source.dtype().size_bytes()) {
    case 1: return copy(uint8_t{});
    case 2: return copy(uint16_t{});
    case 4: return copy(uint32_t{});
    case 8: return copy(uint64_t{});
    default: break;
  }
  int64_t to = 0;
  ForEachIndex(target.shape(),
               [&](const std::vector<int64_t>& index) { CopyElement(source, Offset(index, strides), target, to++); });
}

Type F32(Shape shape) { return TensorType(shape, kFloat32); }
Type I64(Shape shape) { return TensorType(shape, kInt64); }

}  // namespace collage
