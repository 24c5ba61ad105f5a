// patterns.cc: anchors times bias, residual sum and activation, written as text.
#include "backends/dnnl/patterns.h"

#include <fmt/format.h>

#include <string>

#include "backends/dnnl/describe.h"

namespace collage::dnnl_toolchain {
namespace {

/// A suffix of a pattern's name and the text around `{0}`, the pattern so far.
struct Part {
  const char* suffix;
  const char* text;
};

/// What is added behind an anchor with constant weights.
constexpr Part kBias{"_bias", "(add({0}, const) | nn.bias_add({0}, const))"};
constexpr Part kSum{"_sum", "add({0}, *)"};

/// Activations of one operator each.
constexpr Part kSimple[] = {
    {"_relu", "nn.relu({0})"},      {"_clip", "clip({0})"},
    {"_sigmoid", "sigmoid({0})"},   {"_tanh", "tanh({0})"},
    {"_leaky_relu", "nn.leaky_relu({0})"},
};

/// Written-out activations as exporters associate them; describe.cc checks the constants.
constexpr Part kWritten[] = {
    {"_swish", "multiply({0}, sigmoid({0}))"},
    {"_gelu", "multiply(multiply({0}, add(erf((divide({0}, const) | multiply({0}, const))), const)), const)"},
    {"_gelu", "multiply(multiply({0}, const), add(erf((divide({0}, const) | multiply({0}, const))), const))"},
    {"_gelu", "multiply({0}, multiply(add(erf((divide({0}, const) | multiply({0}, const))), const), const))"},
    {"_gelu_tanh",
     "multiply((multiply({0}, const) | {0}), (add(tanh(multiply(add({0}, multiply((power({0}, const) | "
     "multiply({0}, multiply({0}, {0}))), const)), const)), const) | multiply(add(tanh(multiply(add({0}, "
     "multiply((power({0}, const) | multiply({0}, multiply({0}, {0}))), const)), const)), const), const)))"},
    {"_hardswish", "multiply({0}, (divide(clip(add({0}, const)), const) | multiply(clip(add({0}, const)), const)))"},
    {"_hardswish", "(divide(multiply({0}, clip(add({0}, const))), const) | multiply(multiply({0}, clip(add({0}, const))), const))"},
    {"_hardswish", "multiply({0}, clip(add((divide({0}, const) | multiply({0}, const)), const)))"},
    {"_mish", "multiply({0}, tanh(log(add(exp({0}), const))))"},
    {"_hard_sigmoid", "clip(add((divide({0}, const) | multiply({0}, const)), const))"},
};

std::string Around(const Part& part, const std::string& inner) {
  std::string text;
  for (const char* c = part.text; *c != '\0'; ++c) {
    if (c[0] == '{') {
      text += inner;
      c += 2;
    } else {
      text += *c;
    }
  }
  return text;
}

void Add(std::vector<PatternTableEntry>& table, const std::string& name, std::string text) {
  table.push_back({"dnnl." + name, std::move(text), CheckComposite});
}

void AddActivations(std::vector<PatternTableEntry>& table, const std::string& name, const std::string& text) {
  for (const Part& part : kWritten) Add(table, name + part.suffix, Around(part, text));
  for (const Part& part : kSimple) Add(table, name + part.suffix, Around(part, text));
}

/// The anchor alone, with bias, with a residual; each with activations.
void AddAnchor(std::vector<PatternTableEntry>& table, const std::string& name, const std::string& anchor, bool residual) {
  const std::string biased = Around(kBias, anchor);
  if (residual) {
    const std::string summed = Around(kSum, biased);
    Add(table, name + "_bias_sum_relu", Around(kSimple[0], summed));
    Add(table, name + "_bias_sum_clip", Around(kSimple[1], summed));
    Add(table, name + "_bias_sum", summed);
  }
  AddActivations(table, name + "_bias", biased);
  Add(table, name + "_bias_multiply", fmt::format("multiply({}, *)", biased));
  Add(table, name + "_bias", biased);
  if (residual) {
    const std::string summed = Around(kSum, anchor);
    Add(table, name + "_sum_relu", Around(kSimple[0], summed));
    Add(table, name + "_sum", summed);
  }
  AddActivations(table, name, anchor);
  Add(table, name, anchor);
}

}  // namespace

std::vector<PatternTableEntry> Patterns() {
  std::vector<PatternTableEntry> table;
  for (int rank : {2, 1, 3}) {
    AddAnchor(table, fmt::format("conv{}d", rank), fmt::format("nn.conv{}d(*, const)", rank), /*residual=*/true);
  }
  for (int rank : {2, 1, 3}) {
    AddAnchor(table, fmt::format("deconv{}d", rank), fmt::format("nn.conv{}d_transpose(*, const)", rank),
              /*residual=*/false);
  }
  // Sequences are flattened before a product and given their shape back behind it, before the bias.
  AddAnchor(table, "dense", "(nn.dense(*, const) | reshape(nn.dense(*, const)))", /*residual=*/true);
  const std::string product = "(nn.batch_matmul(*, *) | reshape(nn.batch_matmul(*, *)))";
  Add(table, "batch_matmul_scale", fmt::format("(multiply({0}, const) | divide({0}, const))", product));
  Add(table, "batch_matmul_add", fmt::format("add({}, *)", product));
  Add(table, "batch_matmul", "nn.batch_matmul(*, *)");
  Add(table, "matmul", "nn.matmul(*, *)");
  Add(table, "dense", "nn.dense(*, *)");
  for (int rank : {2, 1, 3}) {
    for (const char* kind : {"max_pool", "avg_pool", "global_max_pool", "global_avg_pool"}) {
      Add(table, fmt::format("{}{}d", kind, rank), fmt::format("nn.{}{}d(*)", kind, rank));
    }
  }
  Add(table, "softmax", "nn.softmax(*)");
  Add(table, "log_softmax", "nn.log_softmax(*)");
  Add(table, "layer_norm", "nn.layer_norm(*, *, *)");
  return table;
}

}  // namespace collage::dnnl_toolchain
