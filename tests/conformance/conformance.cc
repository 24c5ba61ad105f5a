// conformance.cc: running candidates in this process.
#include "conformance/conformance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <mutex>
#include <random>
#include <thread>

#include "collage/compile.h"
#include "collage/ir/infer_type.h"
#include "collage/runtime/kernel.h"
#include "collage/runtime/thread_pool.h"
#include "conformance/guarded_result.h"
#include "conformance/on_device.h"
#include "ir/eval/reference.h"

namespace collage::conformance {
namespace {

std::vector<Tensor> RandomInputs(const Function& function, const Options& options, uint32_t seed) {
  std::vector<Tensor> inputs;
  for (const Var& param : function->params()) {
    for (const Type& type : FlattenTensorTypes(param->type_annotation())) {
      const TensorTypeNode& tensor = *AsTensorType(type);
      const bool is_byte = tensor.dtype() == kInt8 || tensor.dtype() == kUInt8;
      const double least = tensor.dtype() == kInt8 ? -128 : 0;
      const bool whole_range = is_byte && options.all_bytes;
      inputs.push_back(RandomTensor(tensor.static_shape(), tensor.dtype(), whole_range ? least : options.low,
                                    whole_range ? least + 255 : options.high, seed++));
    }
  }
  return inputs;
}

Tensor InLayout(const Tensor& tensor, Layout from, Layout to) {
  if (from == to) return tensor;
  Tensor result = Tensor::Empty(tensor.shape(), tensor.dtype());
  ConvertLayout(tensor.raw(), from, result.raw(), to, tensor.shape(), tensor.dtype().size_bytes());
  return result;
}

/// Bytes that are one off are counted.
void CompareBytes(const Tensor& got, const Tensor& want, double share_one_off, size_t output) {
  int64_t off = 0;
  for (int64_t i = 0; i < want.num_elements(); ++i) {
    const double distance = std::abs(got.At(i) - want.At(i));
    if (distance > 1) {
      FAIL() << "result " << output << ", element " << i << " of " << ToString(want.shape()) << ": got " << got.At(i)
             << ", want " << want.At(i);
    }
    off += distance > 0 ? 1 : 0;
  }
  EXPECT_LE(static_cast<double>(off), std::ceil(share_one_off * static_cast<double>(want.num_elements())))
      << "so many of " << want.num_elements() << " elements of result " << output << " are one off";
}

void Compare(const Tensor& got, const Reference& reference, const Options& options, size_t output) {
  const Tensor& want = reference.results()[output];
  if (options.share_one_off > 0 && (want.dtype() == kInt8 || want.dtype() == kUInt8)) {
    return CompareBytes(got, want, options.share_one_off, output);
  }
  Tolerance tolerance = ShareOfLargest(want, options.tolerance);
  tolerance.absolute = std::max(tolerance.absolute, options.tolerance);
  const Comparison comparison = reference.Compare(output, got, tolerance);
  EXPECT_TRUE(comparison.agrees) << "result " << output << " of " << ToString(want.shape()) << ": "
                                 << comparison.difference;
}

/// Runs `kernel` on fresh memory and compares.
void RunOnce(Kernel& kernel, const CompiledPartition& partition, const Function& function, const Options& options,
             Memory memory, uint32_t seed) {
  OnDevice device(memory);
  const std::vector<Tensor> inputs = RandomInputs(function, options, seed);
  const Reference reference(function, inputs);
  std::vector<Tensor> placed;
  std::vector<void*> input_addresses;
  for (size_t i = 0; i < inputs.size(); ++i) {
    placed.push_back(InLayout(inputs[i], Layout::kPlain, options.layouts.inputs[i]));
    input_addresses.push_back(device.Place(placed.back().raw(), placed.back().size_bytes()));
  }
  std::vector<GuardedResult> outputs(reference.results().begin(), reference.results().end());
  std::vector<void*> output_addresses;
  for (GuardedResult& output : outputs) output_addresses.push_back(device.Place(output.raw(), output.guarded_bytes()));
  const Tensor workspace = Tensor::Zeros({static_cast<int64_t>(partition.workspace_bytes)}, kUInt8);
  void* scratch = partition.workspace_bytes == 0 ? nullptr : device.Place(workspace.raw(), workspace.size_bytes());
  kernel.Bind(input_addresses, output_addresses, scratch);
  kernel.Run();
  for (size_t i = 0; i < outputs.size(); ++i) {
    device.Fetch(outputs[i].raw(), output_addresses[i], outputs[i].guarded_bytes());
    EXPECT_TRUE(outputs[i].IsGuardIntact()) << "what lies behind result " << i << " was written";
    Compare(InLayout(outputs[i].Written(), options.layouts.outputs[i], Layout::kPlain), reference, options, i);
  }
}

}  // namespace

const Toolchain& BuiltinToolchain(const std::string& name) {
  static std::once_flag once;
  std::call_once(once, [] { ProbeToolchains(); });  // registers them, once in a process
  const char* other = std::getenv("COLLAGE_TEST_NATIVE");
  const Toolchain* toolchain = ToolchainRegistry::Global().Find(name == "native" && other != nullptr ? other : name);
  COLLAGE_CHECK(toolchain != nullptr) << "no toolchain " << name;
  return *toolchain;
}

void ExpectAgrees(const Toolchain& toolchain, const Function& function, const Options& options) {
  InferType(function);
  Options complete = options;
  size_t num_inputs = 0;
  for (const Var& param : function->params()) num_inputs += FlattenTensorTypes(param->type_annotation()).size();
  if (complete.layouts == BoundaryLayouts{}) {
    complete.layouts = PlainLayouts(num_inputs, FlattenTensorTypes(function->body()->checked_type()).size());
  }
  SetNumThreads(complete.num_threads);
  complete.layouts = In(Memory::kHost, complete.layouts);
  const Memory memory = MainMemoryOf(toolchain);
  Result<CompiledPartition> compiled =
      toolchain.RelayToRuntime({function, In(memory, complete.layouts), complete.num_threads, complete.schedule});
  ASSERT_TRUE(compiled.ok()) << compiled.reason().text;
  std::unique_ptr<Kernel> kernel =
      GetKernelLoader(compiled->loader).Load({compiled->blob, compiled->constants, complete.num_threads});
  RunOnce(*kernel, *compiled, function, complete, memory, 1);
  RunOnce(*kernel, *compiled, function, complete, memory, 1001);
}

void ExpectPatternAgrees(const Toolchain& toolchain, const std::string& pattern, const Function& function,
                         const Options& options) {
  InferType(function);
  bool known = false;
  for (const PatternTableEntry& entry : toolchain.PatternTable()) {
    if (entry.name != pattern) continue;
    known = true;
    if (!entry.predicate) break;
    const Result<void> answer = entry.predicate(function);
    ASSERT_TRUE(answer.ok()) << answer.reason().text;
    break;
  }
  ASSERT_TRUE(known) << "no pattern " << pattern;
  std::vector<Var> params;
  std::vector<Expr> args;
  for (const Var& param : function->params()) {
    params.push_back(MakeVar(param->name(), param->type_annotation()));
    args.push_back(params.back());
  }
  const Function composite = WithAttr(function, "Composite", pattern);
  InferType(composite);
  ExpectAgrees(toolchain, MakeFunction(params, MakeCall(composite, args)), options);
}

Function ExampleFunction(const OpDef& op, const OpExample& example, size_t constant_from) {
  std::vector<Var> params;
  std::vector<Expr> args;
  uint32_t seed = 77;
  for (const Type& type : example.args) {
    std::vector<Expr> parts;
    for (const Type& part : FlattenTensorTypes(type)) {
      const TensorTypeNode& tensor = *AsTensorType(part);
      if (args.size() >= constant_from) {
        parts.push_back(
            MakeConstant(RandomTensor(tensor.static_shape(), tensor.dtype(), example.low, example.high, seed++)));
        continue;
      }
      params.push_back(MakeVar(fmt::format("x{}", params.size()), part));
      parts.push_back(params.back());
    }
    args.push_back(AsTupleType(type) == nullptr ? parts.at(0) : MakeTuple(parts));
  }
  return MakeFunction(params, MakeCall(op.name, args, example.attrs));
}

void ExpectThreadsAgree(const Toolchain& toolchain, const Function& function) {
  InferType(function);
  const Result<CompiledPartition> compiled = toolchain.RelayToRuntime({function, PlainLayouts(1, 1), 1});
  ASSERT_TRUE(compiled.ok()) << compiled.reason().text;
  const Shape input_shape = AsTensorType(function->params()[0]->checked_type())->static_shape();
  const Shape output_shape = AsTensorType(function->body()->checked_type())->static_shape();
  const Tensor input = RandomTensor(input_shape, kFloat32, -1, 1, 5);
  const auto run = [&](int times) {
    Tensor output = Tensor::Zeros(output_shape, kFloat32);
    const Tensor workspace = Tensor::Zeros({static_cast<int64_t>(compiled->workspace_bytes)}, kUInt8);
    const auto kernel = GetKernelLoader(compiled->loader).Load({compiled->blob, compiled->constants, 1});
    kernel->Bind(std::vector<void*>{input.raw()}, std::vector<void*>{output.raw()}, workspace.raw());
    for (int i = 0; i < times; ++i) kernel->Run();
    return output;
  };
  const Tensor alone = run(1);
  std::vector<Tensor> results(4);
  std::vector<std::thread> threads;
  for (Tensor& result : results) threads.emplace_back([&] { result = run(200); });
  for (std::thread& thread : threads) thread.join();
  for (const Tensor& result : results) EXPECT_EQ(std::memcmp(result.raw(), alone.raw(), alone.size_bytes()), 0);
}

Tensor RandomTensor(const Shape& shape, DataType dtype, double low, double high, uint32_t seed) {
  Tensor tensor = Tensor::Empty(shape, dtype);
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> uniform(low, high);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const double value = uniform(generator);
    tensor.Set(i, dtype.is_bool()       ? (value > (low + high) / 2 ? 1.0 : 0.0)
                  : dtype.is_floating() ? value
                                        : std::round(value));
  }
  return tensor;
}

Constant RandomConstant(const Shape& shape, uint32_t seed, double low, double high) {
  return MakeConstant(RandomTensor(shape, kFloat32, low, high, seed));
}

Var Input(const std::string& name, const Shape& shape, DataType dtype) {
  return MakeVar(name, TensorType(shape, dtype));
}

}  // namespace collage::conformance
