// spec.cc: the JSON of an operation.
#include "backends/xnnpack/spec.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "collage/support/error.h"

namespace collage::xnnpack_toolchain {
namespace {

using nlohmann::json;

json ToValue(const Quantisation& quantisation) {
  return {{"scales", quantisation.scales}, {"zero_point", quantisation.zero_point}};
}

Quantisation QuantisationFrom(const json& value) {
  return {value.at("scales").get<std::vector<double>>(), value.at("zero_point").get<int>()};
}

json ToValue(const Operand& operand) {
  if (!operand.defined()) return nullptr;
  return {{"input", operand.input},
          {"constant", operand.constant},
          {"shape", operand.shape},
          {"element", static_cast<int>(operand.element)},
          {"quantisation", ToValue(operand.quantisation)}};
}

/// JSON has no infinities: null.
json ToValue(double bound) { return std::isinf(bound) ? json(nullptr) : json(bound); }

double BoundFrom(const json& value, double infinity) { return value.is_null() ? infinity : value.get<double>(); }

template <typename Enum>
Enum EnumFrom(const json& value, Enum last) {
  const int number = value.get<int>();
  if (number < 0 || number > static_cast<int>(last)) throw std::out_of_range("a kind is out of range");
  return static_cast<Enum>(number);
}

Operand OperandFrom(const json& value) {
  if (value.is_null()) return {};
  return {value.at("input").get<int>(), value.at("constant").get<int>(), value.at("shape").get<Shape>(),
          EnumFrom(value.at("element"), Element::kUInt8), QuantisationFrom(value.at("quantisation"))};
}

}  // namespace

std::string ToJson(const Operation& o) {
  json data = json::array();
  for (const Operand& operand : o.data) data.push_back(ToValue(operand));
  return json{{"kind", static_cast<int>(o.kind)},
              {"unary", static_cast<int>(o.unary)},
              {"binary", static_cast<int>(o.binary)},
              {"element", static_cast<int>(o.element)},
              {"data", data},
              {"weights", ToValue(o.weights)},
              {"bias", ToValue(o.bias)},
              {"result", o.result},
              {"result_quantisation", ToValue(o.result_quantisation)},
              {"kernel", o.kernel},
              {"strides", o.strides},
              {"dilation", o.dilation},
              {"before", o.before},
              {"after", o.after},
              {"adjustment", o.adjustment},
              {"groups", o.groups},
              {"axis", o.axis},
              {"align_corners", o.align_corners},
              {"asymmetric", o.asymmetric},
              {"alpha", ToValue(o.alpha)},
              {"low", ToValue(o.low)},
              {"high", ToValue(o.high)}}
      .dump();
}

Operation FromJson(std::string_view text) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  try {
    const json value = json::parse(text);
    Operation o;
    o.kind = EnumFrom(value.at("kind"), Kind::kDequantize);
    o.unary = EnumFrom(value.at("unary"), Unary::kLeakyRelu);
    o.binary = EnumFrom(value.at("binary"), Binary::kSquaredDifference);
    o.element = EnumFrom(value.at("element"), Element::kUInt8);
    for (const json& operand : value.at("data")) o.data.push_back(OperandFrom(operand));
    o.weights = OperandFrom(value.at("weights"));
    o.bias = OperandFrom(value.at("bias"));
    value.at("result").get_to(o.result);
    o.result_quantisation = QuantisationFrom(value.at("result_quantisation"));
    value.at("kernel").get_to(o.kernel);
    value.at("strides").get_to(o.strides);
    value.at("dilation").get_to(o.dilation);
    value.at("before").get_to(o.before);
    value.at("after").get_to(o.after);
    value.at("adjustment").get_to(o.adjustment);
    value.at("groups").get_to(o.groups);
    value.at("axis").get_to(o.axis);
    value.at("align_corners").get_to(o.align_corners);
    value.at("asymmetric").get_to(o.asymmetric);
    o.alpha = BoundFrom(value.at("alpha"), -kInfinity);  // of kPad: what a maximum is padded with
    o.low = BoundFrom(value.at("low"), -kInfinity);
    o.high = BoundFrom(value.at("high"), kInfinity);
    return o;
  } catch (const std::exception& e) {
    throw Error(ErrorCategory::kCorrupt, fmt::format("an XNNPACK kernel cannot be read: {}", e.what()));
  }
}

}  // namespace collage::xnnpack_toolchain
