// expressions.cc: one branch per operator that is computed in place.
#include "backends/native/compiler/expressions.h"

#include <algorithm>
#include <cmath>

#include "collage/support/error.h"

namespace collage::native {
namespace {

/// Plain unary operators by their MLIR operation.
const std::map<std::string, const char*>& UnaryOps() {
  static const std::map<std::string, const char*> ops{
      {"sqrt", "math.sqrt"}, {"abs", "math.absf"}, {"negative", "arith.negf"}, {"floor", "math.floor"},
      {"ceil", "math.ceil"}, {"round", "math.roundeven"}, {"trunc", "math.trunc"}, {"log", "math.log"},
      {"sin", "math.sin"}, {"cos", "math.cos"}, {"tan", "math.tan"}, {"asin", "math.asin"}, {"acos", "math.acos"},
      {"atan", "math.atan"}, {"sinh", "math.sinh"}, {"cosh", "math.cosh"}, {"rsqrt", "math.rsqrt"}};
  return ops;
}

struct BinaryOp {
  const char* on_float;
  const char* on_int;  ///< null: not on integers
};

const std::map<std::string, BinaryOp>& BinaryOps() {
  static const std::map<std::string, BinaryOp> ops{
      {"add", {"arith.addf", "arith.addi"}},        {"subtract", {"arith.subf", "arith.subi"}},
      {"multiply", {"arith.mulf", "arith.muli"}},   {"divide", {"arith.divf", nullptr}},
      {"maximum", {"arith.maximumf", "arith.maxsi"}}, {"minimum", {"arith.minimumf", "arith.minsi"}}};
  return ops;
}

struct Comparison {
  const char* on_float;
  const char* on_int;
};

const std::map<std::string, Comparison>& Comparisons() {
  static const std::map<std::string, Comparison> ops{
      {"equal", {"oeq", "eq"}},   {"not_equal", {"une", "ne"}},         {"less", {"olt", "slt"}},
      {"less_equal", {"ole", "sle"}}, {"greater", {"ogt", "sgt"}}, {"greater_equal", {"oge", "sge"}}};
  return ops;
}

bool IsReshapeInPlace(const OpDef& op) { return op.is_reshape; }

const TensorTypeNode& TypeOf(const Expr& expr) { return *AsTensorType(expr->checked_type()); }

int64_t NormalAxis(const CallNode& call, const char* name, int rank) {
  const int64_t axis = call.attrs().Int(name);
  return axis < 0 ? axis + rank : axis;
}

/// For a reshape: the output dimension that each input dimension is, or -1 where it must be computed; possible only when
/// dimensions of size 1 come or go and all others keep their order.
std::optional<std::vector<int>> MatchDimensions(const Shape& from, const Shape& to) {
  std::vector<int> map(from.size(), -1);
  size_t j = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] == 1) continue;
    while (j < to.size() && to[j] == 1) ++j;
    if (j >= to.size() || to[j] != from[i]) return std::nullopt;
    map[i] = static_cast<int>(j++);
  }
  while (j < to.size() && to[j] == 1) ++j;
  if (j != to.size()) return std::nullopt;
  return map;
}

}  // namespace

bool IsInPlace(const OpDef& op) {
  static const std::set<std::string> others{"nn.relu", "sigmoid", "tanh", "exp", "erf", "clip", "nn.leaky_relu", "cast", "copy",
                                            "power", "where", "logical_and", "logical_or", "logical_not", "nn.bias_add",
                                            "transpose", "broadcast_to", "strided_slice", "sign"};
  return others.contains(op.name) || UnaryOps().contains(op.name) || BinaryOps().contains(op.name) ||
         Comparisons().contains(op.name) || IsReshapeInPlace(op);
}

Value Expressions::Constant(const Tensor& value) {
  if (value.dtype().is_floating()) return {e_.Splat(value.At(0)), ElementKind::kFloat};
  const auto number = value.ToInts()[0];
  if (value.dtype().is_bool()) {
    return {e_.Def(fmt::format("arith.constant dense<{}> : {}", number != 0, e_.TypeOf(ElementKind::kBool))), ElementKind::kBool};
  }
  return {e_.Def(fmt::format("arith.constant dense<{}> : {}", number, e_.TypeOf(ElementKind::kInt))), ElementKind::kInt};
}

