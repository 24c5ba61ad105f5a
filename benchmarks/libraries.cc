// libraries.cc: products of matrices with what follows them, by native kernels of generated code alone, by native
// kernels that call a library for their tiles (target option `libs`), and by libxsmm's own toolchain with a native
// kernel for what follows. Times are medians of runs interleaved within one process.
//
//   bench_libraries [--threads N] [--seconds S]
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collage/compile.h"
#include "collage/ir/infer_type.h"
#include "collage/runtime/thread_pool.h"
#include "collage/support/error.h"
#include "cost/measure/measure.h"
#include "cost/measure/timing.h"
#include "random_tensor.h"
#include "run_main.h"
#include "target/toolchain_configuration.h"

namespace collage {
namespace {

struct Setting {
  int threads = 1;
  double seconds = 0.5;  ///< for each product
};

/// What follows a product.
enum class After { kNothing, kBias, kRelu, kGelu, kResidual };

struct Product {
  int64_t batch, m, n, k;
  bool is_weight;  ///< whether the right matrix is constant
  After after;
};

std::string NameOf(const Product& p) {
  const char* after[] = {"", ", bias", ", bias, relu", ", bias, GELU", ", bias, residual"};
  return fmt::format("{}[{}, {}] x [{}, {}]{}{}", p.batch == 1 ? "" : fmt::format("{} x ", p.batch), p.m, p.k, p.k, p.n,
                     p.is_weight ? "" : " of inputs", after[static_cast<size_t>(p.after)]);
}

const std::vector<Product>& Products() {
  static const std::vector<Product> products = [] {
    std::vector<Product> made;
    for (const int64_t size : {8, 16, 23, 32, 48, 64}) {
      made.push_back({1, size, size, size, true, After::kNothing});
      made.push_back({1, size, size, size, true, After::kGelu});
      made.push_back({1, size, size, size, false, After::kNothing});
    }
    made.push_back({32, 16, 16, 16, false, After::kNothing});
    made.push_back({32, 64, 64, 64, false, After::kNothing});
    // A layer of BERT, sequences of 128.
    made.push_back({1, 128, 768, 768, true, After::kBias});
    made.push_back({1, 128, 768, 768, true, After::kResidual});
    made.push_back({1, 128, 3072, 768, true, After::kGelu});
    made.push_back({1, 128, 768, 3072, true, After::kResidual});
    made.push_back({12, 128, 128, 64, false, After::kNothing});
    made.push_back({12, 128, 64, 128, false, After::kNothing});
    return made;
  }();
  return products;
}

Expr Scalar(double value) { return MakeScalar(value, kFloat32); }

/// `x` is the product with its bias.
Expr Follow(After after, const Expr& x, const Expr& residual) {
  if (after == After::kRelu) return MakeCall("nn.relu", {x});
  if (after == After::kResidual) return MakeCall("add", {x, residual});
  if (after != After::kGelu) return x;
  const Expr erf = MakeCall("erf", {MakeCall("divide", {x, Scalar(std::sqrt(2.0))})});
  return MakeCall("multiply", {MakeCall("multiply", {x, MakeCall("add", {erf, Scalar(1)})}), Scalar(0.5)});
}

/// A product as a whole, and in the two partitions that libxsmm's toolchain makes of it.
struct Problem {
  Function whole;
  Function product;    ///< with its bias
  Function following;  ///< null where nothing follows

  explicit Problem(const Product& p) {
    const bool has_batch = p.batch > 1;
    const auto shape = [&](int64_t rows, int64_t columns) {
      return has_batch ? Shape{p.batch, rows, columns} : Shape{rows, columns};
    };
    const auto input = [&](const char* name, const Shape& of) { return MakeVar(name, TensorType(of, kFloat32)); };
    const Var x = input("x", shape(p.m, p.k)), y = input("y", shape(p.k, p.n)), residual = input("r", shape(p.m, p.n));
    const double scale = std::sqrt(3.0 / static_cast<double>(p.k));
    Expr sums = p.is_weight ? MakeCall("nn.dense", {x, MakeConstant(Random({p.n, p.k}, scale, 1))})
                : has_batch ? MakeCall("nn.batch_matmul", {x, y}, {{"transpose_b", false}})
                            : MakeCall("nn.matmul", {x, y});
    if (p.after != After::kNothing) sums = MakeCall("add", {sums, MakeConstant(Random({p.n}, 1, 2))});
    std::vector<Var> params = p.is_weight ? std::vector<Var>{x} : std::vector<Var>{x, y};
    product = MakeFunction(params, sums);
    if (p.after == After::kResidual) params.push_back(residual);
    whole = MakeFunction(params, Follow(p.after, sums, residual));
    InferType(product);
    InferType(whole);
    if (p.after == After::kNothing || p.after == After::kBias) return;
    const Var z = input("z", shape(p.m, p.n));
    following = MakeFunction(p.after == After::kResidual ? std::vector<Var>{z, residual} : std::vector<Var>{z},
                             Follow(p.after, z, residual));
    InferType(following);
  }
};

/// `function` as the toolchain's composite; null when none of its rows takes it.
Function AsComposite(const Toolchain& toolchain, const Function& function) {
  const std::string op = As<CallNode>(function->body())->op()->name;
  const bool has_bias = op == "add";
  const Expr& product = has_bias ? As<CallNode>(function->body())->args()[0] : function->body();
  const std::string wanted = toolchain.name() + As<CallNode>(product)->op()->name.substr(2) + (has_bias ? "_bias" : "");
  for (const PatternTableEntry& row : toolchain.PatternTable()) {
    if (row.name != wanted || !row.predicate(function).ok()) continue;
    std::vector<Var> params;
    for (const Var& param : function->params()) params.push_back(MakeVar(param->name(), param->type_annotation()));
    const Function composite = WithAttr(function, "Composite", row.name);
    InferType(composite);
    Function result = MakeFunction(params, MakeCall(composite, {params.begin(), params.end()}));
    InferType(result);
    return result;
  }
  return nullptr;
}

template <typename T>
T Checked(Result<T> result) {
  if (!result.ok()) throw Error(ErrorCategory::kUnavailable, result.reason().text);
  return std::move(*result);
}

/// Kernels that run one after the other.
class Way {
 public:
  void Add(const Toolchain& toolchain, const Function& function, int threads) {
    const PartitionRequest request{function, PlainLayouts(function->params().size(), 1), threads};
    buffers_.push_back(std::make_unique<PartitionBuffers>(request));
    kernels_.push_back(std::make_unique<LoadedPartition>(Checked(toolchain.RelayToRuntime(request)), threads));
    kernels_.back()->Bind(*buffers_.back());
    if (kernels_.size() == 1) return;
    // Element-wise kernels have no workspace; the first operand is what the kernel before wrote.
    std::vector<void*> inputs = buffers_.back()->InputAddresses();
    inputs[0] = buffers_[buffers_.size() - 2]->OutputAddresses()[0];
    kernels_.back()->kernel().Bind(inputs, buffers_.back()->OutputAddresses(), nullptr);
  }
  bool empty() const { return kernels_.empty(); }
  void Run() {
    for (const auto& kernel : kernels_) kernel->kernel().Run();
  }

