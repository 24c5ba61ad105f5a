// warpgroups.cc: assembly around wgmma. Registers of a function's operands are the instructions' until they are waited
// for, which nobody but the assembly knows: all of it is one piece.
#include "backends/native/compiler/gpu/warpgroups.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "backends/native/compiler/contraction/tensor_functions.h"
#include "backends/native/compiler/gpu/tensor_cores.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Module.h"

namespace collage::native {
namespace {

using cuda_driver::EmulatedProduct;

/// `types`: of the instruction, behind its size. `factors`: operands behind those that all instructions have.
struct GroupKind {
  std::string_view prefix;
  EmulatedProduct product;
  const char* types;
  const char* factors;
};
constexpr std::array kGroupKinds{
    GroupKind{kGroupTf32, EmulatedProduct::kTf32, "k8.f32.tf32.tf32", ", 1, 1"},
    GroupKind{kGroupBFloat16, EmulatedProduct::kBFloat16, "k16.f32.bf16.bf16", ", 1, 1, 0"},
    GroupKind{kGroupFloat16, EmulatedProduct::kFloat16, "k16.f32.f16.f16", ", 1, 1, 0"},
    GroupKind{kGroupBytes, EmulatedProduct::kBytes, "k32.s32.u8.s8", ""},
};
constexpr unsigned kWordsOfRows = 4;  ///< a thread's, for one instruction

const GroupKind* KindOf(std::string_view name) {
  const auto* kind =
      std::ranges::find_if(kGroupKinds, [&](const GroupKind& one) { return name.starts_with(one.prefix); });
  return kind == kGroupKinds.end() ? nullptr : kind;
}

/// "$first, …" for `count` operands.
std::string Operands(unsigned first, unsigned count) {
  std::string list;
  for (unsigned i = 0; i < count; ++i) list += fmt::format("{}${}", i == 0 ? "" : ", ", first + i);
  return list;
}

/// Describes a matrix in shared memory (PTX ISA, "Matrix Descriptor Format"): columns of `depth` words one behind the
/// other, eights of them in a pattern that repeats, its pieces of 16 bytes exchanged as block_tile.h says.
llvm::Value* Descriptor(llvm::IRBuilder<>& builder, llvm::Value* address, unsigned depth) {
  const uint64_t pattern_bytes = uint64_t{8} * depth * 4;
  const uint64_t swizzle = depth == 16 ? 2 : 1;  // of 64 bytes, of 128 bytes
  const uint64_t fixed = swizzle << 62 | pattern_bytes >> 4 << 32 | uint64_t{1} << 16;
  llvm::Type* number = builder.getInt64Ty();
  llvm::Value* begin = builder.CreateAnd(builder.CreatePtrToInt(address, number), builder.getInt64(0x3FFFF));
  return builder.CreateOr(builder.CreateLShr(begin, 4), builder.getInt64(fixed));
}

void Define(llvm::Function& function, const GroupKind& kind, const GroupFunction& group) {
  constexpr uint64_t kGroupBytesInSixteens = 2;  // 8 words of a column
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(function.getContext(), "", &function));
  const unsigned steps = group.words / kWordsOfRows;
  const unsigned first_word = 2 * group.sums, first_descriptor = first_word + group.words;
  std::string text = "{ .reg .pred p; setp.eq.u32 p, 0, 0; wgmma.fence.sync.aligned; ";
  std::vector<llvm::Value*> arguments;
  for (llvm::Argument& argument : function.args()) arguments.push_back(&argument);
  llvm::Value* descriptor = Descriptor(builder, arguments.back(), group.depth());
  arguments.pop_back();
  std::string constraints, tied;
  for (unsigned i = 0; i < group.sums; ++i) {
    constraints += kind.product == EmulatedProduct::kBytes ? "=r," : "=f,";
    tied += fmt::format("{},", i);
  }
  constraints += tied;
  for (unsigned i = 0; i < group.words; ++i) constraints += "r,";
  for (unsigned step = 0; step < steps; ++step) {
    text += fmt::format("wgmma.mma_async.sync.aligned.m64n{}{} {{{}}}, {{{}}}, ${}, p{}; ", group.columns, kind.types,
                        Operands(0, group.sums), Operands(first_word + step * kWordsOfRows, kWordsOfRows),
                        first_descriptor + step, kind.factors);
    constraints += step + 1 == steps ? "l" : "l,";
    arguments.push_back(builder.CreateAdd(descriptor, builder.getInt64(step * kGroupBytesInSixteens)));
  }
  text += "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; }";
  std::vector<llvm::Type*> types;
  for (const llvm::Value* argument : arguments) types.push_back(argument->getType());
  auto* type = llvm::FunctionType::get(function.getReturnType(), types, /*isVarArg=*/false);
  llvm::CallInst* call = builder.CreateCall(
      llvm::InlineAsm::get(type, text, constraints + ",~{memory}", /*hasSideEffects=*/true), arguments);
  call->addFnAttr(llvm::Attribute::Convergent);
  builder.CreateRet(call);
}

}  // namespace

bool IsGroupFunction(std::string_view name) { return KindOf(name) != nullptr; }

std::optional<GroupFunction> GroupFunctionOf(const llvm::Function& function) {
  const GroupKind* kind = KindOf({function.getName().data(), function.getName().size()});
  const auto* sums = llvm::dyn_cast<llvm::StructType>(function.getReturnType());
  if (kind == nullptr || sums == nullptr) return std::nullopt;
  GroupFunction group{kind->product};
  group.sums = sums->getNumElements();
  group.columns = 2 * group.sums;
  group.words = static_cast<unsigned>(function.arg_size()) - group.sums - 1;
  return group;
}

void DefineGroupFunctions(llvm::Module& module) {
  for (llvm::Function& function : module) {
    if (!function.isDeclaration() || function.use_empty()) continue;
    if (function.getName() == kProxyFence) {
      llvm::IRBuilder<> builder(llvm::BasicBlock::Create(function.getContext(), "", &function));
      auto* type = llvm::FunctionType::get(builder.getVoidTy(), /*isVarArg=*/false);
      builder.CreateCall(
          llvm::InlineAsm::get(type, "fence.proxy.async.shared::cta;", "~{memory}", /*hasSideEffects=*/true));
      builder.CreateRetVoid();
    } else if (const std::optional<GroupFunction> group = GroupFunctionOf(function)) {
      Define(function, *KindOf({function.getName().data(), function.getName().size()}), *group);
    } else {
      continue;
    }
    function.setLinkage(llvm::GlobalValue::InternalLinkage);
    function.addFnAttr(llvm::Attribute::AlwaysInline);
  }
}

}  // namespace collage::native