Value Expressions::At(const Expr& expr, const Indices& indices) {
  if (auto it = registers_.find(expr.get()); it != registers_.end()) return it->second;
  if (const ConstantNode* constant = As<ConstantNode>(expr); constant != nullptr && constant->value().num_elements() == 1) {
    return Constant(constant->value());
  }
  if (const Buffer* buffer = FindBuffer(expr)) return e_.Load(*buffer, indices);
  const CallNode* call = As<CallNode>(expr);
  if (call == nullptr || call->op() == nullptr) throw Error(ErrorCategory::kUnsupported, "an expression without a place");
  return Call(*call, indices);
}

/// Where an operand of a broadcasting operator is read: its last dimensions, index 0 where it has size 1.
Indices Expressions::OperandIndices(const Expr& operand, const Indices& indices) const {
  const Shape shape = TypeOf(operand).static_shape();
  Indices result(indices.end() - static_cast<int64_t>(shape.size()), indices.end());
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) result[i] = {e_.Int(0), 0};
  }
  return result;
}

// e^x: x = n ln 2 + r, a polynomial for e^r, n into the exponent. Relative error below 2e-7.
std::string Expressions::Exp(const std::string& x) {
  const std::string vector = e_.FloatVector();
  const std::string ints = fmt::format("vector<{}xi32>", e_.lanes());
  const auto fma = [&](const std::string& a, const std::string& b, const std::string& c) {
    return e_.Def(fmt::format("math.fma {}, {}, {} : {}", a, b, c, vector));
  };
  const std::string clamped = Binary("arith.minimumf", Binary("arith.maximumf", x, e_.Splat(-87.3)), e_.Splat(88.3));
  const std::string n = Unary("math.roundeven", Binary("arith.mulf", clamped, e_.Splat(1.4426950408889634)));
  std::string r = fma(n, e_.Splat(-0.693359375), clamped);
  r = fma(n, e_.Splat(2.12194440e-4), r);
  // Taylor coefficients of e^r up to r^7 suffice on |r| <= ln 2 / 2.
  std::string p = e_.Splat(1.0 / 5040);
  for (double divisor : {720.0, 120.0, 24.0, 6.0, 2.0, 1.0, 1.0}) p = fma(p, r, e_.Splat(1.0 / divisor));
  const std::string n_int = e_.Def(fmt::format("arith.fptosi {} : {} to {}", n, vector, ints));
  const std::string bias = e_.Def(fmt::format("arith.constant dense<127> : {}", ints));
  const std::string shift = e_.Def(fmt::format("arith.constant dense<23> : {}", ints));
  const std::string biased = e_.Def(fmt::format("arith.addi {}, {} : {}", n_int, bias, ints));
  const std::string bits = e_.Def(fmt::format("arith.shli {}, {} : {}", biased, shift, ints));
  return Binary("arith.mulf", p, e_.Def(fmt::format("arith.bitcast {} : {} to {}", bits, ints, vector)));
}

// Abramowitz and Stegun, formula 7.1.26; absolute error below 1.5e-7.
std::string Expressions::Erf(const std::string& x) {
  const std::string magnitude = Unary("math.absf", x);
  const std::string one = e_.Splat(1);
  const std::string t = Binary("arith.divf", one, Binary("arith.addf", one, Binary("arith.mulf", magnitude, e_.Splat(0.3275911))));
  std::string p = e_.Splat(1.061405429);
  for (double coefficient : {-1.453152027, 1.421413741, -0.284496736, 0.254829592}) {
    p = e_.Def(fmt::format("math.fma {}, {}, {} : {}", p, t, e_.Splat(coefficient), e_.FloatVector()));
  }
  const std::string tail = Exp(Unary("arith.negf", Binary("arith.mulf", x, x)));
  const std::string result = Binary("arith.subf", one, Binary("arith.mulf", Binary("arith.mulf", p, t), tail));
  return Binary("math.copysign", result, x);
}

// (1 - e) / (1 + e) with e = exp(-2 |x|), the sign put back.
std::string Expressions::Tanh(const std::string& x) {
  const std::string e = Exp(Binary("arith.mulf", Unary("math.absf", x), e_.Splat(-2)));
  const std::string one = e_.Splat(1);
  const std::string result = Binary("arith.divf", Binary("arith.subf", one, e), Binary("arith.addf", one, e));
  return Binary("math.copysign", result, x);
}

std::string Expressions::Sigmoid(const std::string& x) {
  const std::string one = e_.Splat(1);
  return Binary("arith.divf", one, Binary("arith.addf", one, Exp(Unary("arith.negf", x))));
}

