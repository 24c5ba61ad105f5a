// matrix_product.cc: nn.dense, nn.matmul and nn.batch_matmul.
#include "backends/native/compiler/contraction/matrix_product.h"

#include "backends/native/compiler/contraction/int8_dot.h"
#include "backends/native/compiler/contraction/pair_dot.h"
#include "backends/native/compiler/contraction/strassen.h"
#include "backends/native/compiler/stages/loop_nest.h"
#include "backends/native/compiler/stages/materialise.h"

namespace collage::native {

Buffer AsMatrices(Buffer buffer, bool swap, int64_t batch) {
  if (buffer.shape.size() == 2) {
    buffer.shape.insert(buffer.shape.begin(), 1);
    buffer.strides.insert(buffer.strides.begin(), 0);
  }
  if (swap) {
    std::swap(buffer.shape[1], buffer.shape[2]);
    std::swap(buffer.strides[1], buffer.strides[2]);
  }
  if (buffer.shape[0] == 1) buffer.strides[0] = 0;
  buffer.shape[0] = batch;
  return buffer;
}

namespace {

/// How a right matrix is packed, a batch of them where it has three dimensions.
PackedWeights PackingOf(Emitter& e, const Shape& shape, bool transpose, int64_t channels) {
  const bool has_batch = shape.size() == 3;
  PackedWeights packing;
  packing.inner = {transpose ? shape.back() : shape[shape.size() - 2]};
  packing.groups = has_batch ? shape[0] : 1;
  packing.channels = channels;
  packing.at = [&e, transpose, has_batch, is_one = packing.groups == 1](const Index& group, const Index& channel,
                                                                        const Indices& k) {
    Indices at = transpose ? Indices{channel, k[0]} : Indices{k[0], channel};
    if (has_batch) at.insert(at.begin(), is_one ? e.Zero() : group);
    return at;
  };
  packing.offset = [transpose](const Shape& of, int64_t group, int64_t channel, const std::vector<int64_t>& k) {
    const int64_t first = of[of.size() - 2];
    const int64_t second = of.back();
    return group * first * second + (transpose ? channel * second + k[0] : k[0] * second + channel);
  };
  return packing;
}

/// As SetRightMatrices says; of a product of `bytes` where these are not null.
void SetRight(PartitionState& state, Contraction& form, const Expr& right, bool transpose, const Int8Dot* bytes,
              const std::function<I1(const I64& group, const I64& panel)>& is_read = {}) {
  Emitter& e = state.emitter;
  const bool is_in_pairs = IsPair(form.factors);
  const Shape shape = ShapeOf(right);
  const int64_t batch = shape.size() == 3 ? shape[0] : 1;
  const int64_t outer = form.outer[0];
  // Its rows are read as they lie when they are contiguous; else it is packed.
  const Buffer* known_place = state.expressions.FindBuffer(right);
  const bool is_turned = known_place != nullptr && known_place->strides.back() != 1 && shape.back() > 1;
  const bool is_packed = bytes != nullptr || is_in_pairs || transpose || is_turned ||
                         state.schedule().pack == Schedule::kYes || ConstantValue(right).has_value();
  if (!is_packed) {
    const int64_t width = PanelWidth(state, form.dtype);
    const Buffer b = AsMatrices(MaterialiseAs(state, right, Layout::kPlain, form.dtype), false, outer);
    form.b_row_stride = b.strides[1];
    form.b_panel_stride = width;
    form.b_is_padded = false;
    form.may_pack = true;
    form.b_address = [&e, b, width](const I64s& at, const I64& panel, const I64s& k) {
      return e.Address(b, Bases({at[0], k[0], e.MulInt(panel, width)}));
    };
    return;
  }
  PackedWeights packing = PackingOf(e, shape, transpose, form.channels);
  if (batch == outer) packing.is_read = is_read;
  if (bytes != nullptr && !bytes->late_weight) packing.inner[0] = bytes->RoundUp(packing.inner[0]);
  Buffer b;
  if (bytes != nullptr) {
    const PackedWords packed = PackWords(state, *bytes, packing);
    packed.ReadBy(form, state);
    b = packed.words;
  } else {
    b = is_in_pairs ? PackPairs(state, right, packing, form.factors) : PackWeights(state, right, packing, form.dtype);
  }
  form.b_constant = ConstantNumber(b);
  if (batch == 1) b.strides[0] = 0;
  b.shape[0] = outer;
  form.b_row_stride = b.shape.back();
  form.b_panel_stride = b.strides[1];
  form.b_address = [&e, b](const I64s& at, const I64& panel, const I64s& k) {
    return e.Address(b, Bases({at[0], panel, k[0], e.Int(0)}));
  };
}

}  // namespace

void SetRightMatrices(PartitionState& state, Contraction& form, const Expr& right, bool transpose,
                      const std::function<I1(const I64& group, const I64& panel)>& is_read) {
  SetRight(state, form, right, transpose, nullptr, is_read);
}

namespace {

/// A product's left matrices as its factors, turned where `swap`.
Buffer LeftMatrices(PartitionState& state, const Expr& data, const Contraction& form, const Int8Dot* bytes, bool swap,
                    int64_t batch) {
  if (bytes != nullptr) return AsMatrices(WordMatrix(state, *bytes, swap), false, batch);
  if (!IsPair(form.factors)) return AsMatrices(MaterialiseAs(state, data, Layout::kPlain, form.dtype), swap, batch);
  const Buffer operand = MaterialiseAs(state, data, Layout::kPlain, HalfOf(form.factors));
  return AsMatrices(AsPairs(operand, operand.shape.size() - 1), swap, batch);
}

}  // namespace

void EmitMatrixProduct(PartitionState& state, const CallNode& call, const StageOutput& output) {
  Emitter& e = state.emitter;
  const bool is_dense = call.op()->name == "nn.dense";
  const bool transpose_a = !is_dense && call.attrs().Bool("transpose_a");
  const bool transpose_b = is_dense || call.attrs().Bool("transpose_b");
  const DataType dtype = SumType(TensorTypeOf(call.args()[0]).dtype());
  const Shape out = ShapeOf(output.result);
  const bool has_batch = out.size() == 3;
  const Expr& right = call.args()[1];
  const int64_t right_batch = has_batch ? ShapeOf(right)[0] : 1;
  int64_t batch = has_batch ? out[0] : 1;
  const size_t last = ShapeOf(right).size() - 1;
  std::optional<Int8Dot> bytes = ReadInt8Dot(state, call.args()[0], right, transpose_b ? last - 1 : last,
                                             /*is_padded=*/false, /*may_be_late=*/true);
  if (bytes) PadWeight(*bytes, transpose_b ? last : last - 1);
  const DotKind pairs = bytes ? DotKind::kOne : PairsOf(state, call);
  Contraction form;
  form.dtype = bytes ? kInt32 : dtype;
  form.factors = bytes ? bytes->factors : pairs;
  form.flips_signs = bytes && bytes->flips_signs;
  Buffer a = LeftMatrices(state, call.args()[0], form, bytes ? &*bytes : nullptr, transpose_a, batch);
  form.rows = a.shape[1];
  form.channels = out.back();
  form.inner = {a.shape[2]};
  // A batch that shares the right matrix is one tall matrix when its rows follow each other.
  const int64_t rows_per_batch = form.rows;
  const bool is_tall = right_batch == 1 && batch > 1 && a.strides[0] == form.rows * a.strides[1];
  if (is_tall) {
    form.rows *= batch;
    batch = 1;
  }
  a.shape[1] = form.rows;
  form.outer = {batch};
  form.row_stride = a.strides[1];
  if (!bytes || state.target.has_tensor_cores) form.depth_stride = a.strides[2];
  const std::vector<int64_t>& to = output.buffer.strides;
  const size_t row_axis = out.size() - 2;
  if (!is_tall || to[0] == rows_per_batch * to[row_axis]) form.result_row_stride = to[row_axis];
  form.a_address = [&](const I64s& outer, const I64& row, const I64s& k) {
    return e.Address(a, Bases({outer[0], row, k[0]}));
  };
  form.result = [&](const I64s& outer, const I64& row, const Index& channel) {
    if (!has_batch) return Indices{{row, 0}, channel};
    if (!is_tall) return Indices{{outer[0], 0}, {row, 0}, channel};
    const I64 size = e.Int(rows_per_batch);
    return Indices{{e.IntOp("divui", row, size), 0}, {e.IntOp("remui", row, size), 0}, channel};
  };
  form.a_is_aligned = HasAlignedRows(a, 2);
  if (EmitStrassen(state, form, right, PackingOf(e, ShapeOf(right), transpose_b, form.channels), output)) return;
  SetRight(state, form, right, transpose_b, bytes ? &*bytes : nullptr);
  state.num_narrow += IsPair(pairs) ? 1 : 0;
  EmitContraction(state, form, output);
}

}  // namespace collage::native
