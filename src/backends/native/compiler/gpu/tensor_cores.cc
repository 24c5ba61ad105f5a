// tensor_cores.cc: mma.sync, ldmatrix, cp.async, barriers, and shared memory: of a block, or of a warp, behind that of
// the warps before it.
#include "backends/native/compiler/gpu/tensor_cores.h"

#include <algorithm>
#include <array>
#include <string>

#include "backends/native/compiler/contraction/tensor_functions.h"
#include "backends/native/compiler/gpu/warpgroups.h"
#include "backends/native/compiler/stages/target_info.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"

namespace collage::native {
namespace {

constexpr unsigned kGlobalSpace = 1;
constexpr const char* kSharedMemory = "collage_shared";
constexpr unsigned kSums = 4;
constexpr unsigned kMatrices = 4;
/// Patterns of matrices in shared memory repeat after so many bytes.
constexpr uint64_t kSharedAlignment = 1024;

struct MultiplyFunction {
  std::string_view name;
  llvm::Intrinsic::ID instruction;
};

constexpr std::array kMultiplyFunctions{
    MultiplyFunction{kMultiplyTf32, llvm::Intrinsic::nvvm_mma_m16n8k8_row_col_tf32},
    MultiplyFunction{kMultiplyBFloat16, llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_bf16},
    MultiplyFunction{kMultiplyFloat16, llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_f32_f32},
    MultiplyFunction{kMultiplyBytes, llvm::Intrinsic::nvvm_mma_m16n8k32_row_col_u8_s8},
};

std::vector<llvm::Value*> Elements(llvm::IRBuilder<>& builder, llvm::Value* several, unsigned count) {
  std::vector<llvm::Value*> elements;
  for (unsigned i = 0; i < count; ++i) elements.push_back(builder.CreateExtractValue(several, i));
  return elements;
}

/// The instruction takes the words before the sums.
std::vector<llvm::Value*> Multiply(llvm::IRBuilder<>& builder, llvm::Intrinsic::ID instruction,
                                   const std::vector<llvm::Value*>& arguments) {
  std::vector<llvm::Value*> operands(arguments.begin() + kSums, arguments.end());
  if (instruction == llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_f32_f32) {
    llvm::Type* pair = llvm::FixedVectorType::get(builder.getHalfTy(), 2);
    for (llvm::Value*& word : operands) word = builder.CreateBitCast(word, pair);
  }
  operands.insert(operands.end(), arguments.begin(), arguments.begin() + kSums);
  return Elements(builder, builder.CreateIntrinsic(instruction, operands), kSums);
}

/// All memory that the threads of a block share. How much there is, a launch says.
llvm::GlobalVariable& SharedMemory(llvm::Module& module) {
  if (llvm::GlobalVariable* known = module.getNamedGlobal(kSharedMemory)) return *known;
  auto* type = llvm::ArrayType::get(llvm::Type::getInt32Ty(module.getContext()), 0);
  auto* memory = new llvm::GlobalVariable(module, type, /*isConstant=*/false, llvm::GlobalValue::ExternalLinkage,
                                          /*Initializer=*/nullptr, kSharedMemory, /*InsertBefore=*/nullptr,
                                          llvm::GlobalValue::NotThreadLocal, kSharedSpace);  // the module owns it
  memory->setAlignment(llvm::Align(kSharedAlignment));
  return *memory;
}

uint64_t ConstantOf(const llvm::CallInst& call, unsigned argument) {
  return llvm::cast<llvm::ConstantInt>(call.getArgOperand(argument))->getZExtValue();
}

}  // namespace

TensorCores::TensorCores(llvm::Function& function) : function_(function) {
  for (const llvm::Instruction& instruction : llvm::instructions(function)) {
    const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
    const llvm::Function* callee = call == nullptr ? nullptr : call->getCalledFunction();
    if (callee == nullptr) continue;
    if (callee->getName() == kWarpOfBlock) {
      block_warps_ = static_cast<int64_t>(ConstantOf(*call, 0));
      shared_bytes_ = static_cast<int64_t>(ConstantOf(*call, 1));
      return;
    }
    if (callee->getName() == kWriteFloats || callee->getName() == kWriteIntegers) shared_bytes_ = kTileBytes;
  }
}

llvm::Value* TensorCores::Warp(llvm::IRBuilder<>& builder) {
  llvm::Value* thread = builder.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, {});
  llvm::Value* warp = builder.CreateUDiv(thread, builder.getInt32(kWarpLanes));
  return builder.CreateIntrinsic(llvm::Intrinsic::nvvm_shfl_sync_idx_i32,
                                 {builder.getInt32(-1), warp, builder.getInt32(0), builder.getInt32(kWarpLanes - 1)});
}

