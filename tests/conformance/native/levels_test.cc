// native_levels_test.cc: code for stated processors: it computes the same, says what it needs, and is refused where
// that is missing.
#include <elf.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "collage/ir/infer_type.h"
#include "collage/runtime/kernel.h"
#include "collage/support/error.h"
#include "conformance/conformance.h"
#include "support/machine.h"
#include "target/toolchain_configuration.h"

namespace collage {
namespace {

using conformance::ExpectAgrees;
using conformance::Input;
using conformance::RandomConstant;
using testing::HasSubstr;

std::unique_ptr<const Toolchain> NativeFor(const std::string& options) {
  conformance::BuiltinToolchain("native");
  return ToolchainConfiguration::Parse("native " + options, ToolchainRegistry::Global()).Make();
}

/// A product, a convolution with an epilogue, a normalisation and conversions.
std::vector<Function> Functions() {
  const Var x = Input("x", {13, 33});
  const Expr dense = MakeCall("nn.dense", {x, RandomConstant({47, 33}, 1)});
  const Var image = Input("image", {1, 8, 9, 10});
  const Expr conv = MakeCall("nn.conv2d", {image, RandomConstant({21, 8, 3, 3}, 2)});
  const Var brain = Input("brain", {3, 37}, kBFloat16);
  std::vector<Function> functions{MakeFunction({x}, MakeCall("tanh", {dense})),
                                  MakeFunction({image}, MakeCall("nn.relu", {conv})),
                                  MakeFunction({x}, MakeCall("nn.softmax", {x})),
                                  MakeFunction({brain}, MakeCall("cast", {brain}, {{"dtype", "float16"}}))};
  for (const Function& function : functions) InferType(function);
  return functions;
}

Result<CompiledPartition> CompileFor(const std::string& options) {
  const Function function = Functions()[0];
  return NativeFor(options)->RelayToRuntime({function, PlainLayouts(1, 1), 1});
}

std::string WhyNotLoaded(const CompiledPartition& compiled) {
  try {
    GetKernelLoader(compiled.loader).Load({compiled.blob, compiled.constants, 1});
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(NativeLevelsTest, CodeForEveryLevelAgrees) {
  for (const char* options : {"-mcpu=x86-64", "-mcpu=x86-64-v2", "-mcpu=x86-64-v3", "-mcpu=x86-64-v2 -mattr=+avx2,+fma",
                              "-mcpu=skylake-avx512", "-mattr=-avx512f", "-mtriple=x86_64-unknown-linux-gnu"}) {
    SCOPED_TRACE(options);
    const std::unique_ptr<const Toolchain> native = NativeFor(options);
    const bool is_for_avx512 = std::string(options).ends_with("avx512");
    if (is_for_avx512 && !HasInstructionSet("avx512vl")) continue;
    for (const Function& function : Functions()) ExpectAgrees(*native, function, {.tolerance = 1e-2});
  }
}

TEST(NativeLevelsTest, CodeSaysWhatItNeeds) {
  const auto says = [](const CompiledPartition& compiled, const std::string& word) {
    const std::string all(reinterpret_cast<const char*>(compiled.blob.data()), compiled.blob.size());
    return all.find(word) != std::string::npos;
  };
  const Result<CompiledPartition> v2 = CompileFor("-mcpu=x86-64-v2"), v3 = CompileFor("-mcpu=x86-64-v3");
  ASSERT_TRUE(v2.ok() && v3.ok());
  EXPECT_TRUE(says(*v2, "sse4.2"));
  EXPECT_FALSE(says(*v2, "avx2"));
  EXPECT_TRUE(says(*v3, "avx2"));
  EXPECT_FALSE(says(*v3, "avx512f"));
}

TEST(NativeLevelsTest, WhatTheProcessorLacksIsRefused) {
  Result<CompiledPartition> compiled = CompileFor("-mcpu=x86-64-v3");
  ASSERT_TRUE(compiled.ok()) << compiled.reason().text;
  EXPECT_EQ(WhyNotLoaded(*compiled), "");
  // No processor has this one.
  const std::string known = "movbe", forged = "m0vb3";
  const auto* needle = reinterpret_cast<const std::byte*>(known.data());
  const auto at = std::search(compiled->blob.begin(), compiled->blob.end(), needle, needle + known.size());
  ASSERT_NE(at, compiled->blob.end());
  std::memcpy(&*at, forged.data(), forged.size());
  EXPECT_THAT(WhyNotLoaded(*compiled), HasSubstr("a kernel needs m0vb3, which this processor ("));
}

TEST(NativeLevelsTest, CodeForAnotherMachineIsMadeAndRefusedHere) {
  const Result<CompiledPartition> compiled = CompileFor("-mtriple=aarch64-linux-gnu");
  ASSERT_TRUE(compiled.ok()) << compiled.reason().text;
  Elf64_Ehdr header;
  std::memcpy(&header, compiled->blob.data(), sizeof header);
  EXPECT_EQ(header.e_machine, EM_AARCH64);
  if (ThisMachine().isa == "aarch64") return;
  EXPECT_THAT(WhyNotLoaded(*compiled), HasSubstr("a kernel is code for aarch64; this machine is x86-64"));
}

TEST(NativeLevelsTest, WhatLlvmDoesNotKnowIsRefused) {
  const auto reason = [](const std::string& options) {
    const Result<CompiledPartition> compiled = CompileFor(options);
    return compiled.ok() ? std::string("compiled") : compiled.reason().text;
  };
  EXPECT_EQ(reason("-mcpu=x86-64-v9"), "LLVM knows no processor 'x86-64-v9' of x86_64");
  EXPECT_EQ(reason("-mattr=+avx3"), "LLVM knows no instruction set 'avx3' of x86_64");
  EXPECT_THAT(reason("-mtriple=wasm32"),
              HasSubstr("for x86-64 and AArch64 with ELF and for nvptx64, not for 'wasm32'"));
  EXPECT_THROW(NativeFor("-mattr=avx2"), Error);
}

}  // namespace
}  // namespace collage