Value Expressions::Cast(const Value& value, DataType to) {
  const std::string from_type = e_.TypeOf(value.kind);
  const auto convert = [&](const char* op, ElementKind kind) -> Value {
    return {e_.Def(fmt::format("{} {} : {} to {}", op, value.name, from_type, e_.TypeOf(kind))), kind};
  };
  if (to.is_floating()) {
    if (value.kind == ElementKind::kFloat) return value;
    return convert(value.kind == ElementKind::kInt ? "arith.sitofp" : "arith.uitofp", ElementKind::kFloat);
  }
  if (to.is_bool()) {
    if (value.kind == ElementKind::kBool) return value;
    const bool is_float = value.kind == ElementKind::kFloat;
    const std::string zero = e_.Def(fmt::format("arith.constant dense<{}> : {}", is_float ? "0.0" : "0", from_type));
    return {e_.Def(fmt::format("{}, {}, {} : {}", is_float ? "arith.cmpf une" : "arith.cmpi ne", value.name, zero, from_type)),
            ElementKind::kBool};
  }
  if (value.kind == ElementKind::kFloat) return convert("arith.fptosi", ElementKind::kInt);
  if (value.kind == ElementKind::kBool) return convert("arith.extui", ElementKind::kInt);
  return value;
}

Value Expressions::Power(const CallNode& call, const Value& base, const Indices& indices) {
  const ConstantNode* exponent = As<ConstantNode>(call.args()[1]);
  if (exponent != nullptr && exponent->value().num_elements() == 1) {
    const double p = exponent->value().At(0);
    if (p == 1) return base;
    if (p == 2) return {Binary("arith.mulf", base.name, base.name)};
    if (p == 3) return {Binary("arith.mulf", Binary("arith.mulf", base.name, base.name), base.name)};
    if (p == 0.5) return {Unary("math.sqrt", base.name)};
    if (p == -0.5) return {Unary("math.rsqrt", base.name)};
    if (p == -1) return {Binary("arith.divf", e_.Splat(1), base.name)};
  }
  return {Binary("math.powf", base.name, At(call.args()[1], OperandIndices(call.args()[1], indices)).name)};
}

Value Expressions::Arithmetic(const std::string& name, const Value& a, const Value& b, const CallNode&) {
  const std::string type = e_.TypeOf(a.kind);
  if (auto it = Comparisons().find(name); it != Comparisons().end()) {
    const bool is_float = a.kind == ElementKind::kFloat;
    return {e_.Def(fmt::format("arith.{} {}, {}, {} : {}", is_float ? "cmpf" : "cmpi", is_float ? it->second.on_float : it->second.on_int,
                               a.name, b.name, type)), ElementKind::kBool};
  }
  if (name == "logical_and" || name == "logical_or") {
    return {e_.Def(fmt::format("arith.{} {}, {} : {}", name == "logical_and" ? "andi" : "ori", a.name, b.name, type)), a.kind};
  }
  const BinaryOp& op = BinaryOps().at(name);
  const char* operation = a.kind == ElementKind::kFloat ? op.on_float : op.on_int;
  if (operation == nullptr || a.kind == ElementKind::kBool) throw Error(ErrorCategory::kUnsupported, "'" + name + "' on this dtype");
  return {e_.Def(fmt::format("{} {}, {} : {}", operation, a.name, b.name, type)), a.kind};
}

