// symbolic_sizes_test.cc: toolchains that compile functions of any size, against the interpreter at many sizes.
#include "collage/target/symbolic_sizes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "bytecode/bytecode.h"
#include "collage/ir/infer_type.h"
#include "collage/ir/text.h"
#include "collage/support/error.h"
#include "collage/transform/passes.h"
#include "collage/vm/vm.h"
#include "conformance/conformance.h"
#include "ir/eval/interpreter.h"
#include "program/regions.h"
#include "runtime/random_inputs.h"

namespace collage {
namespace {

using conformance::BuiltinToolchain;
using conformance::ExampleFunction;

constexpr double kTolerance = 2e-4;

/// A shape for each parameter.
using Shapes = std::vector<Shape>;

class SymbolicSizes : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const Availability here = toolchain().Probe();
    if (!here.available) GTEST_SKIP() << here.reason;
  }
  static const Toolchain& toolchain() { return BuiltinToolchain(GetParam()); }

  /// `module` with the parts that the toolchain takes in its kernels, and operators by reference evaluation.
  static vm::Executable Compiled(const IRModule& module, int num_threads) {
    DynamicShapes dynamic;
    dynamic.symbolic = {GetParam(), [](const CallNode& call) { return SupportsSymbolicSizes(toolchain(), call).ok(); }};
    vm::CompileOptions options;
    options.for_symbolic_sizes = {&toolchain()};
    options.num_threads = num_threads;
    const ProgramRegions program = FindRegions(module, /*few_elements=*/16, dynamic);
    return vm::Executable::Deserialize(vm::Compile(program.module, options).Serialize());
  }

  static std::vector<Value> Arguments(const IRModule& module, const Shapes& shapes, uint64_t seed) {
    std::vector<Value> args;
    for (size_t i = 0; i < shapes.size(); ++i) {
      const Tensor tensor = Tensor::Empty(shapes[i], AsTensorType(module.main()->params()[i]->checked_type())->dtype());
      const bool is_float = tensor.dtype().is_floating();
      FillRandom(tensor, seed + i, is_float ? -1 : 0, is_float ? 1 : 3);
      args.emplace_back(tensor);
    }
    return args;
  }

  static void ExpectAgrees(const IRModule& module, const vm::Executable& executable, const Shapes& shapes) {
    const std::vector<Value> args = Arguments(module, shapes, 11);
    const Value expected = Interpret(module, "main", args);
    vm::Machine machine(executable);
    for (int run = 0; run < 3; ++run) {  // the second one has the sizes planned
      EXPECT_TRUE(ValuesEqual(expected, machine.Invoke("main", args), kTolerance))
          << "run " << run << " at " << ToString(shapes[0]) << "\n"
          << executable.Disassemble();
    }
  }

  /// One kernel computes all of `text` at each of `sizes`.
  static void Check(const std::string& text, const std::vector<Shapes>& sizes) {
    const IRModule module = PrepareForPartitioning(ParseModule("#[version = \"0.0.5\"]\n" + text, "t.relay"));
    for (const int num_threads : {1, 2}) {
      const vm::Executable executable = Compiled(module, num_threads);
      EXPECT_EQ(executable.program().dynamic_kernels.size(), 1U) << executable.Disassemble();
      EXPECT_TRUE(executable.program().op_calls.empty()) << executable.Disassemble();
      for (const Shapes& shapes : sizes) ExpectAgrees(module, executable, shapes);
    }
  }
};

TEST_P(SymbolicSizes, APerceptronOfAnyBatch) {
  std::vector<Shapes> sizes;
  for (const int64_t n : {1, 2, 7, 64, 100, 7}) sizes.push_back({{n, 24}, {32, 24}, {32}, {10, 32}});
  Check(R"(def @main(%x: Tensor[(?, 24), float32], %w: Tensor[(32, 24), float32], %b: Tensor[(32), float32],
                     %v: Tensor[(10, 32), float32]) {
             nn.softmax(nn.dense(nn.relu(add(nn.dense(%x, %w), %b)), %v)) })",
        sizes);
}

