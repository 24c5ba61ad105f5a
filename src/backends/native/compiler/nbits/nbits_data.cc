// nbits_data.cc: the stages before a product with weights of few bits.
#include "backends/native/compiler/nbits/nbits_data.h"

#include "backends/native/compiler/stages/elements.h"
#include "backends/native/compiler/stages/loop_nest.h"
#include "backends/native/compiler/stages/materialise.h"

namespace collage::native {

Buffer FloatRows(PartitionState& state, const Expr& data, const NBitsWeights& weights) {
  const Shape shape = ShapeOf(data);
  const Buffer own = MaterialiseAs(state, data, Layout::kPlain, kFloat32);
  if (own.strides[1] == 1 && weights.depth() == shape[1]) return own;
  const Buffer rows = state.AddWorkspace({shape[0], weights.depth()}, Layout::kPlain, kFloat32);
  Buffer inside = rows;
  inside.shape[1] = shape[1];
  EmitElements(state, inside, [&](const Indices& at) { return state.emitter.Load(own, at); });
  if (weights.depth() == shape[1]) return rows;
  Buffer rest = rows;
  rest.shape[1] = weights.depth() - shape[1];
  rest.offset_bytes += shape[1] * static_cast<int64_t>(sizeof(float));
  EmitElements(state, rest, [&](const Indices&) { return state.math().Number(0, ElementKind::kFloat); });
  return rows;
}

namespace {

/// Rounds one block.
class BlockRounder {
 public:
  BlockRounder(PartitionState& state, const Buffer& rows, const NBitsWeights& weights, const ByteRows& to)
      : e_(state.emitter), m_(state.math()), rows_(rows), weights_(weights), to_(to) {}

  void Emit(const I64& row, const I64& block) {
    const I64 first = e_.MulInt(block, weights_.block());
    const std::string largest =
        e_.Def(fmt::format("vector.reduction <maximumf>, {} : {} into f32", Largest(row, first), e_.FloatVector()));
    const Value bound{e_.Broadcast(F32{largest}).name(), ElementKind::kFloat};
    const Value zero = m_.Like(0, bound), most = m_.Like(kMost, bound);
    const Value factor = m_.Select(m_.Compare("ogt", "sgt", bound, zero), m_.Divide(most, bound), zero);
    const std::string sum =
        e_.Def(fmt::format("vector.reduction <add>, {} : {} into i32", RoundedSum(row, first, factor), WordType()));
    StoreOne(to_.steps, row, block,
             F32{e_.Def(fmt::format("arith.mulf {}, {} : f32", largest, e_.Float(1.0 / kMost)))}.name(), "f32");
    const std::string slope =
        e_.Def(fmt::format("arith.constant {} : i32", weights_.zero() ? weights_.byte_offset() - *weights_.zero() : 1));
    StoreOne(to_.starts, row, block, e_.Def(fmt::format("arith.muli {}, {} : i32", sum, slope)), "i32");
  }

 private:
  static constexpr double kMost = 127;

  std::string WordType() const { return fmt::format("vector<{}xi32>", e_.lanes()); }
  int64_t turns() const { return weights_.block() / e_.lanes(); }

  Value Data(const I64& row, const I64& first, const I64& turn) {
    const I64 k = e_.AddInt(first, e_.MulInt(turn, e_.lanes()));
    return e_.LoadAt(e_.Address(rows_, Bases({row, k})), kFloat32);
  }

  /// In each lane the largest magnitude of its data.
  Vector Largest(const I64& row, const I64& first) {
    const Vectors start{e_.Splat(0)};
    return e_.ForCarrying(e_.Int(0), e_.Int(turns()), start, e_.FloatVector(),
                          [&](const I64& turn, const Vectors& most) {
                            const Value size = m_.Abs(Data(row, first, turn));
                            return Vectors{Vector{m_.Larger(size, {most[0].name(), ElementKind::kFloat}).name}};
                          })[0];
  }

  /// Stores the bytes; in each lane their sum.
  Vector RoundedSum(const I64& row, const I64& first, const Value& factor) {
    const Vectors start{Vector{e_.Def(fmt::format("arith.constant dense<0> : {}", WordType()))}};
    return e_.ForCarrying(e_.Int(0), e_.Int(turns()), start, WordType(), [&](const I64& turn, const Vectors& sum) {
      const Value scaled = m_.Multiply(Data(row, first, turn), factor);
      // NaN becomes the least one.
      const Value limited = m_.Smaller(m_.Larger(scaled, m_.Like(-kMost, scaled)), m_.Like(kMost, scaled));
      const Value whole = m_.Unary("math.roundeven", limited);
      const std::string words =
          e_.Def(fmt::format("arith.fptosi {} : {} to {}", whole.name, e_.FloatVector(), WordType()));
      const std::string type = fmt::format("vector<{}xi8>", e_.lanes());
      const std::string bytes = e_.Def(fmt::format("arith.trunci {} : {} to {}", words, WordType(), type));
      const I64 k = e_.AddInt(first, e_.MulInt(turn, e_.lanes()));
      e_.Line(fmt::format("llvm.store {}, {} {{alignment = 1 : i64}} : {}, !llvm.ptr", bytes,
                          e_.Address(to_.bytes, Bases({row, k})), type));
      return Vectors{Vector{e_.Def(fmt::format("arith.addi {}, {} : {}", sum[0], words, WordType()))}};
    })[0];
  }

  void StoreOne(const Buffer& to, const I64& row, const I64& block, const std::string& value, const char* type) {
    e_.Line(fmt::format("llvm.store {}, {} {{alignment = 4 : i64}} : {}, !llvm.ptr", value,
                        e_.Address(to, Bases({row, block})), type));
  }

  Emitter& e_;
  VectorMath& m_;
  const Buffer& rows_;
  const NBitsWeights& weights_;
  const ByteRows& to_;
};

}  // namespace

ByteRows RoundToBytes(PartitionState& state, const Buffer& rows, const NBitsWeights& weights) {
  const int64_t count = rows.shape[0];
  ByteRows to;
  to.bytes = state.AddWorkspace({count, weights.depth()}, Layout::kPlain, kInt8);
  to.steps = state.AddWorkspace({count, weights.blocks()}, Layout::kPlain, kFloat32);
  to.starts = state.AddWorkspace({count, weights.blocks()}, Layout::kPlain, kInt32);
  Emitter& e = state.emitter;
  const std::vector<int64_t> units{count, weights.blocks()};
  const std::string name = state.NextStageName();
  e.Function(name, [&](const I64& begin, const I64& end) {
    BlockRounder rounder(state, rows, weights, to);
    e.For(begin, end, 1, [&](const I64& unit) {
      const I64s parts = Delinearise(e, unit, units);
      rounder.Emit(parts[0], parts[1]);
    });
  });
  constexpr double kFlops = 8;  // for each number, about
  e.Call(name, NumElements(units), state.IsParallel(kFlops * static_cast<double>(count * weights.depth())));
  return to;
}

}  // namespace collage::native
