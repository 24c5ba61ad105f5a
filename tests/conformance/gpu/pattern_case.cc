// pattern_case.cc: functions as exporters write them out, and the check of a case.
#include "conformance/gpu/pattern_case.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "collage/ir/infer_type.h"
#include "collage/ir/op.h"
#include "conformance/conformance.h"
#include "conformance/fused_calls.h"

namespace collage {
namespace {

using conformance::Mul;
using conformance::Plus;

bool IsImage(const Expr& expr) {
  const size_t rank = ShapeOf(expr).size();
  return rank >= 3 && rank <= 5;
}

/// x * (1 + erf(x / sqrt(2))) / 2, in parts.
struct Gelu {
  DataType dtype;

  Expr Number(double value) const { return MakeScalar(value, dtype); }
  Expr ErfTerm(const Expr& x) const { return Plus(MakeCall("erf", {Mul(x, Number(std::sqrt(0.5)))}), Number(1)); }
  /// With erf in float32, as models of float16 have it.
  Expr WideErfTerm(const Expr& x) const {
    const Expr wide = MakeCall("cast", {Mul(x, Number(std::sqrt(0.5)))}, {{"dtype", kFloat32}});
    return Plus(MakeCall("cast", {MakeCall("erf", {wide})}, {{"dtype", dtype}}), Number(1));
  }
  Expr TanhTerm(const Expr& x) const {
    const Expr cube = Mul(MakeCall("power", {x, Number(3)}), Number(0.044715));
    return Plus(MakeCall("tanh", {Mul(Plus(x, cube), Number(std::sqrt(2 / M_PI)))}), Number(1));
  }
};

}  // namespace

Shape ShapeOf(const Expr& expr) { return AsTensorType(InferType(expr))->static_shape(); }

Function PatternCase::function() const {
  Function function = MakeFunction(params, body);
  InferType(function);
  return function;
}

std::vector<BoundaryLayouts> LayoutsOf(const Toolchain& toolchain, const Function& function) {
  std::vector<bool> inputs;
  for (const Var& param : function->params()) inputs.push_back(IsImage(param));
  return toolchain.Layouts(function, inputs, {IsImage(function->body())});
}

void ExpectCasesAgree(const Toolchain& toolchain, const std::vector<PatternCase>& cases, double tolerance) {
  for (const PatternCase& one : cases) {
    const Function function = one.function();
    const std::vector<BoundaryLayouts> all = LayoutsOf(toolchain, function);
    EXPECT_FALSE(all.empty()) << one.pattern;
    for (const BoundaryLayouts& layouts : all) {
      SCOPED_TRACE(fmt::format("{}, {}", one.pattern, ToString(layouts.outputs[0])));
      conformance::Options options;
      options.layouts = layouts;
      options.tolerance = tolerance;
      conformance::ExpectPatternAgrees(toolchain, fmt::format("{}.{}", toolchain.name(), one.pattern), function,
                                       options);
    }
  }
}

std::vector<NamedFunction> FunctionsBehind(DataType dtype) {
  const auto call = [](const char* op, Attrs attrs = {}) {
    return [=](const Expr& x) { return MakeCall(op, {x}, attrs); };
  };
  const auto number = [=](double value) { return MakeScalar(value, dtype); };
  const Gelu gelu{dtype};
  const auto below = [=](const Expr& x) {
    return Plus(MakeCall("exp", {MakeCall("minimum", {x, number(0)})}), number(-1));
  };
  const auto ramp = [=](const Expr& x) {
    return MakeCall("clip", {Plus(x, number(3))}, {{"a_min", 0.0}, {"a_max", 6.0}});
  };
  const auto unit_ramp = [=](const Expr& x) {
    return MakeCall("clip", {Plus(Mul(x, number(1.0 / 6)), number(0.5))}, {{"a_min", 0.0}, {"a_max", 1.0}});
  };
  std::vector<NamedFunction> functions{
      {"_relu", call("nn.relu")},
      {"_clip", call("clip", {{"a_min", 0.0}, {"a_max", 0.5}})},
      {"_sigmoid", call("sigmoid")},
      {"_tanh", call("tanh")},
      {"_leaky_relu", call("nn.leaky_relu", {{"alpha", 0.1}})},
      {"_swish", [](const Expr& x) { return Mul(x, MakeCall("sigmoid", {x})); }},
      {"_gelu", [=](const Expr& x) { return Mul(Mul(x, gelu.ErfTerm(x)), number(0.5)); }},
      {"_gelu", [=](const Expr& x) { return Mul(x, Mul(gelu.ErfTerm(x), number(0.5))); }},
      {"_gelu", [=](const Expr& x) { return Mul(Mul(x, number(0.5)), gelu.ErfTerm(x)); }},
      {"_gelu_tanh", [=](const Expr& x) { return Mul(Mul(x, number(0.5)), gelu.TanhTerm(x)); }},
      {"_hardswish", [=](const Expr& x) { return Mul(x, Mul(ramp(x), number(1.0 / 6))); }},
      {"_hardswish",
       [=](const Expr& x) {
         return MakeCall("divide", {Mul(x, ramp(x)), number(6)});
       }},
      {"_hardswish", [=](const Expr& x) { return Mul(x, unit_ramp(x)); }},
      {"_elu", [=](const Expr& x) { return Plus(MakeCall("nn.relu", {x}), below(x)); }},
      {"_elu", [=](const Expr& x) { return Plus(MakeCall("nn.relu", {x}), Mul(below(x), number(0.7))); }}};
  if (dtype == kFloat16) {
    functions.push_back({"_gelu", [=](const Expr& x) { return Mul(Mul(x, gelu.WideErfTerm(x)), number(0.5)); }});
  }
  return functions;
}

}  // namespace collage