llvm::Value* TensorCores::Shared() {
  if (shared_ != nullptr) return shared_;
  shared_ = &SharedMemory(*function_.getParent());
  if (block_warps_ > 0) return shared_;
  llvm::IRBuilder<> builder(&*function_.getEntryBlock().getFirstInsertionPt());
  llvm::Value* before = builder.CreateMul(Warp(builder), builder.getInt32(static_cast<uint32_t>(shared_bytes_)));
  shared_ = builder.CreateGEP(builder.getInt8Ty(), shared_, before);
  return shared_;
}

llvm::Value* TensorCores::Place(llvm::IRBuilder<>& builder, const Values& arguments) {
  llvm::Type* byte = builder.getInt8Ty();
  return builder.CreateGEP(byte, builder.CreateGEP(byte, Shared(), arguments[0]), arguments[1]);
}

TensorCores::Values TensorCores::LoadMatrices(llvm::IRBuilder<>& builder, llvm::Value* place) {
  llvm::Value* words =
      builder.CreateIntrinsic(llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_b16, {place->getType()}, {place});
  return Elements(builder, words, kMatrices);
}

TensorCores::Values TensorCores::MultiplyGroup(llvm::IRBuilder<>& builder, std::string_view name, Values arguments) {
  arguments.back() = builder.CreateGEP(builder.getInt8Ty(), Shared(), arguments.back());
  std::vector<llvm::Type*> types;
  for (const llvm::Value* argument : arguments) types.push_back(argument->getType());
  const auto columns = static_cast<unsigned>(std::stoul(std::string(name.substr(name.rfind('_') + 1))));
  const unsigned count = columns / 2;
  llvm::Type* sums = llvm::StructType::get(builder.getContext(), std::vector<llvm::Type*>(count, types[0]));
  auto* type = llvm::FunctionType::get(sums, types, /*isVarArg=*/false);
  // The loops' own function of this name, of vectors, goes when nothing calls it any more.
  const std::string own = std::string(name) + "x" + std::to_string((types.size() - count - 1) * 2);
  llvm::FunctionCallee callee = function_.getParent()->getOrInsertFunction(own, type);
  llvm::cast<llvm::Function>(callee.getCallee())->addFnAttr(llvm::Attribute::Convergent);
  return Elements(builder, builder.CreateCall(callee, arguments), count);
}

std::optional<std::vector<llvm::Value*>> TensorCores::Call(llvm::IRBuilder<>& builder, std::string_view name,
                                                           const std::vector<llvm::Value*>& arguments) {
  const auto* function = std::ranges::find(kMultiplyFunctions, name, &MultiplyFunction::name);
  if (function != kMultiplyFunctions.end()) return Multiply(builder, function->instruction, arguments);
  if (IsGroupFunction(name)) return MultiplyGroup(builder, name, arguments);
  const auto read = [&](llvm::Type* type) {
    return Values{builder.CreateAlignedLoad(type, Place(builder, arguments), llvm::Align(4))};
  };
  if (name == kWarpOfBlock) return Values{builder.CreateZExt(Warp(builder), builder.getInt64Ty())};
  if (name == kReadFloats) return read(builder.getFloatTy());
  if (name == kReadIntegers) return read(builder.getInt32Ty());
  if (name == kLoadMatrices) return LoadMatrices(builder, Place(builder, arguments));
  if (name == kWriteFloats || name == kWriteIntegers) {
    llvm::Value* pair = llvm::PoisonValue::get(llvm::FixedVectorType::get(arguments[2]->getType(), 2));
    for (unsigned i = 0; i < 2; ++i) pair = builder.CreateInsertElement(pair, arguments[2 + i], uint64_t{i});
    builder.CreateAlignedStore(pair, Place(builder, arguments), llvm::Align(8));
  } else if (name == kSynchronise) {
    builder.CreateIntrinsic(llvm::Intrinsic::nvvm_bar_warp_sync, {builder.getInt32(-1)});
  } else if (name == kSynchroniseBlock) {
    builder.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier_cta_sync_aligned_all, {builder.getInt32(0)});
  } else if (name == kCopyQuad || name == kCopyWord) {
    // Words for several blocks stay in the second cache, which all of them share.
    const auto instruction = name == kCopyQuad ? llvm::Intrinsic::nvvm_cp_async_cg_shared_global_16_s
                                               : llvm::Intrinsic::nvvm_cp_async_ca_shared_global_4_s;
    llvm::Value* from = builder.CreateAddrSpaceCast(arguments[2], builder.getPtrTy(kGlobalSpace));
    builder.CreateIntrinsic(instruction, {Place(builder, arguments), from, arguments[3]});
  } else if (name == kFenceCopies) {
    auto* type = llvm::FunctionType::get(builder.getVoidTy(), /*isVarArg=*/false);
    builder.CreateCall(function_.getParent()->getOrInsertFunction(kProxyFence, type));
  } else if (name == kEndCopies) {
    builder.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_commit_group, {});
  } else if (name == kAwaitCopies) {
    builder.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_wait_group,
                            {builder.CreateTrunc(arguments[0], builder.getInt32Ty())});
  } else {
    return std::nullopt;
  }
  return Values();
}

}  // namespace collage::native
