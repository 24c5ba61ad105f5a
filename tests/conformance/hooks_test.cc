// hooks_test.cc: RFC 10's hooks: constants of equal partitions are exchanged, loops are compiled by whoever compiles
// loops.
#include <gtest/gtest.h>

#include <cmath>

#include "collage/ir/infer_type.h"
#include "collage/runtime/kernel.h"
#include "collage/target/library_functions.h"
#include "conformance/conformance.h"
#include "conformance/fused_calls.h"
#include "ir/eval/evaluate.h"
#include "unit/support/throws.h"

namespace collage {
namespace {

using namespace conformance;  // NOLINT: the calls' short names are the point

/// A dense layer as `toolchain` would be given it: as a composite where it takes patterns.
Function DenseFor(const Toolchain& toolchain, uint32_t seed) {
  const Var x = Input("x", {4, 24});
  const Function plain = MakeFunction({x}, MakeCall("nn.dense", {x, RandomConstant({32, 24}, seed)}));
  InferType(plain);
  std::string pattern;
  for (const PatternTableEntry& row : toolchain.PatternTable()) {
    if (row.name == toolchain.name() + ".dense") pattern = row.name;
  }
  if (pattern.empty()) return plain;
  const Function composite = WithAttr(plain, "Composite", pattern);
  InferType(composite);
  const Var y = Input("y", {4, 24});
  const Function function = MakeFunction({y}, MakeCall(composite, {y}));
  InferType(function);
  return function;
}

/// The largest difference from the reference evaluation of `function`, for one run on random values.
double ErrorOf(const CompiledPartition& compiled, const Function& function) {
  const Tensor input = RandomTensor({4, 24}, kFloat32, -1, 1, 9);
  const Tensor expected = Evaluate(function, std::vector<Tensor>{input}).at(0);
  const Tensor output = Tensor::Zeros(expected.shape(), kFloat32);
  const Tensor workspace = Tensor::Zeros({static_cast<int64_t>(compiled.workspace_bytes)}, kUInt8);
  const auto kernel = GetKernelLoader(compiled.loader).Load({compiled.blob, compiled.constants, 1});
  void* const from[] = {input.raw()};
  void* const to[] = {output.raw()};
  kernel->Bind(from, to, compiled.workspace_bytes == 0 ? nullptr : workspace.raw());
  kernel->Run();
  double error = 0;
  for (int64_t i = 0; i < output.num_elements(); ++i) error = std::max(error, std::abs(output.At(i) - expected.At(i)));
  return error;
}

TEST(HooksTest, ConstantsOfEqualPartitionsAreExchanged) {
  BuiltinToolchain("native");  // registers all
  int num_tried = 0;
  for (const Toolchain* toolchain : ToolchainRegistry::Global().All()) {
    if (!toolchain->Has(Hook::kUpdateConstants) || !toolchain->Probe().available) continue;
    SCOPED_TRACE(toolchain->name());
    const Function first = DenseFor(*toolchain, 1), second = DenseFor(*toolchain, 2);
    const PartitionRequest request{second, PlainLayouts(1, 1), 1};
    Result<CompiledPartition> compiled = toolchain->RelayToRuntime({first, PlainLayouts(1, 1), 1});
    ASSERT_TRUE(compiled.ok()) << compiled.reason().text;
    EXPECT_LT(ErrorOf(*compiled, first), 1e-4);
    EXPECT_GT(ErrorOf(*compiled, second), 1e-2) << "the weights are the same: nothing is tested";
    const Result<std::vector<Tensor>> constants = toolchain->UpdateConstants(request, *compiled);
    ASSERT_TRUE(constants.ok()) << constants.reason().text;
    compiled->constants = *constants;
    EXPECT_LT(ErrorOf(*compiled, second), 1e-4);
    ++num_tried;
  }
  EXPECT_GT(num_tried, 0);
}

TEST(HooksTest, WhoDeclaresRelayToTIRWritesLoops) {
  BuiltinToolchain("native");
  for (const Toolchain* toolchain : ToolchainRegistry::Global().All()) {
    if (!toolchain->Probe().available) continue;
    SCOPED_TRACE(toolchain->name());
    EXPECT_TRUE(toolchain->Has(Hook::kRelayToTIR) || toolchain->Has(Hook::kRelayToRuntime));
    const PartitionRequest request{DenseFor(*toolchain, 1), PlainLayouts(1, 1), 1};
    const Result<LoweredPartition> lowered = toolchain->RelayToTIR(request);
    ASSERT_EQ(lowered.ok(), toolchain->Has(Hook::kRelayToTIR));
    if (!lowered) continue;
    EXPECT_NE(lowered->mlir.find("@collage_kernel"), std::string::npos);
    const Result<CompiledPartition> compiled = toolchain->TIRToRuntime(*lowered);
    ASSERT_TRUE(compiled.ok()) << compiled.reason().text;
    EXPECT_LT(ErrorOf(*compiled, request.function), 1e-4);
  }
}

/// A kernel that computes each of 96 numbers, %x, by the MLIR expression `of_x`.
std::string LoopOf96(const std::string& of_x) {
  return R"(
func.func @collage_kernel(%buffers: !llvm.ptr) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c96 = arith.constant 96 : index
  %second = llvm.getelementptr %buffers[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %from = llvm.load %buffers : !llvm.ptr -> !llvm.ptr
  %to = llvm.load %second : !llvm.ptr -> !llvm.ptr
  scf.for %i = %c0 to %c96 step %c1 {
    %at = arith.index_cast %i : index to i64
    %read = llvm.getelementptr %from[%at] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %write = llvm.getelementptr %to[%at] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %x = llvm.load %read : !llvm.ptr -> f32
    %y = )" +
         of_x + R"(
    llvm.store %y, %write : f32, !llvm.ptr
  }
  return
})";
}

