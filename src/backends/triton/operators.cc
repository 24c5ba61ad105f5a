// operators.cc: one row for each operator that needs no attributes, a function for each other one. Rounding and
// elementary functions that the language lacks come from libdevice, which is part of Triton.
#include "backends/triton/operators.h"

#include <fmt/args.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "collage/ir/op.h"

namespace collage::triton {
namespace {

// Kinds of the first argument that is no condition.
constexpr int kFloats = 1, kIntegers = 2, kBools = 4, kNumbers = kFloats | kIntegers, kAll = kNumbers | kBools;

struct Row {
  std::string_view name;
  int takes;
  const char* text;  ///< with {0}, {1} for arguments
};

constexpr Row kRows[] = {
    {"abs", kNumbers, "tl.abs({0})"},
    {"negative", kNumbers, "-({0})"},
    {"exp", kFloats, "tl.exp({0})"},
    {"log", kFloats, "libdevice.log({0})"},
    {"sqrt", kFloats, "tl.sqrt_rn({0})"},
    {"rsqrt", kFloats, "1.0 / tl.sqrt_rn({0})"},
    {"erf", kFloats, "tl.erf({0})"},
    {"sigmoid", kFloats, "tl.sigmoid({0})"},
    {"tanh", kFloats, "libdevice.tanh({0})"},
    {"sin", kFloats, "libdevice.sin({0})"},
    {"cos", kFloats, "libdevice.cos({0})"},
    {"floor", kFloats, "tl.floor({0})"},
    {"ceil", kFloats, "tl.ceil({0})"},
    {"round", kFloats, "libdevice.rint({0})"},
    {"trunc", kFloats, "libdevice.trunc({0})"},
    {"nn.relu", kNumbers, "tl.maximum({0}, 0)"},
    {"add", kNumbers, "{0} + {1}"},
    {"nn.bias_add", kNumbers, "{0} + {1}"},
    {"subtract", kNumbers, "{0} - {1}"},
    {"multiply", kNumbers, "{0} * {1}"},
    {"divide", kFloats, "{0} / {1}"},
    {"power", kFloats, "libdevice.pow({0}, {1})"},
    {"maximum", kNumbers, "tl.maximum({0}, {1})"},
    {"minimum", kNumbers, "tl.minimum({0}, {1})"},
    {"equal", kNumbers, "{0} == {1}"},
    {"not_equal", kNumbers, "{0} != {1}"},
    {"less", kNumbers, "{0} < {1}"},
    {"less_equal", kNumbers, "{0} <= {1}"},
    {"greater", kNumbers, "{0} > {1}"},
    {"greater_equal", kNumbers, "{0} >= {1}"},
    {"logical_and", kBools, "{0} & {1}"},
    {"logical_or", kBools, "{0} | {1}"},
    {"logical_xor", kBools, "{0} ^ {1}"},
    {"logical_not", kBools, "{0} == 0"},
    {"where", kAll, "tl.where({0}, {1}, {2})"},
};

constexpr std::string_view kWithAttributes[] = {"clip", "cast", "nn.leaky_relu"};

DataType TypeOf(const Expr& expr) { return AsTensorType(expr->checked_type())->dtype(); }

int FlagOf(ValueKind kind) {
  switch (kind) {
    case ValueKind::kFloat: return kFloats;
    case ValueKind::kInteger: return kIntegers;
    case ValueKind::kBool: break;
  }
  return kBools;
}

std::string Clip(const CallNode& call, ValueKind kind, const std::string& x) {
  const std::string low = Literal(call.attrs().Double("a_min"), kind),
                    high = Literal(call.attrs().Double("a_max"), kind);
  return fmt::format("tl.minimum(tl.maximum({}, {}), {})", x, low, high);
}

/// Whole powers that models have as products.
std::optional<std::string> SmallPower(const std::vector<std::string>& args) {
  if (args[1] == Literal(2, ValueKind::kFloat)) return fmt::format("{0} * {0}", args[0]);
  if (args[1] == Literal(3, ValueKind::kFloat)) return fmt::format("{0} * {0} * {0}", args[0]);
  return std::nullopt;
}

}  // namespace

std::string_view TypeName(DataType dtype) {
  if (dtype == kFloat32) return "fp32";
  if (dtype == kFloat16) return "fp16";
  if (dtype == kBFloat16) return "bf16";
  if (dtype == kInt8 || dtype == kBool) return "i8";
  if (dtype == kInt32) return "i32";
  if (dtype == kInt64) return "i64";
  return "";
}

std::optional<ValueKind> KindOf(DataType dtype) {
  if (TypeName(dtype).empty()) return std::nullopt;
  if (dtype.is_floating()) return ValueKind::kFloat;
  return dtype.is_bool() ? ValueKind::kBool : ValueKind::kInteger;
}

std::string Literal(double value, ValueKind kind) {
  if (kind == ValueKind::kBool) return value != 0 ? "True" : "False";
  if (kind == ValueKind::kInteger) return fmt::format("{}", static_cast<int64_t>(value));
  if (std::isnan(value)) return "float(\"nan\")";
  if (std::isinf(value)) return value > 0 ? "float(\"inf\")" : "float(\"-inf\")";
  const std::string text = fmt::format("{}", value);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string Converted(const std::string& text, DataType from, DataType to) {
  const ValueKind old_kind = *KindOf(from), kind = *KindOf(to);
  if (kind == ValueKind::kFloat) return old_kind == kind ? text : fmt::format("({}).to(tl.float32)", text);
  if (kind == ValueKind::kBool) return old_kind == kind ? text : fmt::format("({}) != 0", text);
  return from == to ? text : fmt::format("({}).to(tl.{})", text, to.ToString());
}

std::vector<std::string_view> ElementOperators() {
  std::vector<std::string_view> names(std::begin(kWithAttributes), std::end(kWithAttributes));
  for (const Row& row : kRows) names.push_back(row.name);
  return names;
}

std::optional<std::string> ComputeElement(const CallNode& call, const std::vector<std::string>& args) {
  const std::string& name = call.op()->name;
  const DataType from = TypeOf(call.args()[name == "where" ? 1 : 0]), to = AsTensorType(call.checked_type())->dtype();
  const std::optional<ValueKind> kind = KindOf(from);
  if (!kind || !KindOf(to)) return std::nullopt;
  if (name == "cast") return Converted(args[0], from, to);
  if (name == "clip" && *kind != ValueKind::kBool) return Clip(call, *kind, args[0]);
  if (name == "nn.leaky_relu" && *kind == ValueKind::kFloat) {
    return fmt::format("tl.where({0} > 0.0, {0}, {0} * {1})", args[0], Literal(call.attrs().Double("alpha"), *kind));
  }
  const auto* const row = std::ranges::find(kRows, std::string_view(name), &Row::name);
  if (row == std::end(kRows) || (row->takes & FlagOf(*kind)) == 0) return std::nullopt;
  const std::optional<std::string> power = name == "power" ? SmallPower(args) : std::nullopt;
  if (power) return power;
  fmt::dynamic_format_arg_store<fmt::format_context> store;
  for (const std::string& arg : args) store.push_back(arg);
  return fmt::vformat(row->text, store);
}

}  // namespace collage::triton
