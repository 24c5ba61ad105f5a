// quantise.cc: rows of quantised operators, in the form from which the plugin's low-precision passes make int8 kernels.
#include <openvino/opsets/opset13.hpp>

#include "backends/openvino/compiler/translate.h"

namespace collage::openvino {
namespace {

namespace ops = ov::opset13;
using Value = ov::Output<ov::Node>;

/// A scale or zero point, one or one per channel, ready to be broadcast against data of `rank` dimensions.
Value PerChannel(const Value& value, const OpArgs& call) {
  if (ov::shape_size(value.get_shape()) == 1) return Reshaped(value, {});
  return AlongAxis(value, call.attrs.IntOr("axis", -1), call.rank());
}

Value ToFloat(const Value& value) {
  if (value.get_element_type() == ov::element::f32) return value;
  if (const auto* constant = ov::as_type<const ops::Constant>(value.get_node())) {
    return ops::Constant::create(ov::element::f32, value.get_shape(), constant->cast_vector<float>());
  }
  return std::make_shared<ops::Convert>(value, ov::element::f32);
}

bool IsZero(const Value& value) {
  const auto* constant = ov::as_type<const ops::Constant>(value.get_node());
  if (constant == nullptr) return false;
  for (float element : constant->cast_vector<float>()) {
    if (element != 0) return false;
  }
  return true;
}

/// Constant ends of the float range that the integers [low, high] stand for; the passes read them at compile time.
Value RangeEnd(double integer, const Value& scale, const Value& zero_point) {
  const auto* scales = ov::as_type<const ops::Constant>(scale.get_node());
  const auto* zeros = ov::as_type<const ops::Constant>(zero_point.get_node());
  if (scales == nullptr || zeros == nullptr) throw Untranslatable{"quantises with constant scales only"};
  const std::vector<float> factors = scales->cast_vector<float>();
  const std::vector<float> shifts = zeros->cast_vector<float>();
  std::vector<float> ends;
  for (size_t i = 0; i < factors.size(); ++i) {
    const float shift = shifts.size() == 1 ? shifts[0] : shifts.at(i);
    ends.push_back(factors[i] * (static_cast<float>(integer) - shift));
  }
  return ops::Constant::create(ov::element::f32, scale.get_shape(), ends);
}

ov::OutputVector Quantize(const OpArgs& call) {
  const ov::element::Type type = call.result_type();
  if (type != ov::element::u8 && type != ov::element::i8) {
    throw Untranslatable{"quantises to int8 and uint8 only, not " + type.to_string()};
  }
  const double low = type == ov::element::u8 ? 0 : -128;
  const double high = low + 255;
  // Range ends per channel are computed before they are shaped: folding needs plain constants.
  const auto end = [&](double integer) { return PerChannel(RangeEnd(integer, call[1], call[2]), call); };
  const Value quantised = std::make_shared<ops::FakeQuantize>(
      ToFloat(call[0]), end(low), end(high), Scalar(ov::element::f32, low), Scalar(ov::element::f32, high), 256);
  return {std::make_shared<ops::Convert>(quantised, type)};
}

ov::OutputVector Dequantize(const OpArgs& call) {
  Value value = std::make_shared<ops::Convert>(call[0], ov::element::f32);
  if (!IsZero(call[2])) value = std::make_shared<ops::Subtract>(value, PerChannel(ToFloat(call[2]), call));
  value = std::make_shared<ops::Multiply>(value, PerChannel(ToFloat(call[1]), call));
  return {AsType(value, call.result_type())};
}

}  // namespace

void AddQuantisedRows(RowMap& rows) {
  rows["qnn.quantize"] = Quantize;
  rows["qnn.dequantize"] = Dequantize;
}

}  // namespace collage::openvino
