// contraction.cc: rows of convolutions and matrix products.
#include <openvino/opsets/opset13.hpp>
#include <optional>

#include "backends/openvino/compiler/translate.h"

namespace collage::openvino {
namespace {

namespace ops = ov::opset13;
using Value = ov::Output<ov::Node>;

ov::CoordinateDiff Diff(const std::vector<int64_t>& values) { return {values.begin(), values.end()}; }

/// Weight [G * A, B, kernel…] as [G, A, B, kernel…].
Value Grouped(const Value& weight, size_t groups) {
  ov::Shape shape = weight.get_shape();
  shape[0] /= groups;
  shape.insert(shape.begin(), groups);
  return Reshaped(weight, shape);
}

ov::OutputVector Conv(const OpArgs& call) {
  const Window window(call.attrs, call.rank() - 2);
  const auto groups = static_cast<size_t>(call.attrs.Int("groups"));
  if (groups == 1) {
    return {std::make_shared<ops::Convolution>(call[0], call[1], window.strides, Diff(window.before),
                                               Diff(window.after), window.dilation)};
  }
  return {std::make_shared<ops::GroupConvolution>(call[0], Grouped(call[1], groups), window.strides,
                                                  Diff(window.before), Diff(window.after), window.dilation)};
}

ov::OutputVector ConvTranspose(const OpArgs& call) {
  const size_t spatial = call.rank() - 2;
  const Window window(call.attrs, spatial);
  const auto groups = static_cast<size_t>(call.attrs.Int("groups"));
  std::vector<int64_t> extra = call.attrs.Ints("output_padding");
  if (extra.size() == 1) extra.resize(spatial, extra[0]);
  if (groups == 1) {
    return {std::make_shared<ops::ConvolutionBackpropData>(call[0], call[1], window.strides, Diff(window.before),
                                                           Diff(window.after), window.dilation,
                                                           ov::op::PadType::EXPLICIT, Diff(extra))};
  }
  return {std::make_shared<ops::GroupConvolutionBackpropData>(call[0], Grouped(call[1], groups), window.strides,
                                                              Diff(window.before), Diff(window.after), window.dilation,
                                                              ov::op::PadType::EXPLICIT, Diff(extra))};
}

/// Returns `value` before its leading dimensions were merged, if the last `kept` dimensions are untouched.
Value BeforeMerge(const Value& value, size_t kept) {
  if (!ov::is_type<ops::Reshape>(value.get_node()) || value.get_partial_shape().is_dynamic()) return value;
  const Value source = value.get_node()->input_value(0);
  const ov::Shape& from = source.get_shape();
  const ov::Shape& to = value.get_shape();
  if (from.size() <= to.size() || to.size() < kept) return value;
  const auto tail = static_cast<ptrdiff_t>(kept);
  return std::equal(from.end() - tail, from.end(), to.end() - tail) ? source : value;
}

/// The plugin's fusions expect products of the tensors that the model multiplies, not of flattened ones. Tensors
/// of symbolic sizes are multiplied as they are: a reshape behind the product would keep its bias from it.
ov::OutputVector Dense(const OpArgs& call) {
  if (call.is_dynamic()) return {std::make_shared<ops::MatMul>(call[0], call[1], false, true)};
  const auto product = std::make_shared<ops::MatMul>(BeforeMerge(call[0], 1), call[1], false, true);
  return {Reshaped(product, call.result_shape())};
}

ov::OutputVector MatMul(const OpArgs& call) {
  const bool transpose_a = call.attrs.Bool("transpose_a");
  const bool transpose_b = call.attrs.Bool("transpose_b");
  return {std::make_shared<ops::MatMul>(call[0], call[1], transpose_a, transpose_b)};
}

/// `value` [B, R, C] with `lead` dimensions instead of B; none when their product is another number.
std::optional<Value> WithLead(const Value& value, const ov::Shape& lead) {
  const ov::Shape& shape = value.get_shape();
  if (ov::shape_size(lead) != shape[0]) return {};
  ov::Shape wanted = lead;
  wanted.insert(wanted.end(), shape.end() - 2, shape.end());
  return Reshaped(value, wanted);
}

ov::OutputVector Einsum(const OpArgs& call) {
  std::string equation = call.attrs.String("equation");
  std::erase(equation, ' ');
  return {std::make_shared<ov::op::v7::Einsum>(call.inputs, equation)};
}

ov::OutputVector BatchMatMul(const OpArgs& call) {
  Value x = call[0];
  Value y = call[1];
  if (call.is_dynamic()) return MatMul(call);
  for (const Value& side : {call[0], call[1]}) {
    const ov::Shape& shape = BeforeMerge(side, 2).get_shape();
    if (shape.size() != 4) continue;
    const ov::Shape lead(shape.begin(), shape.end() - 2);
    const auto left = WithLead(call[0], lead);
    const auto right = WithLead(call[1], lead);
    if (!left || !right) continue;
    x = *left;
    y = *right;
    break;
  }
  const auto product =
      std::make_shared<ops::MatMul>(x, y, call.attrs.Bool("transpose_a"), call.attrs.Bool("transpose_b"));
  return {Reshaped(product, call.result_shape())};
}

}  // namespace

void AddContractionRows(RowMap& rows) {
  for (const char* name : {"nn.conv1d", "nn.conv2d", "nn.conv3d"}) rows[name] = Conv;
  for (const char* name : {"nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose"}) {
    rows[name] = ConvTranspose;
  }
  rows["nn.dense"] = Dense;
  rows["nn.matmul"] = MatMul;
  rows["nn.batch_matmul"] = BatchMatMul;
  rows["einsum"] = Einsum;
}

}  // namespace collage::openvino
