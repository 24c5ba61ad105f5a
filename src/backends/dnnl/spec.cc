// spec.cc: the JSON of a primitive.
#include "backends/dnnl/spec.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "collage/support/error.h"

namespace collage::dnnl_toolchain {
namespace {

using nlohmann::json;

json ToValue(const Operand& operand) {
  if (!operand.defined()) return nullptr;
  return {{"input", operand.input},
          {"constant", operand.constant},
          {"shape", operand.shape},
          {"layout", static_cast<int>(operand.layout)}};
}

Layout LayoutFrom(const json& value) {
  const int number = value.get<int>();
  if (number < 0 || number > static_cast<int>(Layout::kChannelsLast)) throw std::out_of_range("layout");
  return static_cast<Layout>(number);
}

Operand OperandFrom(const json& value) {
  if (value.is_null()) return {};
  return {value.at("input").get<int>(), value.at("constant").get<int>(), value.at("shape").get<Shape>(),
          LayoutFrom(value.at("layout"))};
}

}  // namespace

std::string ToJson(const Primitive& p) {
  json post_ops = json::array();
  for (const PostOp& op : p.post_ops) {
    post_ops.push_back({{"eltwise", static_cast<int>(op.eltwise)},
                        {"alpha", op.alpha},
                        {"beta", op.beta},
                        {"binary", static_cast<int>(op.binary)},
                        {"operand", ToValue(op.operand)}});
  }
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
              {"epsilon", p.epsilon},
              {"src", ToValue(p.src)},
              {"weights", ToValue(p.weights)},
              {"bias", ToValue(p.bias)},
              {"dst_shape", p.dst_shape},
              {"dst_layout", static_cast<int>(p.dst_layout)},
              {"post_ops", post_ops}}
      .dump();
}

Primitive FromJson(std::string_view text) {
  try {
    const json value = json::parse(text);
    Primitive p;
    p.kind = static_cast<Kind>(value.at("kind").get<int>());
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
    value.at("epsilon").get_to(p.epsilon);
    p.src = OperandFrom(value.at("src"));
    p.weights = OperandFrom(value.at("weights"));
    p.bias = OperandFrom(value.at("bias"));
    value.at("dst_shape").get_to(p.dst_shape);
    p.dst_layout = LayoutFrom(value.at("dst_layout"));
    for (const json& op : value.at("post_ops")) {
      p.post_ops.push_back({static_cast<Eltwise>(op.at("eltwise").get<int>()), op.at("alpha").get<double>(),
                            op.at("beta").get<double>(), static_cast<Binary>(op.at("binary").get<int>()),
                            OperandFrom(op.at("operand"))});
    }
    return p;
  } catch (const std::exception& e) {
    throw Error(ErrorCategory::kCorrupt, fmt::format("a oneDNN kernel cannot be read: {}", e.what()));
  }
}

}  // namespace collage::dnnl_toolchain
