// tile.cc: arithmetic is that of float32, and of integers with as many bits as their types have.
#include "tile.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>

#include "support/numbers.h"

namespace standin::ttir {
namespace {

using FloatFunction = float (*)(float);
using FloatPair = float (*)(float, float);
using IntegerPair = int64_t (*)(int64_t, int64_t);

FloatFunction FindFunction(const std::string& name) {
  static const std::map<std::string, FloatFunction> known{{"math.exp", [](float x) { return std::exp(x); }},
                                                          {"math.exp2", [](float x) { return std::exp2(x); }},
                                                          {"math.log", [](float x) { return std::log(x); }},
                                                          {"math.log2", [](float x) { return std::log2(x); }},
                                                          {"math.sqrt", [](float x) { return std::sqrt(x); }},
                                                          {"tt.precise_sqrt", [](float x) { return std::sqrt(x); }},
                                                          {"math.rsqrt", [](float x) { return 1 / std::sqrt(x); }},
                                                          {"math.erf", [](float x) { return std::erf(x); }},
                                                          {"math.floor", [](float x) { return std::floor(x); }},
                                                          {"math.ceil", [](float x) { return std::ceil(x); }},
                                                          {"math.absf", [](float x) { return std::abs(x); }},
                                                          {"math.sin", [](float x) { return std::sin(x); }},
                                                          {"math.cos", [](float x) { return std::cos(x); }},
                                                          {"arith.negf", [](float x) { return -x; }},
                                                          {"__nv_tanhf", [](float x) { return std::tanh(x); }},
                                                          {"__nv_logf", [](float x) { return std::log(x); }},
                                                          {"__nv_sinf", [](float x) { return std::sin(x); }},
                                                          {"__nv_cosf", [](float x) { return std::cos(x); }},
                                                          {"__nv_rintf", [](float x) { return std::nearbyint(x); }},
                                                          {"__nv_truncf", [](float x) { return std::trunc(x); }}};
  const auto found = known.find(name);
  return found == known.end() ? nullptr : found->second;
}

FloatPair FindFloatPair(const std::string& name) {
  static const std::map<std::string, FloatPair> known{
      {"arith.addf", [](float a, float b) { return a + b; }},
      {"arith.subf", [](float a, float b) { return a - b; }},
      {"arith.mulf", [](float a, float b) { return a * b; }},
      {"arith.divf", [](float a, float b) { return a / b; }},
      {"tt.precise_divf", [](float a, float b) { return a / b; }},
      {"arith.maxnumf", [](float a, float b) { return std::fmax(a, b); }},
      {"arith.minnumf", [](float a, float b) { return std::fmin(a, b); }},
      {"__nv_powf", [](float a, float b) { return std::pow(a, b); }}};
  const auto found = known.find(name);
  return found == known.end() ? nullptr : found->second;
}

int64_t Divisor(int64_t value) {
  if (value == 0) throw Failure("divides by zero");
  return value;
}

IntegerPair FindIntegerPair(const std::string& name) {
  static const std::map<std::string, IntegerPair> known{
      {"arith.addi", [](int64_t a, int64_t b) { return a + b; }},
      {"arith.subi", [](int64_t a, int64_t b) { return a - b; }},
      {"arith.muli", [](int64_t a, int64_t b) { return a * b; }},
      {"arith.divsi", [](int64_t a, int64_t b) { return a / Divisor(b); }},
      {"arith.remsi", [](int64_t a, int64_t b) { return a % Divisor(b); }},
      {"arith.minsi", [](int64_t a, int64_t b) { return std::min(a, b); }},
      {"arith.maxsi", [](int64_t a, int64_t b) { return std::max(a, b); }},
      {"arith.andi", [](int64_t a, int64_t b) { return a & b; }},
      {"arith.ori", [](int64_t a, int64_t b) { return a | b; }},
      {"arith.xori", [](int64_t a, int64_t b) { return a ^ b; }}};
  const auto found = known.find(name);
  return found == known.end() ? nullptr : found->second;
}

/// "slt" of integers, "olt" and "ult" of floats: the last letters say what holds, the first one what NaN does.
template <typename T>
bool Holds(const std::string& predicate, T a, T b) {
  if constexpr (std::is_same_v<T, float>) {
    if (std::isnan(a) || std::isnan(b)) return predicate[0] == 'u';
  }
  const std::string name = predicate == "eq" || predicate == "ne" ? predicate : predicate.substr(1);
  if (name == "eq") return a == b;
  if (name == "ne") return a != b;
  if (name == "lt") return a < b;
  if (name == "le") return a <= b;
  if (name == "gt") return a > b;
  if (name == "ge") return a >= b;
  throw Failure("there is no comparison '" + predicate + "'");
}

void CheckSizes(const std::vector<TilePtr>& operands) {
  for (const TilePtr& operand : operands) {
    if (operand->size() != operands[0]->size()) throw Failure("operands differ in size");
  }
}

Tile Compare(const Operation& operation, const std::vector<TilePtr>& operands) {
  const Tile &a = *operands[0], &b = *operands[1];
  Tile made = MakeTile({Element::kInt1, {}, a.type.shape});
  std::string predicate = operation.text.substr(operation.text.find_first_not_of(' '));
  predicate.resize(predicate.find(','));
  for (size_t i = 0; i < made.size(); ++i) {
    made.integers[i] = IsFloat(a.type.element) ? Holds(predicate, a.floats[i], b.floats[i])
                                               : Holds(predicate, a.integers[i], b.integers[i]);
  }
  return made;
}

Tile Select(const std::vector<TilePtr>& operands) {
  const Tile &condition = *operands[0], &first = *operands[1], &second = *operands[2];
  Tile made = first;
  for (size_t i = 0; i < made.size(); ++i) {
    const bool is_first = condition.integers[condition.size() == 1 ? 0 : i] != 0;
    if (is_first) continue;
    if (IsFloat(made.type.element))
      made.floats[i] = second.floats[i];
    else
      made.integers[i] = second.integers[i];
  }
  return made;
}

/// arith.extf, truncf, sitofp, uitofp, fptosi, extsi, extui, trunci.
Tile Convert(const Operation& operation, const Tile& from) {
  Tile made = MakeTile({operation.type.element, {}, from.type.shape});
  const bool is_from_float = IsFloat(from.type.element), is_to_float = IsFloat(made.type.element);
  // The only number of one bit is 1 where it has no sign.
  const bool is_signed = operation.name == "arith.sitofp" || operation.name == "arith.extsi";
  for (size_t i = 0; i < made.size(); ++i) {
    int64_t whole = is_from_float ? 0 : from.integers[i];
    if (from.type.element == Element::kInt1 && is_signed) whole = -whole;
    const float value = is_from_float ? from.floats[i] : static_cast<float>(whole);
    if (is_to_float) {
      made.floats[i] = Rounded(value, made.type.element);
    } else {
      made.integers[i] = Wrapped(is_from_float ? static_cast<int64_t>(value) : whole, made.type.element);
    }
  }
  return made;
}

Tile ComputeFloats(const Operation& operation, const std::string& name, const std::vector<TilePtr>& operands) {
  const FloatFunction one = operands.size() == 1 ? FindFunction(name) : nullptr;
  const FloatPair two = operands.size() == 2 ? FindFloatPair(name) : nullptr;
  if (one == nullptr && two == nullptr) throw Failure("there is no operation '" + name + "' here");
  Tile made = MakeTile({operation.type.element, {}, operands[0]->type.shape});
  for (size_t i = 0; i < made.size(); ++i) {
    const float a = operands[0]->floats[i];
    made.floats[i] = Rounded(one != nullptr ? one(a) : two(a, operands[1]->floats[i]), made.type.element);
  }
  return made;
}

}  // namespace

int64_t NumElements(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

Tile MakeTile(Type type) {
  Tile tile;
  const auto count = static_cast<size_t>(NumElements(type.shape));
  if (IsFloat(type.element))
    tile.floats.resize(count);
  else
    tile.integers.resize(count);
  tile.type = std::move(type);
  return tile;
}

float Rounded(float value, Element element) {
  if (element == Element::kFloat16) return collage::HalfToFloat(collage::FloatToHalf(value));
  if (element == Element::kBFloat16) return collage::BFloat16ToFloat(collage::FloatToBFloat16(value));
  return value;
}

int64_t Wrapped(int64_t value, Element element) {
  switch (element) {
    case Element::kInt1: return value & 1;
    case Element::kInt8: return static_cast<int8_t>(value);
    case Element::kInt32: return static_cast<int32_t>(value);
    default: return value;
  }
}

Tile ConstantOf(const std::string& text, const Type& type) {
  std::string number = WordBehind(text, "dense<");
  if (number.empty()) number = text.substr(text.find_first_not_of(' '));
  Tile tile = MakeTile(type);
  if (!IsFloat(type.element)) {
    const int64_t value = number.starts_with("true") ? 1 : number.starts_with("false") ? 0 : std::atoll(number.c_str());
    std::ranges::fill(tile.integers, value);
    return tile;
  }
  float value = std::strtof(number.c_str(), nullptr);
  if (number.starts_with("0x")) {
    const auto bits = static_cast<uint32_t>(std::strtoul(number.c_str(), nullptr, 16));
    value = type.element == Element::kFloat32   ? std::bit_cast<float>(bits)
            : type.element == Element::kFloat16 ? collage::HalfToFloat(static_cast<uint16_t>(bits))
                                                : collage::BFloat16ToFloat(static_cast<uint16_t>(bits));
  }
  std::ranges::fill(tile.floats, value);
  return tile;
}

Tile Compute(const Operation& operation, const std::vector<TilePtr>& operands) {
  const std::string& name = operation.name;
  if (operands.empty()) throw Failure("there is no operation '" + name + "' here");
  if (name == "arith.select") return Select(operands);
  CheckSizes(operands);
  if (name == "arith.cmpi" || name == "arith.cmpf") return Compare(operation, operands);
  const Tile& first = *operands[0];
  if (name.starts_with("arith.ext") || name.starts_with("arith.trunc") || name.ends_with("tofp") ||
      name == "arith.fptosi") {
    return Convert(operation, first);
  }
  if (name == "tt.extern_elementwise")
    return ComputeFloats(operation, WordBehind(operation.text, "symbol = \""), operands);
  if (IsFloat(first.type.element)) return ComputeFloats(operation, name, operands);
  Tile made = MakeTile(first.type);
  const IntegerPair two = operands.size() == 2 ? FindIntegerPair(name) : nullptr;
  if (two == nullptr && name != "math.absi") throw Failure("there is no operation '" + name + "' here");
  for (size_t i = 0; i < made.size(); ++i) {
    const int64_t a = first.integers[i];
    made.integers[i] = Wrapped(two != nullptr ? two(a, operands[1]->integers[i]) : std::abs(a), made.type.element);
  }
  return made;
}

}  // namespace standin::ttir
