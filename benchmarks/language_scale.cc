// language_scale.cc: whether the time that the language's services take follows the length of a module. A chain of
// operators (every tenth one used twice, every hundredth bound by let) is printed, parsed, inferred, digested,
// interpreted and run as bytecode; the nanoseconds per operator should be the same for all lengths.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "collage/ir/infer_type.h"
#include "collage/ir/structural.h"
#include "collage/ir/text.h"
#include "collage/vm/vm.h"
#include "ir/interpreter.h"

namespace {

using collage::Expr;

collage::IRModule Chain(int length) {
  const collage::Var x = collage::MakeVar("x", collage::TensorType(collage::Shape{4}, collage::kFloat32));
  std::vector<std::pair<collage::Var, Expr>> lets;
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
  for (size_t i = lets.size(); i-- > 0;) {
    expr = std::make_shared<collage::LetNode>(lets[i].first, lets[i].second, std::move(expr));
  }
  return collage::IRModule::FromFunction(collage::MakeFunction({x}, std::move(expr)));
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

}  // namespace

int main() {
  fmt::print("{:>10} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12}  ns per operator\n", "operators", "infer",
             "print", "parse", "hash", "interpret", "to bytecode", "run bytecode");
  for (int length : {10000, 30000, 100000}) {
    const double per_operator = 1e9 / length;
    const collage::Tensor input = collage::Tensor::Zeros({4}, collage::kFloat32);
    // Types are kept in the nodes, so that each run needs nodes of its own.
    std::vector<collage::IRModule> fresh{Chain(length), Chain(length), Chain(length)};
    collage::IRModule module = fresh.back();
    const double infer = Seconds([&] {
      module = collage::InferTypes(fresh.back());
      fresh.pop_back();
    });
    std::string text;
    const double print = Seconds([&] { text = collage::PrintModule(module); });
    const double parse = Seconds([&] { collage::ParseModule(text, "text", {.infer_types = false}); });
    const double hash = Seconds([&] { collage::StructuralHash(module.main()); });
    const double interpret = Seconds([&] { collage::Interpret(module, "main", {input}); });
    const double compile = Seconds([&] { collage::vm::Compile(module); });
    collage::vm::Machine machine(collage::vm::Compile(module));
    const double run = Seconds([&] { machine.Invoke("main", {input}); });
    fmt::print("{:>10} {:>12.0f} {:>12.0f} {:>12.0f} {:>12.0f} {:>12.0f} {:>12.0f} {:>12.0f}\n", length,
               infer * per_operator, print * per_operator, parse * per_operator, hash * per_operator,
               interpret * per_operator, compile * per_operator, run * per_operator);
  }
}
