// recurrent_weights.cc: the inputs' share of all gates as one product, and the recurrence's rows, packed.
#include "backends/native/compiler/kernels/recurrent_weights.h"

#include <algorithm>

#include "backends/native/compiler/contraction/contraction.h"
#include "backends/native/compiler/stages/elements.h"
#include "backends/native/compiler/stages/loop_nest.h"
#include "backends/native/compiler/stages/materialise.h"
#include "collage/ir/infer_type.h"

namespace collage::native {
namespace {

/// Returns both biases of all gates, [D, gates * H]; without the recurrence's of the last gate when the reset scales
/// it.
Expr Biases(const RecurrentLayer& layer) {
  const int64_t width = layer.gates * layer.hidden;
  const auto half = [&](int64_t begin) {
    using V = std::vector<int64_t>;
    return MakeCall("strided_slice", {layer.call.args()[3]},
                    {{"begin", V{begin}}, {"end", V{begin + width}}, {"axes", V{1}}});
  };
  Expr recurrence = half(width);
  if (layer.linear_before_reset) {
    Tensor kept = Tensor::Zeros({1, width}, kFloat32);
    std::fill_n(kept.data<float>(), 2 * layer.hidden, 1.0F);
    recurrence = MakeCall("multiply", {recurrence, MakeConstant(kept)});
  }
  const Expr sum = MakeCall("add", {half(0), recurrence});
  InferType(sum);
  const std::optional<Tensor> known = ConstantValue(sum);
  return known ? MakeConstant(*known) : sum;
}

/// The order of the rows of all gates of the input's weight.
PackedWeights InputPacking(const RecurrentLayer& layer) {
  PackedWeights packing;
  packing.inner = {layer.features};
  packing.groups = layer.directions;
  packing.channels = layer.gates * layer.hidden;
  packing.at = [](const Index& group, const Index& channel, const Indices& k) { return Indices{group, channel, k[0]}; };
  packing.offset = [](const Shape& shape, int64_t group, int64_t channel, const std::vector<int64_t>& k) {
    return (group * shape[1] + channel) * shape[2] + k[0];
  };
  return packing;
}

}  // namespace

Buffer EmitInputShare(PartitionState& state, const RecurrentLayer& layer) {
  Emitter& e = state.emitter;
  const int64_t rows = layer.steps * layer.batch;
  const int64_t width = layer.gates * layer.hidden;
  const Buffer shares = state.AddWorkspace({layer.directions, rows, width}, Layout::kPlain);
  const Buffer data = MaterialisePlain(state, layer.call.args()[0]);
  const Var products = MakeVar("products", TensorType(Shape{layer.directions, rows, width}, kFloat32));
  const Expr sum = MakeCall("add", {products, MakeCall("expand_dims", {Biases(layer)}, {{"axis", 1}})});
  InferType(sum);
  const Buffer b = PackWeights(state, layer.call.args()[1], InputPacking(layer), kFloat32);
  Contraction form;
  form.outer = {layer.directions};
  form.rows = rows;
  form.channels = width;
  form.inner = {layer.features};
  form.row_stride = layer.features;
  Buffer flat = data;
  flat.shape = {rows, layer.features};
  flat.strides = {layer.features, 1};
  form.a_address = [&](const I64s&, const I64& row, const I64s& k) { return e.Address(flat, Bases({row, k[0]})); };
  form.b_address = [&](const I64s& outer, const I64& panel, const I64s& k) {
    return e.Address(b, Bases({outer[0], panel, k[0], e.Int(0)}));
  };
  form.result = [](const I64s& outer, const I64& row, const Index& channel) {
    return Indices{{outer[0], 0}, {row, 0}, channel};
  };
  EmitContraction(state, form, {products, sum, shares});
  state.synthetic.push_back(sum);
  return shares;
}

Buffer PackRecurrence(PartitionState& state, const RecurrentLayer& layer, const std::vector<int64_t>& gates) {
  Emitter& e = state.emitter;
  const int64_t lanes = e.lanes();
  const int64_t blocks = (layer.hidden + lanes - 1) / lanes;
  const auto count = static_cast<int64_t>(gates.size());
  const Shape shape{layer.directions, blocks, layer.hidden, count, lanes};
  if (const std::optional<Tensor> value = ConstantValue(layer.call.args()[2])) {
    Tensor packed = Tensor::Zeros(shape, kFloat32);
    const float* from = value->data<float>();
    float* to = packed.data<float>();
    for (int64_t d = 0; d < layer.directions; ++d) {
      for (int64_t j = 0; j < layer.hidden; ++j) {
        for (int64_t k = 0; k < layer.hidden; ++k) {
          for (int64_t g = 0; g < count; ++g) {
            to[(((d * blocks + j / lanes) * layer.hidden + k) * count + g) * lanes + j % lanes] =
                from[(d * layer.gates * layer.hidden + gates[static_cast<size_t>(g)] * layer.hidden + j) *
                         layer.hidden +
                     k];
          }
        }
      }
    }
    return state.AddConstant(packed);
  }
  const Buffer buffer = state.AddWorkspace(shape, Layout::kPlain);
  for (int64_t g = 0; g < count; ++g) {
    Buffer slice = buffer;
    slice.offset_bytes += g * lanes * 4;
    slice.shape[3] = 1;
    EmitElements(state, slice, [&](const Indices& at) {
      const Index neuron = e.IndexOp("minsi", e.Sum(e.Scaled(at[1], lanes), at[4]), layer.hidden - 1);
      return state.expressions.At(layer.call.args()[2],
                                  {at[0], e.Shifted(neuron, gates[static_cast<size_t>(g)] * layer.hidden), at[2]});
    });
  }
  return buffer;
}

}  // namespace collage::native
