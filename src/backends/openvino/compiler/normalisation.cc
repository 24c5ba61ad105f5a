// normalisation.cc: rows of operators that scale by statistics of their data.
#include <openvino/opsets/opset13.hpp>

#include "backends/openvino/compiler/translate.h"

namespace collage::openvino {
namespace {

namespace ops = ov::opset13;
using Value = ov::Output<ov::Node>;

bool Flag(const Attrs& attrs, std::string_view name) { return !attrs.Has(name) || attrs.Bool(name); }

/// Normalised over `axes`, then scaled and shifted along the attribute `axis`.
ov::OutputVector Normalise(const OpArgs& call, const std::vector<int64_t>& axes) {
  const int64_t axis = NormalAxis(call.attrs.Int("axis"), call.rank());
  Value value = std::make_shared<ops::MVN>(call[0], Ints(axes), true, static_cast<float>(call.attrs.Double("epsilon")),
                                           ov::op::MVNEpsMode::INSIDE_SQRT);
  const bool last = axis + 1 == static_cast<int64_t>(call.rank());
  const auto along = [&](const Value& factors) { return last ? factors : AlongAxis(factors, axis, call.rank()); };
  if (Flag(call.attrs, "scale")) value = std::make_shared<ops::Multiply>(value, along(call[1]));
  if (Flag(call.attrs, "center")) value = std::make_shared<ops::Add>(value, along(call[2]));
  return {value};
}

ov::OutputVector LayerNorm(const OpArgs& call) {
  return Normalise(call, {NormalAxis(call.attrs.Int("axis"), call.rank())});
}

ov::OutputVector InstanceNorm(const OpArgs& call) {
  std::vector<int64_t> axes;
  for (size_t i = 2; i < call.rank(); ++i) axes.push_back(static_cast<int64_t>(i));
  return Normalise(call, axes);
}

ov::OutputVector GroupNorm(const OpArgs& call) {
  if (NormalAxis(call.attrs.IntOr("axis", 1), call.rank()) != 1)
    throw Untranslatable{"normalises groups of axis 1 only"};
  return {std::make_shared<ops::GroupNormalization>(call[0], call[1], call[2], call.attrs.Int("num_groups"),
                                                    call.attrs.Double("epsilon"))};
}

ov::OutputVector BatchNorm(const OpArgs& call) {
  if (NormalAxis(call.attrs.Int("axis"), call.rank()) != 1) throw Untranslatable{"normalises channels of axis 1 only"};
  const ov::Shape channels = call[1].get_shape();
  const auto filled = [&](double value) {
    return ops::Constant::create(call[1].get_element_type(), channels,
                                 std::vector<double>(ov::shape_size(channels), value));
  };
  const Value gamma = Flag(call.attrs, "scale") ? call[1] : Value(filled(1));
  const Value beta = Flag(call.attrs, "center") ? call[2] : Value(filled(0));
  return {
      std::make_shared<ops::BatchNormInference>(call[0], gamma, beta, call[3], call[4], call.attrs.Double("epsilon")),
      call[3], call[4]};
}

ov::OutputVector BiasAdd(const OpArgs& call) {
  return {std::make_shared<ops::Add>(call[0], AlongAxis(call[1], call.attrs.Int("axis"), call.rank()))};
}

ov::OutputVector Softmax(const OpArgs& call) {
  return {std::make_shared<ops::Softmax>(call[0], call.attrs.Int("axis"))};
}

ov::OutputVector LogSoftmax(const OpArgs& call) {
  return {std::make_shared<ops::LogSoftmax>(call[0], call.attrs.Int("axis"))};
}

ov::OutputVector Lrn(const OpArgs& call) {
  return {std::make_shared<ops::LRN>(call[0], Ints({NormalAxis(call.attrs.IntOr("axis", 1), call.rank())}),
                                     call.attrs.Double("alpha"), call.attrs.Double("beta"), call.attrs.Double("bias"),
                                     static_cast<size_t>(call.attrs.Int("size")))};
}

ov::OutputVector L2Normalize(const OpArgs& call) {
  const std::vector<int64_t> axes =
      call.attrs.Has("axis") && !call.attrs.IsNone("axis") ? call.attrs.Ints("axis") : std::vector<int64_t>{1};
  return {std::make_shared<ops::NormalizeL2>(call[0], Ints(axes), static_cast<float>(call.attrs.Double("eps")),
                                             ov::op::EpsMode::MAX)};
}

}  // namespace

void AddNormalisationRows(RowMap& rows) {
  rows["nn.layer_norm"] = LayerNorm;
  rows["nn.instance_norm"] = InstanceNorm;
  rows["nn.group_norm"] = GroupNorm;
  rows["nn.batch_norm"] = BatchNorm;
  rows["nn.bias_add"] = BiasAdd;
  rows["nn.softmax"] = Softmax;
  rows["nn.log_softmax"] = LogSoftmax;
  rows["nn.lrn"] = Lrn;
  rows["nn.l2_normalize"] = L2Normalize;
}

}  // namespace collage::openvino