Value Expressions::Call(const CallNode& call, const Indices& indices) {
  const std::string& name = call.op()->name;
  const auto operand = [&](size_t i) { return At(call.args()[i], OperandIndices(call.args()[i], indices)); };
  if (BinaryOps().contains(name) || Comparisons().contains(name) || name == "logical_and" || name == "logical_or") {
    const Value a = operand(0);
    return Arithmetic(name, a, operand(1), call);
  }
  if (auto it = UnaryOps().find(name); it != UnaryOps().end()) return {Unary(it->second, operand(0).name)};
  if (name == "nn.relu") return {Binary("arith.maximumf", operand(0).name, e_.Splat(0))};
  if (name == "exp") return {Exp(operand(0).name)};
  if (name == "erf") return {Erf(operand(0).name)};
  if (name == "tanh") return {Tanh(operand(0).name)};
  if (name == "sigmoid") return {Sigmoid(operand(0).name)};
  if (name == "copy") return operand(0);
  if (name == "power") return Power(call, operand(0), indices);
  if (name == "cast") return Cast(operand(0), call.attrs().Type("dtype"));
  if (name == "sign") {
    const std::string x = operand(0).name;
    return {Binary("arith.maximumf", Binary("arith.minimumf", Binary("arith.mulf", x, e_.Splat(1e38)), e_.Splat(1)), e_.Splat(-1))};
  }
  if (name == "clip") {
    const Value x = operand(0);
    if (x.kind != ElementKind::kFloat) throw Error(ErrorCategory::kUnsupported, "'clip' on integers");
    return {Binary("arith.minimumf", Binary("arith.maximumf", x.name, e_.Splat(call.attrs().Double("a_min"))),
                   e_.Splat(call.attrs().Double("a_max")))};
  }
  if (name == "nn.leaky_relu") {
    const std::string x = operand(0).name;
    const std::string zero = e_.Splat(0);
    const std::string below = Binary("arith.mulf", Binary("arith.minimumf", x, zero), e_.Splat(call.attrs().Double("alpha")));
    return {Binary("arith.addf", Binary("arith.maximumf", x, zero), below)};
  }
  if (name == "logical_not") {
    const Value x = operand(0);
    const std::string type = e_.TypeOf(x.kind);
    return {e_.Def(fmt::format("arith.xori {}, {} : {}", x.name, e_.Def(fmt::format("arith.constant dense<true> : {}", type)), type)), x.kind};
  }
  if (name == "where") {
    const Value condition = operand(0);
    const Value x = operand(1);
    const Value y = operand(2);
    return {e_.Def(fmt::format("arith.select {}, {}, {} : {}, {}", condition.name, x.name, y.name,
                               e_.TypeOf(ElementKind::kBool), e_.TypeOf(x.kind))), x.kind};
  }
  if (name == "nn.bias_add") {
    const auto axis = static_cast<size_t>(NormalAxis(call, "axis", TypeOf(call.args()[0]).rank()));
    const Value x = At(call.args()[0], indices);
    return {Binary("arith.addf", x.name, At(call.args()[1], {indices[axis]}).name)};
  }
  if (name == "broadcast_to") return operand(0);
  if (name == "transpose") {
    const int rank = TypeOf(call.args()[0]).rank();
    Indices source(static_cast<size_t>(rank));
    for (int i = 0; i < rank; ++i) {
      const int64_t axis = call.attrs().IsNone("axes") ? rank - 1 - i : call.attrs().Ints("axes")[static_cast<size_t>(i)];
      source[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = indices[static_cast<size_t>(i)];
    }
    return At(call.args()[0], source);
  }
  if (name == "strided_slice") {
    const Shape shape = TypeOf(call.args()[0]).static_shape();
    Indices source = indices;
    const std::vector<int64_t> begin = call.attrs().Ints("begin");
    for (size_t i = 0; i < begin.size(); ++i) {
      const int64_t axis = call.attrs().IsNone("axes") ? static_cast<int64_t>(i) : call.attrs().Ints("axes")[i];
      const auto a = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis);
      const int64_t step = call.attrs().IsNone("strides") || call.attrs().Ints("strides").size() <= i ? 1 : call.attrs().Ints("strides")[i];
      const int64_t length = shape[a];
      int64_t first = begin[i] < 0 ? begin[i] + length : begin[i];
      first = step > 0 ? std::clamp<int64_t>(first, 0, length) : std::clamp<int64_t>(first, -1, length - 1);
      source[a] = {e_.Plus(e_.MulInt(indices[a].base, step), first), indices[a].step * step};
    }
    return At(call.args()[0], source);
  }
  if (call.op()->is_reshape) {
    const Shape from = TypeOf(call.args()[0]).static_shape();
    const Shape to = AsTensorType(call.checked_type())->static_shape();
    const std::optional<std::vector<int>> map = MatchDimensions(from, to);
    if (!map) throw Error(ErrorCategory::kUnsupported, "a reshape that mixes dimensions inside a kernel");
    Indices source;
    for (int dimension : *map) {
      source.push_back(dimension < 0 ? Index{e_.Int(0), 0} : indices[static_cast<size_t>(dimension)]);
    }
    return At(call.args()[0], source);
  }
  throw Error(ErrorCategory::kUnsupported, fmt::format("'{}' is not computed in place", name));
}

}  // namespace collage::native