/// Writes loops that double 96 numbers, and nothing else: no loader, no code generator.
class Doubler : public Toolchain {
 public:
  std::string name() const override { return "doubler"; }
  std::string description() const override { return "for the test"; }
  Availability Probe() const override { return {true, "1", "", ""}; }
  int priority() const override { return 9; }
  std::vector<Hook> Hooks() const override { return {Hook::kRelayToTIR}; }
  Result<LoweredPartition> RelayToTIR(const PartitionRequest&) const override {
    return LoweredPartition{LoopOf96("arith.addf %x, %x : f32"), {}, 0};
  }
};

TEST(HooksTest, LoopsAloneMakeAToolchain) {
  if (!BuiltinToolchain("native").Probe().available) GTEST_SKIP() << "nobody compiles loops here";
  const Var x = Input("x", {4, 24});
  const Function function = MakeFunction({x}, Plus(x, x));
  InferType(function);
  const Result<CompiledPartition> compiled = Doubler().RelayToRuntime({function, PlainLayouts(1, 1), 1});
  ASSERT_TRUE(compiled.ok()) << compiled.reason().text;
  EXPECT_EQ(ErrorOf(*compiled, function), 0);
}

/// Loops that call a C library (RFC 10's call_extern): 96 cosines.
Result<CompiledPartition> CompileCosines(const LibraryFunction& cosine) {
  const LoweredPartition lowered{
      DeclareFunctions(std::vector{cosine}) + LoopOf96("func.call @cosf(%x) : (f32) -> f32"), {}, 0};
  return Doubler().TIRToRuntime(lowered);
}

TEST(HooksTest, LoopsCallFunctionsOfCLibraries) {
  if (!BuiltinToolchain("native").Probe().available) GTEST_SKIP() << "nobody compiles loops here";
  const Var x = Input("x", {4, 24});
  const Function function = MakeFunction({x}, MakeCall("cos", {x}));
  InferType(function);
  const Result<CompiledPartition> compiled = CompileCosines({"libm.so.6", "cosf", "(f32) -> f32", "install libm"});
  ASSERT_TRUE(compiled.ok()) << compiled.reason().text;
  EXPECT_LT(ErrorOf(*compiled, function), 1e-6);
  const std::string code(reinterpret_cast<const char*>(compiled->blob.data()), compiled->blob.size());
  EXPECT_NE(code.find("file:libm.so.6|cosf|install libm"), std::string::npos);

  const Result<CompiledPartition> other = CompileCosines({"libnobodys.so", "cosf", "(f32) -> f32", "install nobodys"});
  ASSERT_TRUE(other.ok()) << "the library is looked for when the kernel is loaded: " << other.reason().text;
  ExpectError([&] { ErrorOf(*other, function); }, ErrorCategory::kUnavailable,
              "a kernel calls 'cosf' of 'libnobodys.so': cannot open library 'libnobodys.so'");
}

}  // namespace
}  // namespace collage
