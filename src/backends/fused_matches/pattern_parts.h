// pattern_parts.h: pieces that patterns of an operation and what follows it are put together from.
#pragma once

#include <string>
#include <string_view>

namespace collage::matches {

/// A suffix of a pattern's name and the text around `{0}`, the pattern so far.
struct Part {
  const char* suffix;
  const char* text;
};

inline constexpr Part kBias{"_bias", "(add({0}, const) | nn.bias_add({0}, const))"};

inline constexpr Part kRelu{"_relu", "nn.relu({0})"};
inline constexpr Part kClip{"_clip", "clip({0})"};
inline constexpr Part kSigmoid{"_sigmoid", "sigmoid({0})"};
inline constexpr Part kTanh{"_tanh", "tanh({0})"};
inline constexpr Part kLeakyRelu{"_leaky_relu", "nn.leaky_relu({0})"};

// Functions that are written out, as exporters associate them. Numbers in them are checked by MatchActivation.
inline constexpr Part kElu{
    "_elu",
    "add(nn.relu({0}), (add(exp(minimum({0}, const)), const) | subtract(exp(minimum({0}, const)), const) | "
    "multiply((add(exp(minimum({0}, const)), const) | subtract(exp(minimum({0}, const)), const)), const)))"};
inline constexpr Part kSwish{"_swish", "multiply({0}, sigmoid({0}))"};
inline constexpr Part kGelu[] = {
    {"_gelu",
     "multiply(multiply({0}, add(cast?(erf(cast?((divide({0}, const) | multiply({0}, const))))), const)), const)"},
    {"_gelu",
     "multiply(multiply({0}, const), add(cast?(erf(cast?((divide({0}, const) | multiply({0}, const))))), const))"},
    {"_gelu",
     "multiply({0}, multiply(add(cast?(erf(cast?((divide({0}, const) | multiply({0}, const))))), const), const))"},
};
inline constexpr Part kGeluTanh{
    "_gelu_tanh",
    "multiply((multiply({0}, const) | {0}), (add(tanh(multiply(add({0}, multiply((power({0}, const) | "
    "multiply({0}, multiply({0}, {0}))), const)), const)), const) | multiply(add(tanh(multiply(add({0}, "
    "multiply((power({0}, const) | multiply({0}, multiply({0}, {0}))), const)), const)), const), const)))"};
inline constexpr Part kHardSwish[] = {
    {"_hardswish", "multiply({0}, (divide(clip(add({0}, const)), const) | multiply(clip(add({0}, const)), const)))"},
    {"_hardswish",
     "(divide(multiply({0}, clip(add({0}, const))), const) | multiply(multiply({0}, clip(add({0}, const))), const))"},
    {"_hardswish", "multiply({0}, clip(add((divide({0}, const) | multiply({0}, const)), const)))"},
};

/// `part` around `inner`.
std::string Around(const Part& part, std::string_view inner);

}  // namespace collage::matches
