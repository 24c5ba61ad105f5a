// patterns.cc: rows of floats: anchors times bias, tensors and activations behind them, and primitives that stand
// alone.
#include "backends/dnnl/patterns.h"

#include "backends/dnnl/pattern_parts.h"

namespace collage::dnnl_toolchain {
namespace {

/// Operators with a tensor that a primitive may end in.
constexpr const char* kBinary[] = {"add", "multiply", "subtract", "divide", "maximum", "minimum"};

std::string AnyBinary(const std::string& inner) {
  std::string text;
  for (const char* op : kBinary) text += fmt::format("{}{}({}, *)", text.empty() ? "(" : " | ", op, inner);
  return text + ")";
}

void AddActivations(std::vector<PatternTableEntry>& table, const std::string& name, const std::string& text) {
  for (const Part& part : kWritten) Add(table, name + part.suffix, Around(part, text));
  for (const Part& part : kPrelu) Add(table, name + part.suffix, Around(part, text));
  for (const Part& part : kSimple) Add(table, name + part.suffix, Around(part, text));
}

/// The anchor alone, with bias, with a tensor; each with activations.
void AddAnchor(std::vector<PatternTableEntry>& table, const std::string& name, const std::string& anchor) {
  const std::string biased = Around(kBias, anchor);
  const std::string either = fmt::format("({} | {})", biased, anchor);
  AddCombining(table, name + "_activation_sum_activation", AnySimple(fmt::format("add({}, *)", AnySimple(either))));
  AddCombining(table, name + "_sum_activation",
               fmt::format("(sigmoid(add({0}, *)) | tanh(add({0}, *)) | nn.leaky_relu(add({0}, *)))", either));
  AddCombining(table, name + "_binary_activation",
               AnySimple(fmt::format("(multiply({0}, *) | subtract({0}, *) | divide({0}, *) | maximum({0}, *) | "
                                     "minimum({0}, *))",
                                     either)));
  AddCombining(table, name + "_activation_binary", AnyBinary(AnySimple(either)));
  AddCombining(table, name + "_scale_sum", fmt::format("add(multiply({}, *), *)", either));
  for (const auto& [prefix, inner] : {std::pair{name + "_bias", biased}, std::pair{name, anchor}}) {
    const std::string summed = Around(kSum, inner);
    AddCombining(table, prefix + "_sum_relu", Around(kSimple[0], summed));
    AddCombining(table, prefix + "_sum_clip", Around(kSimple[1], summed));
    AddCombining(table, prefix + "_sum", summed);
    AddActivations(table, prefix, inner);
    AddCombining(table, prefix + "_multiply", fmt::format("multiply({}, *)", inner));
    Add(table, prefix, inner);
  }
  Add(table, name + "_function", Around(kFunctions, either));
  AddCombining(table, name + "_binary",
               fmt::format("(subtract({0}, *) | divide({0}, *) | maximum({0}, *) | minimum({0}, *))", either));
}

void AddProducts(std::vector<PatternTableEntry>& table) {
  const std::string product = "(nn.batch_matmul(*, *) | reshape(nn.batch_matmul(*, *)))";
  const std::string scaled = fmt::format("(multiply({0}, const) | divide({0}, const))", product);
  Add(table, "batch_matmul_scale", scaled);
  Add(table, "batch_matmul_add", fmt::format("add({}, *)", product));
  AddCombining(table, "batch_matmul_scale_add", fmt::format("add({}, *)", scaled));
  Add(table, "batch_matmul", "nn.batch_matmul(*, *)");
  const std::string matmul = "(nn.matmul(*, *) | reshape(nn.matmul(*, *)))";
  Add(table, "matmul_add", fmt::format("add({}, *)", matmul));
  Add(table, "matmul_activation", AnySimple(fmt::format("({0} | add({0}, *))", matmul)));
  Add(table, "matmul", "nn.matmul(*, *)");
  Add(table, "dense", "nn.dense(*, *)");
}

void AddWindows(std::vector<PatternTableEntry>& table) {
  for (int rank : {2, 1, 3}) {
    for (const char* kind : {"max_pool", "avg_pool", "global_max_pool", "global_avg_pool"}) {
      Add(table, fmt::format("{}{}d", kind, rank), fmt::format("nn.{}{}d(*)", kind, rank));
    }
    Add(table, fmt::format("resize{}d", rank), fmt::format("image.resize{}d(*)", rank));
  }
  Add(table, "adaptive_max_pool2d", "nn.adaptive_max_pool2d(*)");
  Add(table, "adaptive_avg_pool2d", "nn.adaptive_avg_pool2d(*)");
}

/// One operator of the element-wise kind, of whatever tensors.
void AddElementwise(std::vector<PatternTableEntry>& table) {
  for (const Part& part : kWritten) AddAside(table, part.suffix + 1, Around(part, "$x"));
  for (const Part& part : kPrelu) AddAside(table, part.suffix + 1, Around(part, "$x"));
  for (const Part& part : kSimple) AddAside(table, part.suffix + 1, Around(part, "*"));
  for (const char* op : {"abs", "exp", "log", "sqrt", "round"}) AddAside(table, op, fmt::format("{}(*)", op));
  AddAside(table, "power", "power(*, const)");
  for (const char* op : kBinary) {
    AddAside(table, op, fmt::format("{}(*, *)", op));
    AddAside(table, fmt::format("{}_activation", op), AnySimple(fmt::format("{}(*, *)", op)));
  }
  for (const char* op : {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}) {
    AddAside(table, op, fmt::format("{}(*, *)", op));
  }
}

}  // namespace

std::vector<PatternTableEntry> Patterns() {
  std::vector<PatternTableEntry> table;
  AddQuantisedRows(table);
  // 8-bit weights of float data are dequantised when they are packed.
  const std::string weights = "(const | qnn.dequantize(const, const, const))";
  for (int rank : {2, 1, 3})
    AddAnchor(table, fmt::format("conv{}d", rank), fmt::format("nn.conv{}d(*, {})", rank, weights));
  for (int rank : {2, 1, 3}) {
    AddAnchor(table, fmt::format("deconv{}d", rank), fmt::format("nn.conv{}d_transpose(*, {})", rank, weights));
  }
  // Sequences are flattened before a product and given their shape back behind it, before the bias.
  AddAnchor(table, "dense", fmt::format("(nn.dense(*, {0}) | reshape(nn.dense(*, {0})))", weights));
  AddProducts(table);
  AddWindows(table);
  for (const char* op : {"softmax", "log_softmax", "lrn"}) Add(table, op, fmt::format("nn.{}(*)", op));
  for (const char* op : {"layer_norm", "instance_norm", "group_norm"})
    Add(table, op, fmt::format("nn.{}(*, *, *)", op));
  for (const char* op : {"sum", "mean", "max", "min", "prod"}) AddAside(table, op, fmt::format("{}(*)", op));
  Add(table, "concatenate", "concatenate(*)");
  for (const char* op : {"transpose", "layout_transform"}) Add(table, op, fmt::format("{}(*)", op));
  AddAside(table, "cast", "cast(*)");
  AddElementwise(table);
  AddConversions(table);
  return table;
}

}  // namespace collage::dnnl_toolchain
