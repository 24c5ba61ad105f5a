// dynamic_shapes.cc: operators on tensors whose shapes a run knows, by native kernels, beside the reference evaluation
// and beside kernels that were compiled for the very shapes. The three of a row take turns in one process; times are
// the least of all turns.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "backends/builtin_toolchains.h"
#include "collage/ir/infer_type.h"
#include "collage/ir/text.h"
#include "collage/target/toolchain.h"
#include "collage/transform/passes.h"
#include "collage/vm/vm.h"
#include "program/regions.h"
#include "random_tensor.h"
#include "run_main.h"

namespace collage {
namespace {

using Clock = std::chrono::steady_clock;

struct Case {
  const char* name;
  const char* text;  ///< `?` is the size
};

constexpr Case kCases[] = {
    {"element by element",
     "def @main(%x: Tensor[(?, 256), float32], %b: Tensor[(256), float32]) { "
     "tanh(multiply(nn.relu(add(%x, %b)), %x)) }"},
    {"softmax", "def @main(%x: Tensor[(8, ?, ?), float32]) { nn.softmax(%x) }"},
    {"layer norm",
     "def @main(%x: Tensor[(?, 384), float32], %g: Tensor[(384), float32], %b: Tensor[(384), float32]) { "
     "nn.layer_norm(%x, %g, %b) }"},
    {"transpose", "def @main(%x: Tensor[(?, 8, 64), float32]) { transpose(%x, axes=[1, 0, 2]) }"},
    {"product by weights",
     "def @main(%x: Tensor[(?, 384), float32], %w: Tensor[(1536, 384), float32], "
     "%b: Tensor[(1536), float32]) { nn.relu(add(nn.dense(%x, %w), %b)) }"},
    {"scores of attention",
     "def @main(%q: Tensor[(6, ?, 64), float32], %k: Tensor[(6, ?, 64), float32]) { "
     "nn.batch_matmul(%q, %k, transpose_b=True) }"},
    {"means of attention",
     "def @main(%s: Tensor[(6, ?, ?), float32], %v: Tensor[(6, ?, 64), float32]) { "
     "nn.batch_matmul(%s, %v, transpose_b=False) }"},
    {"block of a transformer", R"(
      def @main(%x: Tensor[(?, 384), float32], %q: Tensor[(384, 384), float32], %k: Tensor[(384, 384), float32],
                %v: Tensor[(384, 384), float32], %o: Tensor[(384, 384), float32], %u: Tensor[(1536, 384), float32],
                %d: Tensor[(384, 1536), float32], %g: Tensor[(384), float32], %b: Tensor[(384), float32]) {
        let %h = nn.layer_norm(%x, %g, %b);
        let %hq = transpose(reshape(nn.dense(%h, %q), newshape=[-1, 6, 64]), axes=[1, 0, 2]);
        let %hk = transpose(reshape(nn.dense(%h, %k), newshape=[-1, 6, 64]), axes=[1, 0, 2]);
        let %hv = transpose(reshape(nn.dense(%h, %v), newshape=[-1, 6, 64]), axes=[1, 0, 2]);
        let %s = nn.softmax(multiply(nn.batch_matmul(%hq, %hk, transpose_b=True), 0.125f));
        let %c = transpose(nn.batch_matmul(%s, %hv, transpose_b=False), axes=[1, 0, 2]);
        let %y = add(%x, nn.dense(reshape(%c, newshape=[-1, 384]), %o));
        add(%y, nn.dense(nn.relu(nn.dense(nn.layer_norm(%y, %g, %b), %u)), %d)) })"},
    {"residual block of images", R"(
      def @main(%x: Tensor[(1, 64, ?, ?), float32], %w: Tensor[(64, 64, 3, 3), float32],
                %v: Tensor[(64, 64, 3, 3), float32], %b: Tensor[(64, 1, 1), float32]) {
        let %y = nn.relu(add(nn.conv2d(%x, %w, padding=[1, 1, 1, 1]), %b));
        nn.relu(add(add(nn.conv2d(%y, %v, padding=[1, 1, 1, 1]), %b), %x)) })"},
    {"depthwise and 1x1 convolution", R"(
      def @main(%x: Tensor[(1, 96, ?, ?), float32], %w: Tensor[(96, 1, 3, 3), float32],
                %v: Tensor[(96, 96, 1, 1), float32]) {
        nn.conv2d(nn.relu(nn.conv2d(%x, %w, groups=96, padding=[1, 1, 1, 1])), %v) })"},
    {"max pool", R"(
      def @main(%x: Tensor[(1, 64, ?, ?), float32]) {
        nn.max_pool2d(%x, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1]) })"},
    {"convolutions of a batch", R"(
      def @main(%x: Tensor[(?, 16, 28, 28), float32], %w: Tensor[(32, 16, 3, 3), float32],
                %v: Tensor[(32, 32, 3, 3), float32], %d: Tensor[(10, 32), float32]) {
        let %a = nn.max_pool2d(nn.relu(nn.conv2d(%x, %w, padding=[1, 1, 1, 1])), pool_size=[2, 2], strides=[2, 2]);
        let %m = nn.global_avg_pool2d(nn.relu(nn.conv2d(%a, %v, padding=[1, 1, 1, 1])));
        nn.dense(reshape(%m, newshape=[0, -1]), %d) })"}};

/// Weights, all parameters whose shapes are known, become constants.
IRModule ModuleOf(std::string text, const std::string& size) {
  for (size_t at = text.find('?'); at != std::string::npos && !size.empty(); at = text.find('?')) {
    text.replace(at, 1, size);
  }
  return ParseModule("#[version = \"0.0.5\"]\n" + text, "benchmark");
}

IRModule Prepared(const IRModule& module, const std::vector<bool>& is_weight) {
  std::vector<Var> params;
  Expr body = module.main()->body();
  for (size_t i = 0; i < is_weight.size(); ++i) {
    const Var& param = module.main()->params()[i];
    if (!is_weight[i]) {
      params.push_back(param);
      continue;
    }
    const Tensor weights = Random(AsTensorType(param->type_annotation())->static_shape(), 0.1, 5);
    body = std::make_shared<LetNode>(param, MakeConstant(weights), body);
  }
  const Function main = MakeFunction(params, body);
  return PrepareForPartitioning(RunPasses({"ToGraphNormalForm"}, InferTypes(IRModule::FromFunction(main))));
}

double SecondsOf(vm::Machine& machine, const std::vector<Value>& args) {
  const auto start = Clock::now();
  machine.Invoke("main", args);
  return std::chrono::duration<double>(Clock::now() - start).count();
}

int Run(int, char**) {
  constexpr int kTurns = 30, kReferenceTurns = 2;
  AddBuiltinToolchains(ToolchainRegistry::Global());
  const Toolchain& native = *ToolchainRegistry::Global().Native();
  const DynamicShapes unknown{[&](const CallNode& call) { return native.SupportsDynamicShapes(call).ok(); },
                              [&](const CallNode& call) { return native.SupportsCall(call).ok(); }};
  fmt::print("{:24} {:>5} {:>12} {:>16} {:>18}\n", "function", "?", "of any size", "reference", "of this size");
  for (const Case& one : kCases) {
    const IRModule open = ModuleOf(one.text, "");
    std::vector<bool> is_weight;
    for (const Var& param : open.main()->params()) {
      is_weight.push_back(AsTensorType(param->type_annotation())->is_static());
    }
    const IRModule prepared = Prepared(open, is_weight);
    vm::CompileOptions options;
    options.for_dynamic_shapes = &native;
    vm::Machine any(vm::Compile(FindRegions(prepared, 16, unknown).module, options));
    vm::Machine reference(vm::Compile(prepared));
    for (const char* size : {"1", "7", "64", "128", "300"}) {
      const IRModule known = ModuleOf(one.text, size);
      vm::CompileOptions of_known;
      of_known.toolchains = &ToolchainRegistry::Global();
      vm::Machine fixed(vm::Compile(FindRegions(Prepared(known, is_weight), 0).module, of_known));
      std::vector<Value> args;
      for (size_t i = 0; i < is_weight.size(); ++i) {
        const Type& type = known.main()->params()[i]->type_annotation();
        if (!is_weight[i]) args.emplace_back(Random(AsTensorType(type)->static_shape(), 1, 3));
      }
      double times[3];
      std::fill(std::begin(times), std::end(times), std::numeric_limits<double>::infinity());
      for (int turn = 0; turn < kTurns; ++turn) {
        times[0] = std::min(times[0], SecondsOf(any, args));
        times[2] = std::min(times[2], SecondsOf(fixed, args));
        if (turn < kReferenceTurns) times[1] = std::min(times[1], SecondsOf(reference, args));
      }
      fmt::print("{:24} {:>5} {:>9.1f} us {:>8.1f} x slower {:>10.2f} x faster\n", one.name, size, times[0] * 1e6,
                 times[1] / times[0], times[0] / times[2]);
    }
  }
  return 0;
}

}  // namespace
}  // namespace collage

int main(int argc, char** argv) { return collage::RunMain(collage::Run, argc, argv); }
