// pair_dot.cc: pairs of bfloat16 and float16 in memory, and their products (AVX512-BF16: VDPBF16PS).
#include "backends/native/compiler/contraction/pair_dot.h"

#include <cstring>

#include "backends/native/description/narrowing.h"
#include "collage/support/error.h"

namespace collage::native {
Tensor InPairs(const Tensor& packed, DotKind kind) {
  Shape shape = packed.shape();
  const int64_t width = shape.back();
  shape[shape.size() - 2] /= 2;
  const Tensor narrow = packed.Cast(HalfOf(kind));
  const auto* from = reinterpret_cast<const uint16_t*>(narrow.raw());
  Tensor pairs = Tensor::Empty(shape, kFloat32);
  auto* to = reinterpret_cast<uint16_t*>(pairs.raw());
  for (int64_t row = 0; row < NumElements(shape) / width; ++row, from += 2 * width) {
    for (int64_t i = 0; i < width; ++i) {
      *to++ = from[i];
      *to++ = from[width + i];
    }
  }
  return pairs;
}

namespace {

/// The bits of `value` as `dtype`, which has 16, in the lower halves of int32.
Vector HalfWords(Emitter& e, const Value& value, DataType dtype) {
  const std::string halves = fmt::format("vector<{}xi16>", e.lanes());
  std::string bits;
  if (dtype == kBFloat16) {
    bits = e.RoundBFloat16(value).name();
  } else if (dtype == kFloat16) {
    const std::string narrow = fmt::format("vector<{}xf16>", e.lanes());
    const std::string rounded =
        e.Def(fmt::format("arith.truncf {} : {} to {}", value.name, e.TypeOf(value.kind), narrow));
    bits = e.Def(fmt::format("arith.bitcast {} : {} to {}", rounded, narrow, halves));
  } else {
    bits = e.Def(fmt::format("arith.trunci {} : {} to {}", value.name, e.TypeOf(value.kind), halves));
  }
  return Vector{e.Def(fmt::format("arith.extui {} : {} to vector<{}xi32>", bits, halves, e.lanes()))};
}

}  // namespace

Buffer InterleaveRows(PartitionState& state, const Buffer& packed, DataType dtype) {
  Emitter& e = state.emitter;
  const bool is_float = packed.dtype.is_floating();
  Shape shape = packed.shape;
  shape[2] /= 2;
  const Buffer pairs = state.AddWorkspace(shape, Layout::kPlain, is_float ? kFloat32 : kInt32);
  const int64_t width = shape.back();
  const int64_t rows = NumElements(shape) / width;
  const auto as_rows = [&](Buffer buffer, int64_t count) {
    buffer.shape = {count, width};
    buffer.strides = {width, 1};
    return buffer;
  };
  const Buffer source = as_rows(packed, rows * 2);
  const Buffer target = as_rows(pairs, rows);
  const ElementKind kind = KindOf(packed.dtype);
  const std::string words = fmt::format("vector<{}xi32>", e.lanes());
  const std::string name = state.NextStageName();
  e.Function(name, [&](const I64& begin, const I64& end) {
    const std::string sixteen = e.Def(fmt::format("arith.constant dense<16> : {}", words));
    e.For(begin, end, 1, [&](const I64& row) {
      e.For(e.Int(0), e.Int(width), e.lanes(), [&](const I64& first) {
        const auto half = [&](int64_t which) {
          return HalfWords(e, e.Load(source, {{e.Plus(e.MulInt(row, 2), which), 0}, {first, 1}}), dtype);
        };
        const Vector even = half(0);
        const std::string odd = e.Def(fmt::format("arith.shli {}, {} : {}", half(1), sixteen, words));
        std::string bits = e.Def(fmt::format("arith.ori {}, {} : {}", even, odd, words));
        bits =
            e.Def(fmt::format("arith.{} {} : {} to {}", is_float ? "bitcast" : "extsi", bits, words, e.TypeOf(kind)));
        e.Store(target, {{row, 0}, {first, 1}}, {bits, kind});
      });
    });
  });
  e.Call(name, rows, state.IsParallel(4.0 * static_cast<double>(NumElements(shape))));
  return pairs;
}

bool IsNarrowed(const PartitionState& state, const CallNode& call) {
  return NarrowingOf(call, state.options) != Narrowing::kNone;
}

DotKind PairsOf(const PartitionState& state, const CallNode& call) {
  if (NarrowingOf(call, state.options) != Narrowing::kPairs) return DotKind::kOne;
  return FactorType(call, state.options) == kFloat16 ? DotKind::kFloat16 : DotKind::kBFloat16;
}

Buffer AsPairs(Buffer buffer, size_t axis) {
  COLLAGE_CHECK((buffer.dtype == kBFloat16 || buffer.dtype == kFloat16) && buffer.shape[axis] % 2 == 0)
      << "these are no pairs";
  buffer.dtype = kFloat32;
  buffer.shape[axis] /= 2;
  for (size_t i = 0; i < buffer.strides.size(); ++i) {
    if (i != axis) buffer.strides[i] /= 2;
  }
  return buffer;
}

Buffer PackPairs(PartitionState& state, const Expr& weight, const PackedWeights& packing, DotKind kind) {
  const int64_t width = PanelWidth(state, kFloat32);
  if (const std::optional<Tensor> packed = PackedConstant(weight, packing, kFloat32, width)) {
    return state.AddConstant(InPairs(*packed, kind));
  }
  return InterleaveRows(state, PackWeights(state, weight, packing, kFloat32), HalfOf(kind));
}

namespace {

/// The sums of a processor without an instruction for pairs: that of the products of the lower halves, and then that of
/// the higher ones.
Vector AddOneByOne(Emitter& e, DotKind kind, const Vector& a, const Vector& b, const Vector& sum) {
  const std::string floats = e.FloatVector();
  const std::string words = fmt::format("vector<{}xi32>", e.lanes());
  const std::string halves = fmt::format("vector<{}xi16>", e.lanes());
  const std::string sixteen = e.Def(fmt::format("arith.constant dense<16> : {}", words));
  const auto half = [&](const Vector& value, bool is_high) {
    std::string bits = e.Def(fmt::format("arith.bitcast {} : {} to {}", value, floats, words));
    if (is_high) bits = e.Def(fmt::format("arith.shrui {}, {} : {}", bits, sixteen, words));
    const Vector narrow{e.Def(fmt::format("arith.trunci {} : {} to {}", bits, words, halves))};
    if (kind == DotKind::kBFloat16) return e.WidenBFloat16(narrow).name;
    const std::string half_floats = fmt::format("vector<{}xf16>", e.lanes());
    const std::string number = e.Def(fmt::format("arith.bitcast {} : {} to {}", narrow, halves, half_floats));
    return e.Def(fmt::format("arith.extf {} : {} to {}", number, half_floats, floats));
  };
  std::string result = sum.name();
  for (const bool is_high : {false, true}) {
    const std::string first = half(a, is_high), second = half(b, is_high);
    result = e.Def(fmt::format("math.fma {}, {}, {} : {}", first, second, result, floats));
  }
  return Vector{result};
}

}  // namespace

Vector AddPairProducts(Emitter& e, DotKind kind, bool is_avx512, const Vector& a, const Vector& b, const Vector& sum) {
  if (!is_avx512) return AddOneByOne(e, kind, a, b, sum);
  const std::string sums = e.FloatVector();
  const std::string pairs = fmt::format("vector<{}xbf16>", 2 * e.lanes());
  const auto as_pairs = [&](const Vector& value) {
    return Vector{e.Def(fmt::format("vector.bitcast {} : {} to {}", value, sums, pairs))};
  };
  const Vector first = as_pairs(a);
  const Vector second = as_pairs(b);
  return Vector{
      e.Def(fmt::format("llvm.call_intrinsic \"llvm.x86.avx512bf16.dpbf16ps.512\"({}, {}, {}) : ({}, {}, {}) -> {}",
                        sum, first, second, sums, pairs, pairs, sums))};
}

}  // namespace collage::native
