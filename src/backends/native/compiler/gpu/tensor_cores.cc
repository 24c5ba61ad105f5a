// tensor_cores.cc: mma.sync, and blocks of sums that become rows by way of memory that a warp's threads share.
#include "backends/native/compiler/gpu/tensor_cores.h"

#include <algorithm>
#include <array>

#include "backends/cuda_driver/gpu_kernel.h"
#include "backends/native/compiler/contraction/tensor_functions.h"
#include "backends/native/compiler/stages/target_info.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"

namespace collage::native {
namespace {

using Values = std::vector<llvm::Value*>;

constexpr unsigned kSharedSpace = 3;  ///< NVPTX's number of the memory that a block's threads share
constexpr const char* kTile = "collage_tile";
constexpr unsigned kRows = 16;
/// Words from row to row of a tile in shared memory: threads that write two words each, in 8 rows, use all banks.
constexpr unsigned kPitch = 40;
constexpr unsigned kBlocks = 4, kColumns = 8, kSums = 4;

struct MultiplyFunction {
  const char* name;
  llvm::Intrinsic::ID instruction;
};

constexpr std::array kMultiplyFunctions{
    MultiplyFunction{kMultiplyTf32, llvm::Intrinsic::nvvm_mma_m16n8k8_row_col_tf32},
    MultiplyFunction{kMultiplyBFloat16, llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_bf16},
    MultiplyFunction{kMultiplyFloat16, llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_f32_f32},
    MultiplyFunction{kMultiplyBytes, llvm::Intrinsic::nvvm_mma_m16n8k32_row_col_u8_s8},
};

/// The instruction takes the words before the sums.
Values Multiply(llvm::IRBuilder<>& builder, llvm::Intrinsic::ID instruction, const Values& arguments) {
  Values operands(arguments.begin() + kSums, arguments.end());
  if (instruction == llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_f32_f32) {
    llvm::Type* pair = llvm::FixedVectorType::get(builder.getHalfTy(), 2);
    for (llvm::Value*& word : operands) word = builder.CreateBitCast(word, pair);
  }
  operands.insert(operands.end(), arguments.begin(), arguments.begin() + kSums);
  llvm::Value* sums = builder.CreateIntrinsic(instruction, operands);
  Values results;
  for (unsigned i = 0; i < kSums; ++i) results.push_back(builder.CreateExtractValue(sums, i));
  return results;
}

/// The memory for tiles of all warps of a block.
llvm::GlobalVariable& Tiles(llvm::IRBuilder<>& builder) {
  llvm::Module& module = *builder.GetInsertBlock()->getModule();
  if (llvm::GlobalVariable* known = module.getNamedGlobal(kTile)) return *known;
  auto* type = llvm::ArrayType::get(builder.getInt32Ty(), uint64_t{cuda_driver::kWarpsPerBlock} * kRows * kPitch);
  auto* tiles = new llvm::GlobalVariable(module, type, /*isConstant=*/false, llvm::GlobalValue::InternalLinkage,
                                         llvm::PoisonValue::get(type), kTile, /*InsertBefore=*/nullptr,
                                         llvm::GlobalValue::NotThreadLocal, kSharedSpace);  // the module owns it
  tiles->setAlignment(llvm::Align(16));
  return *tiles;
}

/// Each thread writes its sums, and reads its column of each row when all have done so.
Values Turn(llvm::IRBuilder<>& builder, const Values& sums) {
  llvm::Type* word = builder.getInt32Ty();
  llvm::Type* type = sums[0]->getType();
  const auto at = [&](llvm::Value* base, llvm::Value* index) { return builder.CreateGEP(word, base, index); };
  const auto synchronise = [&] {
    builder.CreateIntrinsic(llvm::Intrinsic::nvvm_bar_warp_sync, {builder.getInt32(-1)});
  };
  llvm::Value* thread = builder.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, {});
  llvm::Value* lane = builder.CreateAnd(thread, kWarpLanes - 1);
  llvm::Value* warp = builder.CreateLShr(thread, builder.getInt32(5));
  llvm::Value* tile = at(&Tiles(builder), builder.CreateMul(warp, builder.getInt32(kRows * kPitch)));
  llvm::Value* row = builder.CreateMul(builder.CreateLShr(lane, builder.getInt32(2)), builder.getInt32(kPitch));
  llvm::Value* column = builder.CreateShl(builder.CreateAnd(lane, 3), builder.getInt32(1));
  llvm::Value* own = at(tile, builder.CreateAdd(row, column));
  llvm::Type* two = llvm::FixedVectorType::get(type, 2);
  for (unsigned block = 0; block < kBlocks; ++block) {
    for (unsigned half = 0; half < 2; ++half) {
      llvm::Value* pair = llvm::PoisonValue::get(two);
      for (unsigned i = 0; i < 2; ++i) {
        pair = builder.CreateInsertElement(pair, sums[block * kSums + half * 2 + i], uint64_t{i});
      }
      const unsigned behind = half * kRows / 2 * kPitch + block * kColumns;
      builder.CreateAlignedStore(pair, at(own, builder.getInt32(behind)), llvm::Align(8));
    }
  }
  synchronise();
  Values rows;
  llvm::Value* first = at(tile, lane);
  for (unsigned r = 0; r < kRows; ++r) {
    rows.push_back(builder.CreateAlignedLoad(type, at(first, builder.getInt32(r * kPitch)), llvm::Align(4)));
  }
  // The next tile is written when all have read this one.
  synchronise();
  return rows;
}

}  // namespace

std::optional<Values> CallTensorFunction(llvm::IRBuilder<>& builder, std::string_view name, const Values& arguments) {
  if (name == kTurnFloats || name == kTurnIntegers) return Turn(builder, arguments);
  const auto* function = std::ranges::find(kMultiplyFunctions, name, &MultiplyFunction::name);
  if (function == kMultiplyFunctions.end()) return std::nullopt;
  return Multiply(builder, function->instruction, arguments);
}

}  // namespace collage::native
