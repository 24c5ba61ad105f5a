// patterns_quantised.cc: rows of 8-bit integers: qnn.dequantize, an operator of floats, qnn.quantize.
#include "backends/dnnl/pattern_parts.h"

namespace collage::dnnl_toolchain {
namespace {

constexpr const char* kData = "qnn.dequantize(*, const, const)";
constexpr const char* kWeights = "qnn.dequantize(const, const, const)";

std::string Quantised(const std::string& inner) { return fmt::format("qnn.quantize({}, const, const)", inner); }
std::string MaybeQuantised(const std::string& inner) { return fmt::format("({} | {})", Quantised(inner), inner); }

/// The anchor with 8-bit data and weights; its result is quantised or left as floats.
void AddAnchor(std::vector<PatternTableEntry>& table, const std::string& name, const std::string& anchor) {
  const std::string biased = Around(kBias, anchor);
  const std::string either = fmt::format("({} | {})", biased, anchor);
  const std::string limited = fmt::format("({0} | nn.relu({0}) | clip({0}))", either);
  const std::string requantised = fmt::format("qnn.dequantize({}, const, const)", Quantised(limited));
  for (const auto& [suffix, inner] : {std::pair{"_sum", either}, std::pair{"_requantize_sum", requantised}}) {
    const std::string summed = fmt::format("(add({0}, {1}) | add({0}, *))", inner, kData);
    AddCombining(table, name + suffix + "_relu", MaybeQuantised(fmt::format("(nn.relu({0}) | clip({0}))", summed)));
    AddCombining(table, name + suffix, MaybeQuantised(summed));
  }
  Add(table, name + "_bias_relu", MaybeQuantised(Around(kSimple[0], biased)));
  Add(table, name + "_bias_clip", MaybeQuantised(Around(kSimple[1], biased)));
  Add(table, name + "_activation", MaybeQuantised(AnyActivation(either)));
  AddCombining(table, name + "_multiply", MaybeQuantised(fmt::format("multiply({}, *)", either)));
  Add(table, name + "_bias", MaybeQuantised(biased));
  Add(table, name, MaybeQuantised(anchor));
}

/// Integers widened to int32, as ONNX's ConvInteger and MatMulInteger are imported; the result may be scaled to floats.
void AddIntegerAnchor(std::vector<PatternTableEntry>& table, const std::string& name, const std::string& anchor) {
  const std::string scaled = fmt::format("multiply(cast({}), *)", anchor);
  Add(table, name + "_scale_bias", Around(kBias, scaled));
  Add(table, name + "_scale_bias_relu", Around(kSimple[0], Around(kBias, scaled)));
  Add(table, name + "_scale", scaled);
  Add(table, name, anchor);
}

}  // namespace

void AddQuantisedRows(std::vector<PatternTableEntry>& table) {
  const std::string widened = "(subtract(cast(*), *) | cast(*))";
  for (int rank : {2, 1, 3}) {
    AddAnchor(table, fmt::format("qnn.conv{}d", rank), fmt::format("nn.conv{}d({}, {})", rank, kData, kWeights));
    AddIntegerAnchor(table, fmt::format("integer_conv{}d", rank), fmt::format("nn.conv{}d({}, const)", rank, widened));
  }
  for (int rank : {2, 1, 3}) {
    AddAnchor(table, fmt::format("qnn.deconv{}d", rank),
              fmt::format("nn.conv{}d_transpose({}, {})", rank, kData, kWeights));
  }
  AddAnchor(table, "qnn.dense", fmt::format("(nn.dense({0}, {1}) | reshape(nn.dense({0}, {1})))", kData, kWeights));
  AddIntegerAnchor(table, "integer_dense",
                   fmt::format("(nn.dense({0}, const) | reshape(nn.dense({0}, const)))", widened));
  for (const char* op : {"matmul", "batch_matmul"}) {
    const std::string product = fmt::format("nn.{0}({1}, {1})", op, kData);
    Add(table, fmt::format("qnn.{}_scale", op),
        MaybeQuantised(fmt::format("(multiply({0}, const) | divide({0}, const))", product)));
    Add(table, fmt::format("qnn.{}", op), MaybeQuantised(product));
  }
  for (int rank : {2, 1, 3}) {
    for (const char* kind : {"max_pool", "avg_pool", "global_max_pool", "global_avg_pool"}) {
      Add(table, fmt::format("qnn.{}{}d", kind, rank), Quantised(fmt::format("nn.{}{}d({})", kind, rank, kData)));
    }
  }
  for (const char* op : {"add", "subtract", "multiply"}) {
    const std::string result = fmt::format("{0}({1}, {1})", op, kData);
    Add(table, fmt::format("qnn.{}", op), Quantised(fmt::format("({0} | nn.relu({0}) | clip({0}))", result)));
  }
  for (int fields = 2; fields <= 5; ++fields) {
    std::string tuple = kData;
    for (int i = 1; i < fields; ++i) tuple += fmt::format(", {}", kData);
    Add(table, "qnn.concatenate", Quantised(fmt::format("concatenate(tuple({}))", tuple)));
  }
}

void AddConversions(std::vector<PatternTableEntry>& table) {
  AddAside(table, "requantize", Quantised(kData));
  AddAside(table, "quantize", Quantised("*"));
  AddAside(table, "dequantize", kData);
}

}  // namespace collage::dnnl_toolchain
