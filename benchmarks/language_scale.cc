// language_scale.cc: whether the time that the language's services take follows the length of a module. Modules of
// several shapes are printed, parsed, inferred, digested, compared, interpreted and run as bytecode; the nanoseconds
// per operator should be the same for all lengths, the exponent of growth 1.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>

#include "collage/ir/infer_type.h"
#include "collage/ir/structural.h"
#include "collage/ir/text.h"
#include "collage/vm/vm.h"
#include "ir/eval/interpreter.h"

namespace {

using collage::Expr;
using collage::IRModule;
using collage::Var;

const collage::Type kType = collage::TensorType(collage::Shape{4}, collage::kFloat32);

/// `body` behind the bindings, the first outermost.
Expr Bound(const std::vector<std::pair<Var, Expr>>& lets, Expr body) {
  for (size_t i = lets.size(); i-- > 0;) {
    body = std::make_shared<collage::LetNode>(lets[i].first, lets[i].second, std::move(body));
  }
  return body;
}

/// One operator behind the other, every tenth value used twice, every hundredth bound by let.
IRModule Chain(int length) {
  const Var x = collage::MakeVar("x", kType);
  std::vector<std::pair<Var, Expr>> lets;
  Expr expr = x;
  Expr before = x;
  for (int i = 0; i < length; ++i) {
    const Expr next = i % 10 == 9 ? collage::MakeCall("maximum", {expr, before}) : collage::MakeCall("nn.relu", {expr});
    before = expr;
    expr = next;
    if (i % 100 != 99) continue;
    lets.emplace_back(collage::MakeVar("y"), expr);
    expr = lets.back().first;
    before = expr;
  }
  return IRModule::FromFunction(collage::MakeFunction({x}, Bound(lets, expr)));
}

/// Two operators on a value and a third on both, again and again: as many ways as 2 to the power of a third of them.
IRModule Diamonds(int length) {
  const Var x = collage::MakeVar("x", kType);
  Expr expr = x;
  for (int i = 0; i < length / 3; ++i) {
    expr = collage::MakeCall("maximum", {collage::MakeCall("nn.relu", {expr}), collage::MakeCall("tanh", {expr})});
  }
  return IRModule::FromFunction(collage::MakeFunction({x}, expr));
}

/// Every operator bound by let, under one name.
IRModule Lets(int length) {
  const Var x = collage::MakeVar("x", kType);
  std::vector<std::pair<Var, Expr>> lets;
  Var last = x;
  for (int i = 0; i < length; ++i) {
    lets.emplace_back(collage::MakeVar("y"), collage::MakeCall("nn.relu", {last}));
    last = lets.back().first;
  }
  return IRModule::FromFunction(collage::MakeFunction({x}, Bound(lets, last)));
}

/// relu of relu of … of a parameter, `length` operators.
collage::Function Layer(int length) {
  const Var x = collage::MakeVar("x", kType);
  Expr expr = x;
  for (int i = 0; i < length; ++i) expr = collage::MakeCall("nn.relu", {expr});
  return collage::MakeFunction({x}, expr, kType);
}

/// Global functions of ten operators, called one behind the other.
IRModule Functions(int length) {
  IRModule module;
  const Var x = collage::MakeVar("x", kType);
  Expr expr = x;
  for (int i = 0; i < length / 10; ++i) {
    const std::string name = fmt::format("layer{}", i);
    module.Set(name, Layer(10));
    expr = collage::MakeCall(std::make_shared<collage::GlobalVarNode>(name), {expr});
  }
  module.Set("main", collage::MakeFunction({x}, expr));
  return module;
}

/// Local functions of nine operators that capture the value before, called where they are bound.
IRModule Closures(int length) {
  const Var x = collage::MakeVar("x", kType);
  std::vector<std::pair<Var, Expr>> lets;
  Var last = x;
  for (int i = 0; i < length / 10; ++i) {
    const collage::Function layer = Layer(9);
    lets.emplace_back(collage::MakeVar("f"),
                      collage::MakeFunction(layer->params(), collage::MakeCall("maximum", {layer->body(), last})));
    lets.emplace_back(collage::MakeVar("y"), collage::MakeCall(lets.back().first, {x}));
    last = lets.back().first;
  }
  return IRModule::FromFunction(collage::MakeFunction({x}, Bound(lets, last)));
}

/// The least of three, since everything else only adds.
double Seconds(const std::function<void()>& work) {
  double least = 1e9;
  for (int i = 0; i < 3; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return least;
}

constexpr std::array kServices{"infer", "print", "parse", "hash", "equal", "interpret", "to bytecode", "run bytecode"};
using Times = std::array<double, kServices.size()>;

Times Measure(const std::function<IRModule(int)>& make, int length) {
  const collage::Tensor input = collage::Tensor::Zeros({4}, collage::kFloat32);
  // Types are kept in the nodes, so that each run needs nodes of its own.
  std::vector<IRModule> fresh{make(length), make(length), make(length)};
  IRModule module = fresh.back();
  const double infer = Seconds([&] {
    module = collage::InferTypes(fresh.back());
    fresh.pop_back();
  });
  std::string text;
  const double print = Seconds([&] { text = collage::PrintModule(module); });
  IRModule parsed;
  const double parse = Seconds([&] { parsed = collage::ParseModule(text, "text", {.infer_types = false}); });
  const double hash = Seconds([&] {
    for (const auto& [name, function] : module.functions()) collage::StructuralHash(function);
  });
  parsed = collage::InferTypes(std::move(parsed));
  const double equal = Seconds([&] {
    for (const auto& [name, function] : module.functions()) {
      if (collage::StructuralEqual(function, parsed.Lookup(name))) continue;
      fmt::print(stderr, "@{} is another function after printing and parsing\n", name);
      std::exit(1);
    }
  });
  const double interpret = Seconds([&] { collage::Interpret(module, "main", {input}); });
  const double compile = Seconds([&] { collage::vm::Compile(module); });
  collage::vm::Machine machine(collage::vm::Compile(module));
  const double run = Seconds([&] { machine.Invoke("main", {input}); });
  return {infer, print, parse, hash, equal, interpret, compile, run};
}

}  // namespace

int main() {
  const std::array<std::pair<const char*, IRModule (*)(int)>, 5> shapes{
      {{"chain", Chain}, {"diamonds", Diamonds}, {"lets", Lets}, {"functions", Functions}, {"closures", Closures}}};
  fmt::print("{:<10} {:>9}", "shape", "operators");
  for (const char* service : kServices) fmt::print(" {:>12}", service);
  fmt::print("  ns per operator\n");
  for (const auto& [shape, make] : shapes) {
    Times least{};
    for (const int length : {10000, 30000, 100000}) {
      const Times times = Measure(make, length);
      fmt::print("{:<10} {:>9}", shape, length);
      for (const double seconds : times) fmt::print(" {:>12.0f}", 1e9 * seconds / length);
      fmt::print("\n");
      if (length == 10000) least = times;
      if (length != 100000) continue;
      fmt::print("{:<10} {:>9}", shape, "growth");
      for (size_t i = 0; i < times.size(); ++i) fmt::print(" {:>12.2f}", std::log10(times[i] / least[i]));
      fmt::print("  exponent from 10000 to 100000\n");
    }
  }
}
