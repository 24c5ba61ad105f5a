// pattern_parts.h: pieces that patterns are put together from.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "backends/dnnl/describe.h"
#include "collage/target/toolchain.h"

namespace collage::dnnl_toolchain {

/// A suffix of a pattern's name and the text around `{0}`, the pattern so far.
struct Part {
  const char* suffix;
  const char* text;
};

/// Bias behind an anchor with constant weights.
inline constexpr Part kBias{"_bias", "(add({0}, const) | nn.bias_add({0}, const))"};
inline constexpr Part kSum{"_sum", "add({0}, *)"};

/// Activations of one operator each.
inline constexpr Part kSimple[] = {
    {"_relu", "nn.relu({0})"},
    {"_clip", "clip({0})"},
    {"_sigmoid", "sigmoid({0})"},
    {"_tanh", "tanh({0})"},
    {"_leaky_relu", "nn.leaky_relu({0})"},
};

/// Written-out activations as exporters associate them; describe.cc checks the constants.
inline constexpr Part kWritten[] = {
    {"_swish", "multiply({0}, sigmoid({0}))"},
    {"_gelu", "multiply(multiply({0}, add(erf((divide({0}, const) | multiply({0}, const))), const)), const)"},
    {"_gelu", "multiply(multiply({0}, const), add(erf((divide({0}, const) | multiply({0}, const))), const))"},
    {"_gelu", "multiply({0}, multiply(add(erf((divide({0}, const) | multiply({0}, const))), const), const))"},
    {"_gelu_tanh",
     "multiply((multiply({0}, const) | {0}), (add(tanh(multiply(add({0}, multiply((power({0}, const) | "
     "multiply({0}, multiply({0}, {0}))), const)), const)), const) | multiply(add(tanh(multiply(add({0}, "
     "multiply((power({0}, const) | multiply({0}, multiply({0}, {0}))), const)), const)), const), const)))"},
    {"_hardswish", "multiply({0}, (divide(clip(add({0}, const)), const) | multiply(clip(add({0}, const)), const)))"},
    {"_hardswish",
     "(divide(multiply({0}, clip(add({0}, const))), const) | multiply(multiply({0}, clip(add({0}, const))), const))"},
    {"_hardswish", "multiply({0}, clip(add((divide({0}, const) | multiply({0}, const)), const)))"},
    {"_mish", "multiply({0}, tanh(log(add(exp({0}), const))))"},
    {"_mish", "multiply({0}, tanh(add(nn.relu({0}), log(add(exp(negative(abs({0}))), const)))))"},
    {"_softplus", "add(nn.relu({0}), log(add(exp(negative(abs({0}))), const)))"},
    {"_elu",
     "add(nn.relu({0}), (add(exp(minimum({0}, const)), const) | subtract(exp(minimum({0}, const)), const) | "
     "multiply((add(exp(minimum({0}, const)), const) | subtract(exp(minimum({0}, const)), const)), const)))"},
    {"_hard_sigmoid", "clip(add((divide({0}, const) | multiply({0}, const)), const))"},
};

/// With a slope per channel: the operator, and what it is imported as.
inline constexpr Part kPrelu[] = {
    {"_prelu", "nn.prelu({0}, *)"},
    {"_prelu", "add(nn.relu({0}), multiply(minimum({0}, const), *))"},
};

/// Other functions that a primitive may end in.
inline constexpr const char* kFunctions =
    "(abs({0}) | exp({0}) | log({0}) | sqrt({0}) | round({0}) | negative({0}) | power({0}, const) | multiply({0}, "
    "{0}))";

/// `part` around `inner`, and the same for a plain text.
std::string Around(std::string_view text, const std::string& inner);
inline std::string Around(const Part& part, const std::string& inner) { return Around(part.text, inner); }

/// Any of kSimple around `inner`; any of kWritten and kPrelu, too.
std::string AnySimple(const std::string& inner);
std::string AnyActivation(const std::string& inner);

void Add(std::vector<PatternTableEntry>& table, const std::string& name, std::string text);
/// As Add, for patterns that another row has with constants instead of a tensor: refuses what has no tensor.
void AddCombining(std::vector<PatternTableEntry>& table, const std::string& name, std::string text);

/// As Add, for an operator that a neighbour computes on the way where it can: a candidate, but not taken without costs.
void AddAside(std::vector<PatternTableEntry>& table, const std::string& name, std::string text);

/// Rows of 8-bit integers.
void AddQuantisedRows(std::vector<PatternTableEntry>& table);
/// Their conversions from and to floats: rows that others contain.
void AddConversions(std::vector<PatternTableEntry>& table);

}  // namespace collage::dnnl_toolchain
