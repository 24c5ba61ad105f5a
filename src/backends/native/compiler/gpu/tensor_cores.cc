// tensor_cores.cc: mma.sync, cp.async, and memory that a warp's threads share, behind that of the warps before it.
#include "backends/native/compiler/gpu/tensor_cores.h"

#include <algorithm>
#include <array>

#include "backends/native/compiler/contraction/tensor_functions.h"
#include "backends/native/compiler/stages/target_info.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"

namespace collage::native {
namespace {

constexpr unsigned kGlobalSpace = 1;
constexpr const char* kSharedMemory = "collage_shared";
constexpr unsigned kRows = 16;
/// Words from row to row of a tile: threads that write two words each, in 8 rows, use all banks.
constexpr unsigned kPitch = 40;
constexpr unsigned kBlocks = 4, kColumns = 8, kSums = 4;
constexpr unsigned kPlaceWords = 4;
static_assert(kTileBytes == kRows * kPitch * 4);

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

/// The instruction takes the words before the sums.
std::vector<llvm::Value*> Multiply(llvm::IRBuilder<>& builder, llvm::Intrinsic::ID instruction,
                                   const std::vector<llvm::Value*>& arguments) {
  std::vector<llvm::Value*> operands(arguments.begin() + kSums, arguments.end());
  if (instruction == llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_f32_f32) {
    llvm::Type* pair = llvm::FixedVectorType::get(builder.getHalfTy(), 2);
    for (llvm::Value*& word : operands) word = builder.CreateBitCast(word, pair);
  }
  operands.insert(operands.end(), arguments.begin(), arguments.begin() + kSums);
  llvm::Value* sums = builder.CreateIntrinsic(instruction, operands);
  std::vector<llvm::Value*> results;
  for (unsigned i = 0; i < kSums; ++i) results.push_back(builder.CreateExtractValue(sums, i));
  return results;
}

/// All memory that the threads of a block share. How much there is, a launch says.
llvm::GlobalVariable& SharedMemory(llvm::Module& module) {
  if (llvm::GlobalVariable* known = module.getNamedGlobal(kSharedMemory)) return *known;
  auto* type = llvm::ArrayType::get(llvm::Type::getInt32Ty(module.getContext()), 0);
  auto* memory = new llvm::GlobalVariable(module, type, /*isConstant=*/false, llvm::GlobalValue::ExternalLinkage,
                                          /*Initializer=*/nullptr, kSharedMemory, /*InsertBefore=*/nullptr,
                                          llvm::GlobalValue::NotThreadLocal, kSharedSpace);  // the module owns it
  memory->setAlignment(llvm::Align(16));
  return *memory;
}

llvm::Value* WordAt(llvm::IRBuilder<>& builder, llvm::Value* base, llvm::Value* index) {
  return builder.CreateGEP(builder.getInt32Ty(), base, index);
}

}  // namespace

TensorCores::TensorCores(llvm::Function& function) : function_(function) {
  for (const llvm::Instruction& instruction : llvm::instructions(function)) {
    const auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
    const llvm::Function* callee = call == nullptr ? nullptr : call->getCalledFunction();
    if (callee == nullptr) continue;
    int64_t bytes = 0;
    if (callee->getName() == kWriteFloats || callee->getName() == kWriteIntegers) bytes = kTileBytes;
    if (callee->getName() == kCopyAhead) {
      const auto* places = llvm::cast<llvm::ConstantInt>(call->getArgOperand(call->arg_size() - 1));
      bytes = kTileBytes + places->getSExtValue() * kPlaceBytes;
    }
    shared_bytes_ = std::max(shared_bytes_, bytes);
  }
}

llvm::Value* TensorCores::Shared() {
  if (shared_ != nullptr) return shared_;
  llvm::IRBuilder<> builder(&*function_.getEntryBlock().getFirstInsertionPt());
  llvm::Value* thread = builder.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, {});
  lane_ = builder.CreateAnd(thread, kWarpLanes - 1);
  llvm::Value* warp = builder.CreateUDiv(thread, builder.getInt32(kWarpLanes));
  llvm::Value* before = builder.CreateMul(warp, builder.getInt32(static_cast<uint32_t>(shared_bytes_ / 4)));
  shared_ = WordAt(builder, &SharedMemory(*function_.getParent()), before);
  return shared_;
}