TEST_P(SymbolicSizes, AttentionOfAnyLength) {
  std::vector<Shapes> sizes;
  for (const int64_t n : {1, 2, 9, 33, 100, 9})
    sizes.push_back({{n, 32}, {1, n}, {32, 32}, {32, 32}, {32, 32}, {32}, {32}});
  Check(R"(def @main(%x: Tensor[(?, 32), float32], %mask: Tensor[(1, ?), float32], %wq: Tensor[(32, 32), float32],
                     %wk: Tensor[(32, 32), float32], %wv: Tensor[(32, 32), float32], %g: Tensor[(32), float32],
                     %b: Tensor[(32), float32]) {
             let %h = nn.layer_norm(%x, %g, %b);
             let %q = transpose(reshape(nn.dense(%h, %wq), newshape=[-1, 4, 8]), axes=[1, 0, 2]);
             let %k = transpose(reshape(nn.dense(%h, %wk), newshape=[-1, 4, 8]), axes=[1, 0, 2]);
             let %v = transpose(reshape(nn.dense(%h, %wv), newshape=[-1, 4, 8]), axes=[1, 0, 2]);
             let %s = add(multiply(nn.batch_matmul(%q, %k, transpose_b=True), 0.35f), %mask);
             let %c = nn.batch_matmul(nn.softmax(%s), %v, transpose_b=False);
             add(%x, reshape(transpose(%c, axes=[1, 0, 2]), newshape=[-1, 32])) })",
        sizes);
}

TEST_P(SymbolicSizes, BatchesAndLengthsTogether) {
  std::vector<Shapes> sizes;
  for (const int64_t b : {1, 3, 8}) {
    for (const int64_t s : {1, 5, 40}) sizes.push_back({{b, s, 24}, {16, 24}, {b, s}});
  }
  Check(R"(def @main(%x: Tensor[(?, ?, 24), float32], %w: Tensor[(16, 24), float32], %m: Tensor[(?, ?), float32]) {
             let %y = nn.dense(reshape(%x, newshape=[-3, 24]), %w);
             let %z = mean(multiply(%x, expand_dims(%m, axis=2)), axis=[1]);
             (nn.relu(%y), concatenate((%z, tanh(%z)), axis=1)) })",
        sizes);
}

TEST_P(SymbolicSizes, ImagesOfAnySize) {
  std::vector<Shapes> sizes;
  for (const int64_t n : {1, 3}) {
    for (const int64_t edge : {8, 15, 32}) sizes.push_back({{n, 3, edge, edge + 2}, {8, 3, 3, 3}, {8, 1, 1}});
  }
  Check(R"(def @main(%x: Tensor[(?, 3, ?, ?), float32], %w: Tensor[(8, 3, 3, 3), float32],
                     %b: Tensor[(8, 1, 1), float32]) {
             let %y = nn.relu(add(nn.conv2d(%x, %w, padding=[1, 1], channels=8, kernel_size=[3, 3]), %b));
             nn.global_avg_pool2d(nn.max_pool2d(%y, pool_size=[2, 2], strides=[2, 2])) })",
        sizes);
}

/// `function` with all dimensions of its first parameter open; null where its types do not allow that.
Function WithOpenInput(const Function& function) {
  if (function->params().empty()) return nullptr;
  const Var& first = function->params()[0];
  const TensorTypeNode& type = *AsTensorType(first->type_annotation());
  const Var open = MakeVar(first->name(), TensorType(std::vector<Dim>(type.shape().size(), Dim::Any()), type.dtype()));
  std::vector<Var> params = function->params();
  params[0] = open;
  const auto& call = static_cast<const CallNode&>(*function->body());
  std::vector<Expr> args;
  for (const Expr& arg : call.args()) args.push_back(arg == Expr(first) ? Expr(open) : arg);
  const Function opened = MakeFunction(params, MakeCall(call.op()->name, args, call.attrs()));
  try {
    InferType(opened);
  } catch (const Error&) {
    return nullptr;
  }
  return opened;
}

// Each operator that the toolchain takes with symbolic sizes, at the shapes of its examples.
TEST_P(SymbolicSizes, Operators) {
  size_t num_taken = 0;
  for (const Op& op : AllOps()) {
    for (const OpExample& example : op->def().examples) {
      const bool are_tensors =
          std::ranges::all_of(example.args, [](const Type& type) { return AsTensorType(type) != nullptr; });
      if (!are_tensors) continue;
      const Function open = WithOpenInput(ExampleFunction(op->def(), example, /*constant_from=*/1));
      if (open == nullptr) continue;
      if (!SupportsSymbolicSizes(toolchain(), static_cast<const CallNode&>(*open->body())).ok()) continue;
      SCOPED_TRACE(op->name());
      const IRModule module = InferTypes(IRModule::FromFunction(open));
      try {
        const vm::Executable executable = Compiled(module, 1);
        ExpectAgrees(module, executable, {AsTensorType(example.args[0])->static_shape()});
        num_taken += executable.program().dynamic_kernels.size();
      } catch (const Error& error) {
        ADD_FAILURE() << error.Format();
      }
    }
  }
  EXPECT_GT(num_taken, 50U);
}

INSTANTIATE_TEST_SUITE_P(All, SymbolicSizes, testing::Values("openvino", "onnxruntime"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace collage
