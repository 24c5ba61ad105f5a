// patterns.cc: operators with what XNNPACK fuses, a bias and a clamp, in float32 and between qnn.dequantize and
// qnn.quantize.
#include "backends/xnnpack/patterns.h"

#include <fmt/format.h>

#include <string>

#include "backends/xnnpack/describe.h"

namespace collage::xnnpack_toolchain {
namespace {

using Table = std::vector<PatternTableEntry>;

/// Joined tensors: each count is a row.
constexpr int kMaxJoined = 8;

void Add(Table& table, const std::string& name, std::string text) {
  table.push_back({"xnnpack." + name, std::move(text), CheckComposite});
}

std::string Dequantized(const std::string& inner) { return fmt::format("qnn.dequantize({}, const, const)", inner); }
std::string Quantized(const std::string& inner) { return fmt::format("qnn.quantize({}, const, const)", inner); }

/// Alone and with a clamp behind it.
void AddClamped(Table& table, const std::string& name, const std::string& text) {
  Add(table, name + "_relu", fmt::format("nn.relu({})", text));
  Add(table, name + "_clip", fmt::format("clip({})", text));
  Add(table, name, text);
}

/// Adds the pattern with a quantised result.
void AddQuantized(Table& table, const std::string& name, const std::string& text) {
  Add(table, "q_" + name + "_clamp", Quantized(fmt::format("(nn.relu({0}) | clip({0}))", text)));
  Add(table, "q_" + name, Quantized(text));
}

/// A contraction of data with constant weights, `text` with {0} for data and {1} for weights.
void AddContraction(Table& table, const std::string& name, const std::string& text, bool reshaped) {
  const auto with = [&](const std::string& data, const std::string& weights, const std::string& bias) {
    const std::string call = fmt::format("{}({}, {})", text, data, weights);
    const std::string anchor = reshaped ? fmt::format("({0} | reshape({0}))", call) : call;
    return bias.empty() ? anchor : fmt::format("(add({0}, {1}) | nn.bias_add({0}, {1}))", anchor, bias);
  };
  const std::string weights = Dequantized("const");
  AddQuantized(table, name + "_bias", with(Dequantized("*"), weights, fmt::format("(const | {})", weights)));
  AddQuantized(table, name, with(Dequantized("*"), weights, ""));
  AddClamped(table, name + "_bias", with("*", "const", "const"));
  AddClamped(table, name, with("*", "const", ""));
}

void AddContractions(Table& table) {
  AddContraction(table, "conv2d", "nn.conv2d", false);
  AddContraction(table, "deconv2d", "nn.conv2d_transpose", false);
  AddContraction(table, "dense", "nn.dense", true);
  AddClamped(table, "conv1d_bias", "(add(nn.conv1d(*, const), const) | nn.bias_add(nn.conv1d(*, const), const))");
  AddClamped(table, "conv1d", "nn.conv1d(*, const)");
}

void AddPools(Table& table) {
  const auto call = [](const char* name, const std::string& data) { return fmt::format("nn.{}({})", name, data); };
  for (const char* name : {"max_pool2d", "avg_pool2d", "global_avg_pool2d"}) {
    AddQuantized(table, name, call(name, Dequantized("*")));
    AddClamped(table, name, call(name, "*"));
  }
  for (const char* name : {"max_pool1d", "avg_pool1d", "global_max_pool2d"}) Add(table, name, call(name, "*"));
}

void AddFunctions(Table& table) {
  const std::string six = "clip(add($x, const))";
  Add(table, "hardswish", fmt::format("multiply($x=*, (divide({0}, const) | multiply({0}, const)))", six));
  Add(table, "hardswish", fmt::format("divide(multiply($x=*, {}), const)", six));
  Add(table, "hardswish", fmt::format("multiply(multiply($x=*, {}), const)", six));
  Add(table, "hardswish", "multiply($x=*, clip(add((divide($x, const) | multiply($x, const)), const)))");
  const std::string below = "exp(minimum($x, const))";
  Add(table, "elu",
      fmt::format("add(nn.relu($x=*), (multiply((add({0}, const) | subtract({0}, const)), const) | add({0}, const) | "
                  "subtract({0}, const)))",
                  below));
  Add(table, "squared_difference", "(multiply($d=subtract(*, *), $d) | power(subtract(*, *), const))");
  Add(table, "square", "(multiply($x=*, $x) | power(*, const))");
  for (const char* name : {"sigmoid", "tanh", "nn.leaky_relu"}) {
    const std::string label = name == std::string("nn.leaky_relu") ? "leaky_relu" : name;
    Add(table, "q_" + label, Quantized(fmt::format("{}({})", name, Dequantized("*"))));
    if (label != "tanh") Add(table, label, fmt::format("{}(*)", name));
  }
  for (const char* name : {"abs", "negative", "floor", "ceil", "round", "trunc", "sqrt", "clip"}) {
    Add(table, name, fmt::format("{}(*)", name));
  }
  Add(table, "relu", "nn.relu(*)");
  Add(table, "prelu", "nn.prelu(*, const)");
  Add(table, "q_softmax", Quantized(fmt::format("nn.softmax({})", Dequantized("*"))));
  Add(table, "softmax", "nn.softmax(*)");
}

void AddOperators(Table& table) {
  for (const char* name : {"add", "subtract", "multiply"}) {
    AddQuantized(table, name, fmt::format("{0}({1}, {1})", name, Dequantized("*")));
  }
  for (const char* name : {"add", "subtract", "multiply", "divide"})
    AddClamped(table, name, fmt::format("{}(*, *)", name));
  for (const char* name : {"maximum", "minimum"}) Add(table, name, fmt::format("{}(*, *)", name));
}

void AddMovements(Table& table) {
  Add(table, "resize2d", "image.resize2d(*)");
  Add(table, "pad", "nn.pad(*, const)");
  for (int count = 2; count <= kMaxJoined; ++count) {
    std::string fields = "*";
    for (int i = 1; i < count; ++i) fields += ", *";
    Add(table, fmt::format("concatenate{}", count), fmt::format("concatenate(tuple({}))", fields));
  }
}

}  // namespace

Table Patterns() {
  Table table;
  AddContractions(table);
  AddPools(table);
  AddFunctions(table);
  AddOperators(table);
  AddMovements(table);
  Add(table, "quantize", "qnn.quantize(*, const, const)");
  Add(table, "dequantize", "qnn.dequantize(*, const, const)");
  return table;
}

}  // namespace collage::xnnpack_toolchain
