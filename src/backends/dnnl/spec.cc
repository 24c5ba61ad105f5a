// spec.cc: the JSON of a primitive.
#include "backends/dnnl/spec.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "collage/support/error.h"

namespace collage::dnnl_toolchain {
namespace {

using nlohmann::json;

/// An enumerator, whose last one is `last`.
template <typename Enum>
Enum EnumFrom(const json& value, Enum last) {
  const int number = value.get<int>();
  if (number < 0 || number > static_cast<int>(last)) throw std::out_of_range("enumerator");
  return static_cast<Enum>(number);
}

json ToValue(const Operand& operand) {
  json value{{"shape", operand.shape}, {"dtype", operand.dtype.ToString()}};
  if (operand.input >= 0) value["input"] = operand.input;
  if (operand.constant >= 0) value["constant"] = operand.constant;
  if (operand.layout != Layout::kPlain) value["layout"] = static_cast<int>(operand.layout);
  if (operand.scale != 1) value["scale"] = operand.scale;
  if (operand.zero != 0) value["zero"] = operand.zero;
  if (operand.scales >= 0) value["scales"] = operand.scales;
  if (operand.zero_input >= 0) value["zero_input"] = operand.zero_input;
  return value;
}

Operand OperandFrom(const json& value) {
  Operand operand;
  value.at("shape").get_to(operand.shape);
  operand.dtype = DataType::FromString(value.at("dtype").get<std::string>());
  operand.input = value.value("input", -1);
  operand.constant = value.value("constant", -1);
  operand.layout = EnumFrom(value.value("layout", json(0)), Layout::kChannelsLast);
  operand.scale = value.value("scale", 1.0);
  operand.zero = value.value("zero", int64_t{0});
  operand.scales = value.value("scales", -1);
  operand.zero_input = value.value("zero_input", -1);
  return operand;
}

json ToValue(const PostOp& op) {
  if (op.binary != Binary::kNone) return {{"binary", static_cast<int>(op.binary)}, {"operand", ToValue(op.operand)}};
  return {{"eltwise", static_cast<int>(op.eltwise)}, {"alpha", op.alpha}, {"beta", op.beta}};
}

PostOp PostOpFrom(const json& value) {
  PostOp op;
  if (value.contains("binary")) {
    op.binary = EnumFrom(value.at("binary"), Binary::kPrelu);
    op.operand = OperandFrom(value.at("operand"));
    return op;
  }
  op.eltwise = EnumFrom(value.at("eltwise"), Eltwise::kSoftRelu);
  value.at("alpha").get_to(op.alpha);
  value.at("beta").get_to(op.beta);
  return op;
}

}  // namespace

std::string ToJson(const Primitive& p) {
  json more = json::array();
  for (const Operand& operand : p.more) more.push_back(ToValue(operand));
  json post_ops = json::array();
  for (const PostOp& op : p.post_ops) post_ops.push_back(ToValue(op));
  return json{{"kind", static_cast<int>(p.kind)},
              {"kernel", p.kernel},
              {"strides", p.strides},
              {"dilation", p.dilation},
              {"before", p.before},
              {"after", p.after},
              {"groups", p.groups},
              {"count_include_pad", p.count_include_pad},
              {"transpose_a", p.transpose_a},
              {"transpose_b", p.transpose_b},
              {"axis", p.axis},
              {"axes", p.axes},
              {"epsilon", p.epsilon},
              {"alpha", p.alpha},
              {"beta", p.beta},
              {"offset", p.offset},
              {"binary", static_cast<int>(p.binary)},
              {"reduction", static_cast<int>(p.reduction)},
              {"is_linear", p.is_linear},
              {"multiplied_as", p.multiplied_as.ToString()},
              {"src", ToValue(p.src)},
              {"weights", ToValue(p.weights)},
              {"bias", ToValue(p.bias)},
              {"more", more},
              {"dst", ToValue(p.dst)},
              {"post_ops", post_ops}}
      .dump();
}

Primitive FromJson(std::string_view text) {
  try {
    const json value = json::parse(text);
    Primitive p;
    p.kind = EnumFrom(value.at("kind"), Kind::kReorder);
    value.at("kernel").get_to(p.kernel);
    value.at("strides").get_to(p.strides);
    value.at("dilation").get_to(p.dilation);
    value.at("before").get_to(p.before);
    value.at("after").get_to(p.after);
    value.at("groups").get_to(p.groups);
    value.at("count_include_pad").get_to(p.count_include_pad);
    value.at("transpose_a").get_to(p.transpose_a);
    value.at("transpose_b").get_to(p.transpose_b);
    value.at("axis").get_to(p.axis);
    value.at("axes").get_to(p.axes);
    value.at("epsilon").get_to(p.epsilon);
    value.at("alpha").get_to(p.alpha);
    value.at("beta").get_to(p.beta);
    value.at("offset").get_to(p.offset);
    p.binary = EnumFrom(value.at("binary"), Binary::kPrelu);
    p.reduction = EnumFrom(value.at("reduction"), Reduction::kProduct);
    value.at("is_linear").get_to(p.is_linear);
    p.multiplied_as = DataType::FromString(value.value("multiplied_as", kFloat32.ToString()));
    p.src = OperandFrom(value.at("src"));
    p.weights = OperandFrom(value.at("weights"));
    p.bias = OperandFrom(value.at("bias"));
    for (const json& operand : value.at("more")) p.more.push_back(OperandFrom(operand));
    p.dst = OperandFrom(value.at("dst"));
    for (const json& op : value.at("post_ops")) p.post_ops.push_back(PostOpFrom(op));
    return p;
  } catch (const std::exception& e) {
    throw Error(ErrorCategory::kCorrupt, fmt::format("a oneDNN kernel cannot be read: {}", e.what()));
  }
}

}  // namespace collage::dnnl_toolchain
