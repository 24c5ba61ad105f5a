// bf16_dot.cc: pairs of bfloat16 in memory, and their products (AVX512-BF16: VDPBF16PS).
#include "backends/native/compiler/contraction/bf16_dot.h"

#include <cstring>

#include "backends/native/description/bf16_eligibility.h"
#include "collage/support/error.h"

namespace collage::native {
Tensor InPairs(const Tensor& packed) {
  Shape shape = packed.shape();
  const int64_t width = shape.back();
  shape[shape.size() - 2] /= 2;
  const Tensor narrow = packed.Cast(kBFloat16);
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

Buffer InterleaveRows(PartitionState& state, const Buffer& packed) {
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
  const char* element = is_float ? "bf16" : "i16";
  const std::string wide = e.TypeOf(kind);
  const std::string narrow = fmt::format("vector<{}x{}>", e.lanes(), element);
  const std::string both = fmt::format("vector<{}x{}>", 2 * e.lanes(), element);
  const std::string words = fmt::format("vector<{}x{}>", e.lanes(), is_float ? "f32" : "i32");
  const std::string name = state.NextStageName();
  e.Function(name, [&](const I64& begin, const I64& end) {
    e.For(begin, end, 1, [&](const I64& row) {
      e.For(e.Int(0), e.Int(width), e.lanes(), [&](const I64& first) {
        const auto half = [&](int64_t which) {
          const Indices at{{e.Plus(e.MulInt(row, 2), which), 0}, {first, 1}};
          return Vector{e.Def(fmt::format("arith.{} {} : {} to {}", is_float ? "truncf" : "trunci",
                                          e.Load(source, at).name, wide, narrow))};
        };
        const Vector even = half(0);
        const Vector odd = half(1);
        const Vector joined{e.Def(fmt::format("vector.interleave {}, {} : {} -> {}", even, odd, narrow, both))};
        std::string bits = e.Def(fmt::format("vector.bitcast {} : {} to {}", joined, both, words));
        if (!is_float) bits = e.Def(fmt::format("arith.extsi {} : {} to {}", bits, words, wide));
        e.Store(target, {{row, 0}, {first, 1}}, {bits, kind});
      });
    });
  });
  e.Call(name, rows, state.IsParallel(4.0 * static_cast<double>(NumElements(shape))));
  return pairs;
}

bool IsNarrowed(const PartitionState& state, const CallNode& call) {
  return state.options.in_bfloat16 && NarrowingOf(call, state.options) != Narrowing::kNone;
}

bool IsInPairs(const PartitionState& state, const CallNode& call) {
  return state.options.in_bfloat16 && NarrowingOf(call, state.options) == Narrowing::kPairs;
}

Buffer AsPairs(Buffer buffer, size_t axis) {
  COLLAGE_CHECK(buffer.dtype == kBFloat16 && buffer.shape[axis] % 2 == 0) << "these are no pairs";
  buffer.dtype = kFloat32;
  buffer.shape[axis] /= 2;
  for (size_t i = 0; i < buffer.strides.size(); ++i) {
    if (i != axis) buffer.strides[i] /= 2;
  }
  return buffer;
}

Buffer PackPairs(PartitionState& state, const Expr& weight, const PackedWeights& packing) {
  const int64_t width = PanelWidth(state, kFloat32);
  if (const std::optional<Tensor> packed = PackedConstant(weight, packing, kFloat32, width)) {
    return state.AddConstant(InPairs(*packed));
  }
  return InterleaveRows(state, PackWeights(state, weight, packing, kFloat32));
}

Vector AddPairProducts(Emitter& e, const Vector& a, const Vector& b, const Vector& sum) {
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