 private:
  std::vector<std::unique_ptr<PartitionBuffers>> buffers_;
  std::vector<std::unique_ptr<LoadedPartition>> kernels_;
};

std::string Cell(double value) { return value == 0 ? "" : fmt::format("{:.2f} us", value * 1e6); }

void PrintRow(const Product& product, const std::vector<const Toolchain*>& natives, const Toolchain* xsmm,
              const Setting& setting) {
  const Problem problem(product);
  std::vector<Way> ways(natives.size() + 1);
  for (size_t i = 0; i < natives.size(); ++i) {
    if (natives[i] != nullptr) ways[i].Add(*natives[i], problem.whole, setting.threads);
  }
  const Function composite = xsmm == nullptr ? nullptr : AsComposite(*xsmm, problem.product);
  if (composite != nullptr) {
    ways.back().Add(*xsmm, composite, setting.threads);
    if (problem.following != nullptr) ways.back().Add(*natives[0], problem.following, setting.threads);
  }
  std::vector<std::function<void()>> runs;
  std::vector<size_t> tried;
  for (size_t i = 0; i < ways.size(); ++i) {
    if (ways[i].empty()) continue;
    tried.push_back(i);
    runs.emplace_back([&way = ways[i]] { way.Run(); });
  }
  double round = 0;
  for (const Samples& samples : TimeInterleaved(runs, 3)) round += samples.p50();
  const std::vector<Samples> samples =
      TimeInterleaved(runs, std::clamp(static_cast<int>(setting.seconds / round), 7, 20000));
  std::vector<double> seconds(ways.size());
  for (size_t i = 0; i < tried.size(); ++i) seconds[tried[i]] = samples[i].p50();
  std::string row = fmt::format("| {} |", NameOf(product));
  for (const double value : seconds) row += " " + Cell(value) + " |";
  fmt::print("{} {} |\n", row, seconds[1] == 0 ? "" : fmt::format("{:.2f}", seconds[0] / seconds[1]));
  std::fflush(stdout);
}

Setting Parse(int argc, char** argv) {
  Setting setting;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--threads") == 0) setting.threads = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--seconds") == 0) setting.seconds = std::atof(argv[i + 1]);
  }
  return setting;
}

int Main(int argc, char** argv) {
  const Setting setting = Parse(argc, argv);
  SetNumThreads(setting.threads);
  ProbeToolchains();
  const ToolchainRegistry& registry = ToolchainRegistry::Global();
  const Toolchain* native = registry.Find("native");
  if (native == nullptr || !native->Probe().available) {
    throw Error(ErrorCategory::kUnavailable, "there is no native toolchain");
  }
  std::vector<std::unique_ptr<const Toolchain>> made;
  std::vector<const Toolchain*> natives{native};
  for (const char* library : {"xsmm", "blas"}) {
    const Toolchain* toolchain = registry.Find(library);
    const bool is_here = toolchain != nullptr && toolchain->Probe().available;
    if (is_here)
      made.push_back(ToolchainConfiguration::Parse(fmt::format("native -libs={}", library), registry).Make());
    natives.push_back(is_here ? made.back().get() : nullptr);
  }
  const Toolchain* xsmm = natives[1] == nullptr ? nullptr : registry.Find("xsmm");
  fmt::print("{} thread(s)\n\n", setting.threads);
  fmt::print(
      "| product | native | native -libs=xsmm | native -libs=blas | xsmm, native what follows | native to -libs=xsmm "
      "|\n"
      "| --- | --- | --- | --- | --- | --- |\n");
  for (const Product& product : Products()) PrintRow(product, natives, xsmm, setting);
  return 0;
}

}  // namespace
}  // namespace collage

int main(int argc, char** argv) { return collage::RunMain(collage::Main, argc, argv); }