llvm::Value* TensorCores::Place(llvm::IRBuilder<>& builder, llvm::Value* number) {
  llvm::Value* places = WordAt(builder, Shared(), builder.getInt32(kTileBytes / 4));
  llvm::Value* own = WordAt(builder, places, builder.CreateMul(lane_, builder.getInt32(kPlaceWords)));
  llvm::Value* narrow = builder.CreateTrunc(number, builder.getInt32Ty());
  return WordAt(builder, own, builder.CreateMul(narrow, builder.getInt32(kPlaceBytes / 4)));
}

void TensorCores::WriteTile(llvm::IRBuilder<>& builder, const Values& sums) {
  llvm::Value* tile = Shared();
  llvm::Value* row = builder.CreateMul(builder.CreateLShr(lane_, builder.getInt32(2)), builder.getInt32(kPitch));
  llvm::Value* column = builder.CreateShl(builder.CreateAnd(lane_, 3), builder.getInt32(1));
  llvm::Value* own = WordAt(builder, tile, builder.CreateAdd(row, column));
  llvm::Type* two = llvm::FixedVectorType::get(sums[0]->getType(), 2);
  for (unsigned block = 0; block < kBlocks; ++block) {
    for (unsigned half = 0; half < 2; ++half) {
      llvm::Value* pair = llvm::PoisonValue::get(two);
      for (unsigned i = 0; i < 2; ++i) {
        pair = builder.CreateInsertElement(pair, sums[block * kSums + half * 2 + i], uint64_t{i});
      }
      const unsigned behind = half * kRows / 2 * kPitch + block * kColumns;
      builder.CreateAlignedStore(pair, WordAt(builder, own, builder.getInt32(behind)), llvm::Align(8));
    }
  }
}

TensorCores::Values TensorCores::ReadTile(llvm::IRBuilder<>& builder, llvm::Type* type) {
  Values rows;
  llvm::Value* tile = Shared();
  llvm::Value* first = WordAt(builder, tile, lane_);
  for (unsigned r = 0; r < kRows; ++r) {
    llvm::Value* place = WordAt(builder, first, builder.getInt32(r * kPitch));
    rows.push_back(builder.CreateAlignedLoad(type, place, llvm::Align(4)));
  }
  return rows;
}

std::optional<std::vector<llvm::Value*>> TensorCores::Call(llvm::IRBuilder<>& builder, std::string_view name,
                                                           const std::vector<llvm::Value*>& arguments) {
  const auto* function = std::ranges::find(kMultiplyFunctions, name, &MultiplyFunction::name);
  if (function != kMultiplyFunctions.end()) return Multiply(builder, function->instruction, arguments);
  if (name == kReadFloats) return ReadTile(builder, builder.getFloatTy());
  if (name == kReadIntegers) return ReadTile(builder, builder.getInt32Ty());
  if (name == kWriteFloats || name == kWriteIntegers) {
    WriteTile(builder, arguments);
  } else if (name == kSynchronise) {
    builder.CreateIntrinsic(llvm::Intrinsic::nvvm_bar_warp_sync, {builder.getInt32(-1)});
  } else if (name == kCopyAhead) {
    llvm::Value* from = builder.CreateAddrSpaceCast(arguments[1], builder.getPtrTy(kGlobalSpace));
    builder.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_ca_shared_global_16_s,
                            {Place(builder, arguments[0]), from, arguments[2]});
  } else if (name == kEndCopies) {
    builder.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_commit_group, {});
  } else if (name == kAwaitCopies) {
    builder.CreateIntrinsic(llvm::Intrinsic::nvvm_cp_async_wait_group,
                            {builder.CreateTrunc(arguments[0], builder.getInt32Ty())});
  } else if (name == kCopied) {
    llvm::Type* four = llvm::FixedVectorType::get(builder.getInt32Ty(), kPlaceWords);
    llvm::Value* all = builder.CreateAlignedLoad(four, Place(builder, arguments[0]), llvm::Align(16));
    Values words;
    for (unsigned i = 0; i < kPlaceWords; ++i) words.push_back(builder.CreateExtractElement(all, uint64_t{i}));
    return words;
  } else {
    return std::nullopt;
  }
  return Values();
}

}  // namespace collage::native
