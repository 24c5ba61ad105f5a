// warps.cc: one thread for each lane. Control flow depends on single values alone, which all threads compute alike:
// they stay together, and what moves elements between lanes is a shuffle of registers.
#include "backends/native/compiler/gpu/warps.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "backends/native/compiler/gpu/buffer_uses.h"
#include "backends/native/compiler/gpu/device_math.h"
#include "backends/native/compiler/gpu/lane_constants.h"
#include "backends/native/compiler/gpu/tensor_cores.h"
#include "backends/native/compiler/stages/target_info.h"
#include "collage/support/error.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/PostOrderIterator.h"
#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"

namespace collage::native {
namespace {

constexpr unsigned kLanes = kWarpLanes;
constexpr const char* kScratch = "collage_scratch";
constexpr int64_t kAlignment = 64;

bool IsWide(const llvm::Type* type) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  return vector != nullptr && vector->getNumElements() == kLanes;
}

bool IsWide(const llvm::Value* value) { return IsWide(value->getType()); }

[[noreturn]] void Refuse(const llvm::Value& what) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << what;
  throw Error(ErrorCategory::kUnsupported, "the threads of a warp cannot compute" + text.substr(0, 200));
}

class Spreader {
 public:
  Spreader(llvm::Function& function, int scratch_slot)
      : function_(function),
        builder_(function.getContext()),
        uses_(function),
        tensor_cores_(function),
        scratch_slot_(scratch_slot) {}

  WarpMemory Run() {
    builder_.SetInsertPoint(&*function_.getEntryBlock().getFirstInsertionPt());
    thread_ = builder_.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, {});
    lane_ = builder_.CreateAnd(thread_, kLanes - 1, "lane");
    std::vector<llvm::Instruction*> instructions;
    const llvm::ReversePostOrderTraversal<llvm::Function*> blocks(&function_);
    for (llvm::BasicBlock* block : blocks) {
      for (llvm::Instruction& instruction : *block) instructions.push_back(&instruction);
    }
    for (llvm::Instruction* instruction : instructions) Spread(*instruction);
    for (const auto& [whole, own] : phis_) {
      for (unsigned i = 0; i < whole->getNumIncomingValues(); ++i) {
        llvm::BasicBlock* from = whole->getIncomingBlock(i);
        builder_.SetInsertPoint(from->getTerminator());
        own->addIncoming(Own(whole->getIncomingValue(i)), from);
      }
    }
    for (llvm::Instruction* instruction : dead_) {
      instruction->replaceAllUsesWith(llvm::PoisonValue::get(instruction->getType()));
      instruction->eraseFromParent();
    }
    return {scratch_bytes_, tensor_cores_.block_warps(), tensor_cores_.shared_bytes()};
  }

 private:
  // ---- values ----

  /// This thread's element of a vector.
  llvm::Value* Own(llvm::Value* value) {
    COLLAGE_CHECK(IsWide(value)) << "only vectors have lanes";
    const auto known = own_.find(value);
    if (known != own_.end()) return known->second;
    auto* constant = llvm::dyn_cast<llvm::Constant>(value);
    if (constant == nullptr) Refuse(*value);
    return OwnElement(*constant);
  }

  llvm::Value* OwnIfWide(llvm::Value* value) { return IsWide(value) ? Own(value) : value; }

  llvm::Value* OwnElement(llvm::Constant& constant) {
    llvm::Value* element = ElementOfLane(builder_, constant, lane_);
    if (element == nullptr) Refuse(constant);
    return element;
  }

  void Define(llvm::Instruction& whole, llvm::Value* own, bool is_uniform = false) {
    own_[&whole] = own;
    if (is_uniform) uniform_.insert(&whole);
    dead_.push_back(&whole);
  }

  // ---- between lanes ----

  /// Calls `move` for 32 bits at a time of a value of any type.
  template <typename Move>
  llvm::Value* InWords(llvm::Value* value, Move move) {
    llvm::Type* type = value->getType();
    llvm::Type* word = builder_.getInt32Ty();
    const unsigned bits = type->isPointerTy() ? 64 : type->getScalarSizeInBits();
    if (bits < 32) {
      llvm::Type* narrow = builder_.getIntNTy(bits);
      llvm::Value* moved = move(builder_.CreateZExt(builder_.CreateBitCast(value, narrow), word));
      return builder_.CreateBitCast(builder_.CreateTrunc(moved, narrow), type);
    }
    if (bits == 32) return builder_.CreateBitCast(move(builder_.CreateBitCast(value, word)), type);
    if (bits != 64) Refuse(*value);
    llvm::Type* wide = builder_.getInt64Ty();
    llvm::Value* all = type->isPointerTy() ? builder_.CreatePtrToInt(value, wide) : builder_.CreateBitCast(value, wide);
    llvm::Value* low = builder_.CreateZExt(move(builder_.CreateTrunc(all, word)), wide);
    llvm::Value* high = builder_.CreateZExt(move(builder_.CreateTrunc(builder_.CreateLShr(all, 32), word)), wide);
    llvm::Value* joined = builder_.CreateOr(low, builder_.CreateShl(high, 32));
    return type->isPointerTy() ? builder_.CreateIntToPtr(joined, type) : builder_.CreateBitCast(joined, type);
  }

  llvm::Value* Shuffled(llvm::Intrinsic::ID kind, llvm::Value* value, llvm::Value* lane) {
    return InWords(value, [&](llvm::Value* word) {
      return builder_.CreateIntrinsic(kind, {builder_.getInt32(-1), word, lane, builder_.getInt32(kLanes - 1)});
    });
  }

  /// The element that lane `lane`, an i32 that may differ between threads, has.
  llvm::Value* FromLane(llvm::Value* value, llvm::Value* lane) {
    return Shuffled(llvm::Intrinsic::nvvm_shfl_sync_idx_i32, value, lane);
  }

  void SpreadExtract(llvm::ExtractElementInst& extract) {
    if (!IsWide(extract.getVectorOperand())) return;
    llvm::Value* own = Own(extract.getVectorOperand());
    if (!uniform_.contains(extract.getVectorOperand())) {
      own = FromLane(own, builder_.CreateZExtOrTrunc(extract.getIndexOperand(), builder_.getInt32Ty()));
    }
    extract.replaceAllUsesWith(own);
    dead_.push_back(&extract);
  }

  void SpreadInsert(llvm::InsertElementInst& insert) {
    if (!IsWide(insert.getType())) return;
    llvm::Value* into = insert.getOperand(0);
    llvm::Value* element = insert.getOperand(1);
    // Lanes without a value may have any.
    if (llvm::isa<llvm::UndefValue>(into)) return Define(insert, element, /*is_uniform=*/true);
    llvm::Value* lane = builder_.CreateZExtOrTrunc(insert.getOperand(2), builder_.getInt32Ty());
    Define(insert, builder_.CreateSelect(builder_.CreateICmpEQ(lane_, lane), element, Own(into)));
  }

  void SpreadShuffle(llvm::ShuffleVectorInst& shuffle) {
    llvm::Value* first = shuffle.getOperand(0);
    const llvm::ArrayRef<int> mask = shuffle.getShuffleMask();
    const bool is_result_wide = IsWide(shuffle.getType());
    if (!is_result_wide && !IsWide(first)) return;
    if (!IsWide(first)) {
      const bool is_broadcast = std::ranges::all_of(mask, [&](int from) { return from <= 0; });
      if (!is_broadcast) Refuse(shuffle);
      return Define(shuffle, builder_.CreateExtractElement(first, uint64_t{0}), /*is_uniform=*/true);
    }
    if (!is_result_wide) {
      llvm::Value* narrow = llvm::PoisonValue::get(shuffle.getType());
      for (size_t i = 0; i < mask.size(); ++i) {
        if (mask[i] < 0) continue;
        llvm::Value* from = Own(shuffle.getOperand(mask[i] < static_cast<int>(kLanes) ? 0 : 1));
        narrow = builder_.CreateInsertElement(narrow, FromLane(from, builder_.getInt32(mask[i] % kLanes)), i);
      }
      shuffle.replaceAllUsesWith(narrow);
      dead_.push_back(&shuffle);
      return;
    }
    if (uniform_.contains(first) && std::ranges::all_of(mask, [](int from) { return from < int{kLanes}; })) {
      return Define(shuffle, Own(first), /*is_uniform=*/true);
    }
    Define(shuffle, Permuted(shuffle, mask));
  }

  llvm::Value* Permuted(llvm::ShuffleVectorInst& shuffle, llvm::ArrayRef<int> mask) {
    std::vector<llvm::Constant*> lanes, is_second;
    bool has[2] = {false, false};
    for (const int from : mask) {
      const int known = std::max(from, 0);
      lanes.push_back(builder_.getInt32(known % kLanes));
      is_second.push_back(builder_.getInt1(known >= static_cast<int>(kLanes)));
      has[known >= static_cast<int>(kLanes) ? 1 : 0] = true;
    }
    llvm::Value* lane = OwnElement(*llvm::ConstantVector::get(lanes));
    if (!has[1]) return FromLane(Own(shuffle.getOperand(0)), lane);
    llvm::Value* second = FromLane(Own(shuffle.getOperand(1)), lane);
    if (!has[0]) return second;
    llvm::Value* first = FromLane(Own(shuffle.getOperand(0)), lane);
    return builder_.CreateSelect(OwnElement(*llvm::ConstantVector::get(is_second)), second, first);
  }

  // ---- memory ----

  void Synchronise() { builder_.CreateIntrinsic(llvm::Intrinsic::nvvm_bar_warp_sync, {builder_.getInt32(-1)}); }

  /// Writes what `store` makes at `where`, in between of what other threads do with that memory.
  template <typename Store>
  void Between(llvm::Instruction& where, llvm::Value* pointer, Store store) {
    const bool is_shared = uses_.IsShared(pointer);
    if (is_shared) Synchronise();
    store();
    if (!is_shared) return;
    builder_.SetInsertPoint(&where);
    Synchronise();
  }

  /// Makes what `make` does before `where`, for threads in which `condition` holds.
  template <typename Make>
  void Where(llvm::Value* condition, llvm::Instruction& where, Make make) {
    llvm::Instruction* inside = llvm::SplitBlockAndInsertIfThen(condition, &where, /*Unreachable=*/false);
    builder_.SetInsertPoint(inside);
    make();
    builder_.SetInsertPoint(&where);
  }

  llvm::Value* OwnAddress(llvm::Value* first, llvm::Type* type) {
    if (type->isIntegerTy(1)) Refuse(*first);
    return builder_.CreateGEP(type, first, builder_.CreateZExt(lane_, builder_.getInt64Ty()));
  }

  static llvm::Align AlignmentOf(const llvm::Instruction& access, llvm::Type* element, llvm::Align told) {
    const uint64_t bytes = access.getModule()->getDataLayout().getTypeStoreSize(element);
    return std::min(told, llvm::Align(bytes));
  }

  void SpreadLoad(llvm::LoadInst& load) {
    if (!IsWide(load.getType())) return;
    llvm::Type* type = load.getType()->getScalarType();
    llvm::LoadInst* own = builder_.CreateAlignedLoad(type, OwnAddress(load.getPointerOperand(), type),
                                                     AlignmentOf(load, type, load.getAlign()));
    own->copyMetadata(load, {llvm::LLVMContext::MD_invariant_load});
    Define(load, own);
  }

  /// One thread writes what all know.
  void StoreOnce(llvm::Instruction& store) {
    Where(builder_.CreateICmpEQ(lane_, builder_.getInt32(0)), store, [&] { builder_.Insert(store.clone()); });
  }

  void SpreadStore(llvm::StoreInst& store) {
    llvm::Value* value = store.getValueOperand();
    llvm::Value* pointer = store.getPointerOperand();
    Between(store, pointer, [&] {
      if (!IsWide(value)) return StoreOnce(store);
      llvm::Type* type = value->getType()->getScalarType();
      builder_.CreateAlignedStore(Own(value), OwnAddress(pointer, type), AlignmentOf(store, type, store.getAlign()));
    });
    dead_.push_back(&store);
  }

  /// A masked load or a gather.
  void SpreadMaskedLoad(llvm::IntrinsicInst& call) {
    if (!IsWide(call.getType())) return;
    const bool is_gather = call.getIntrinsicID() == llvm::Intrinsic::masked_gather;
    llvm::Type* type = call.getType()->getScalarType();
    llvm::Value* address = is_gather ? Own(call.getArgOperand(0)) : OwnAddress(call.getArgOperand(0), type);
    // A gather is told the alignment of each element, a load that of the vector.
    const llvm::Align told = call.getParamAlign(0).valueOrOne();
    const llvm::Align alignment = is_gather ? told : AlignmentOf(call, type, told);
    const auto load = [&] { return builder_.CreateAlignedLoad(type, address, alignment); };
    llvm::Value* mask = Own(call.getArgOperand(1));
    if (const auto* known = llvm::dyn_cast<llvm::ConstantInt>(mask); known != nullptr && known->isOne()) {
      return Define(call, load());
    }
    llvm::Value* otherwise = Own(call.getArgOperand(2));
    llvm::BasicBlock* before = call.getParent();
    llvm::Value* loaded = nullptr;
    Where(mask, call, [&] { loaded = load(); });
    builder_.SetInsertPoint(&call.getParent()->front());
    llvm::PHINode* own = builder_.CreatePHI(type, 2);
    own->addIncoming(otherwise, before);
    own->addIncoming(loaded, llvm::cast<llvm::Instruction>(loaded)->getParent());
    builder_.SetInsertPoint(&call);
    Define(call, own);
  }

  /// A masked store or a scatter.
  void SpreadMaskedStore(llvm::IntrinsicInst& call) {
    llvm::Value* value = call.getArgOperand(0);
    const bool is_scatter = call.getIntrinsicID() == llvm::Intrinsic::masked_scatter;
    llvm::Value* pointer = call.getArgOperand(1);
    Between(call, pointer, [&] {
      if (!IsWide(value)) return StoreOnce(call);
      llvm::Type* type = value->getType()->getScalarType();
      llvm::Value* address = is_scatter ? Own(pointer) : OwnAddress(pointer, type);
      llvm::Value* own = Own(value);
      Where(Own(call.getArgOperand(2)), call, [&] {
        builder_.CreateAlignedStore(own, address, AlignmentOf(call, type, call.getParamAlign(1).valueOrOne()));
      });
    });
    dead_.push_back(&call);
  }

  void SpreadScratch(llvm::CallInst& call) {
    const auto* bytes = llvm::dyn_cast<llvm::ConstantInt>(call.getArgOperand(0));
    if (bytes == nullptr || tensor_cores_.block_warps() > 0) Refuse(call);
    const int64_t own = (bytes->getSExtValue() + kAlignment - 1) / kAlignment * kAlignment;
    scratch_bytes_ = std::max(scratch_bytes_, own);
    llvm::Type* pointer = builder_.getPtrTy();
    llvm::Value* slot = builder_.CreateConstGEP1_64(pointer, function_.getArg(0), static_cast<uint64_t>(scratch_slot_));
    llvm::Value* all = builder_.CreateLoad(pointer, slot);
    llvm::Value* block = builder_.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x, {});
    llvm::Value* size = builder_.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_ntid_x, {});
    llvm::Value* thread = builder_.CreateAdd(builder_.CreateMul(block, size), thread_);
    llvm::Value* warp =
        builder_.CreateZExt(builder_.CreateUDiv(thread, builder_.getInt32(kLanes)), builder_.getInt64Ty());
    call.replaceAllUsesWith(
        builder_.CreateGEP(builder_.getInt8Ty(), all, builder_.CreateMul(warp, builder_.getInt64(own))));
    dead_.push_back(&call);
  }

  // ---- calls ----

  /// How two elements of a horizontal operation are combined.
  llvm::Value* Combined(llvm::Intrinsic::ID kind, llvm::Value* a, llvm::Value* b) {
    switch (kind) {
      case llvm::Intrinsic::vector_reduce_add: return builder_.CreateAdd(a, b);
      case llvm::Intrinsic::vector_reduce_mul: return builder_.CreateMul(a, b);
      case llvm::Intrinsic::vector_reduce_and: return builder_.CreateAnd(a, b);
      case llvm::Intrinsic::vector_reduce_or: return builder_.CreateOr(a, b);
      case llvm::Intrinsic::vector_reduce_xor: return builder_.CreateXor(a, b);
      case llvm::Intrinsic::vector_reduce_fadd: return builder_.CreateFAdd(a, b);
      case llvm::Intrinsic::vector_reduce_fmul: return builder_.CreateFMul(a, b);
      case llvm::Intrinsic::vector_reduce_smax: return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, a, b);
      case llvm::Intrinsic::vector_reduce_smin: return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, a, b);
      case llvm::Intrinsic::vector_reduce_umax: return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umax, a, b);
      case llvm::Intrinsic::vector_reduce_umin: return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::umin, a, b);
      case llvm::Intrinsic::vector_reduce_fmax: return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::maxnum, a, b);
      case llvm::Intrinsic::vector_reduce_fmin: return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::minnum, a, b);
      case llvm::Intrinsic::vector_reduce_fmaximum:
        return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::maximum, a, b);
      case llvm::Intrinsic::vector_reduce_fminimum:
        return builder_.CreateBinaryIntrinsic(llvm::Intrinsic::minimum, a, b);
      default: return nullptr;
    }
  }

  /// All elements combined, in all threads: in each step each lane with that whose number differs in one bit. Returns
  /// whether it is such an operation.
  bool SpreadReduction(llvm::IntrinsicInst& call) {
    llvm::Value* vector = call.arg_size() == 0 ? nullptr : call.getArgOperand(call.arg_size() - 1);
    if (vector == nullptr || !IsWide(vector) || IsWide(call.getType())) return false;
    const llvm::Intrinsic::ID kind = call.getIntrinsicID();
    llvm::FastMathFlags flags;
    if (llvm::isa<llvm::FPMathOperator>(call)) flags = call.getFastMathFlags();
    const llvm::IRBuilderBase::FastMathFlagGuard guard(builder_);
    builder_.setFastMathFlags(flags);
    llvm::Value* value = Own(vector);
    for (unsigned step = kLanes / 2; step > 0; step /= 2) {
      llvm::Value* other = Shuffled(llvm::Intrinsic::nvvm_shfl_sync_bfly_i32, value, builder_.getInt32(step));
      value = Combined(kind, value, other);
      if (value == nullptr) return false;
    }
    if (call.arg_size() == 2) value = Combined(kind, call.getArgOperand(0), value);
    call.replaceAllUsesWith(value);
    dead_.push_back(&call);
    return true;
  }

  /// Empty text hides from LLVM what a value is, which matters to processors alone.
  void SpreadAssembly(llvm::CallInst& call) {
    const auto* assembly = llvm::cast<llvm::InlineAsm>(call.getCalledOperand());
    const bool is_empty = assembly->getAsmString().empty() && call.arg_size() == 1;
    if (!is_empty || call.getArgOperand(0)->getType() != call.getType()) Refuse(call);
    call.replaceAllUsesWith(call.getArgOperand(0));
    dead_.push_back(&call);
  }

  /// Whether it is a function that all threads call together.
  bool SpreadTensorCall(llvm::CallInst& call) {
    const llvm::Function* callee = call.getCalledFunction();
    if (callee == nullptr || callee->isIntrinsic() || IsMathFunction(callee->getName())) return false;
    std::vector<llvm::Value*> arguments;
    for (llvm::Value* argument : call.args()) arguments.push_back(OwnIfWide(argument));
    std::optional<std::vector<llvm::Value*>> results = tensor_cores_.Call(builder_, callee->getName().str(), arguments);
    if (!results) return false;
    if (IsWide(call.getType())) {
      Define(call, results->at(0));
      return true;
    }
    if (call.getType()->isIntegerTy()) call.replaceAllUsesWith(results->at(0));
    several_[&call] = std::move(*results);
    dead_.push_back(&call);
    return true;
  }

  void SpreadExtractValue(llvm::ExtractValueInst& extract) {
    const auto known = several_.find(extract.getAggregateOperand());
    if (known == several_.end()) return;
    Define(extract, known->second[extract.getIndices()[0]]);
  }

  void SpreadCall(llvm::CallInst& call) {
    const llvm::Function* callee = call.getCalledFunction();
    if (callee != nullptr && callee->getName() == kScratch) return SpreadScratch(call);
    if (SpreadTensorCall(call)) return;
    if (call.isInlineAsm()) return SpreadAssembly(call);
    auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&call);
    if (intrinsic == nullptr) {
      if (callee == nullptr || !IsMathFunction(callee->getName())) Refuse(call);
      return;  // of single values
    }
    switch (intrinsic->getIntrinsicID()) {
      case llvm::Intrinsic::masked_load:
      case llvm::Intrinsic::masked_gather: return SpreadMaskedLoad(*intrinsic);
      case llvm::Intrinsic::masked_store:
      case llvm::Intrinsic::masked_scatter: return SpreadMaskedStore(*intrinsic);
      case llvm::Intrinsic::prefetch: dead_.push_back(&call); return;
      default: break;
    }
    if (!IsWide(call.getType()) &&
        std::ranges::none_of(call.args(), [](const llvm::Use& use) { return IsWide(use.get()); }))
      return;
    if (SpreadReduction(*intrinsic)) return;
    if (!IsWide(call.getType()) || !llvm::isTriviallyVectorizable(intrinsic->getIntrinsicID())) Refuse(call);
    std::vector<llvm::Value*> arguments;
    for (llvm::Value* argument : call.args()) arguments.push_back(OwnIfWide(argument));
    llvm::CallInst* own =
        builder_.CreateIntrinsic(call.getType()->getScalarType(), intrinsic->getIntrinsicID(), arguments);
    own->copyIRFlags(&call);
    Define(call, own);
  }

  /// An operation that computes each element from those in its place.
  void SpreadElementwise(llvm::Instruction& instruction) {
    for (const llvm::Use& operand : instruction.operands()) {
      const bool is_other_width = operand->getType()->isVectorTy() && !IsWide(operand.get());
      if (is_other_width || (instruction.isCast() && !IsWide(instruction.getType()))) Refuse(instruction);
    }
    std::vector<llvm::Value*> operands;
    for (llvm::Value* operand : instruction.operands()) operands.push_back(OwnIfWide(operand));
    llvm::Instruction* own = instruction.clone();
    own->mutateType(instruction.getType()->getScalarType());
    for (unsigned i = 0; i < operands.size(); ++i) own->setOperand(i, operands[i]);
    builder_.Insert(own);
    Define(instruction, own);
  }

  void Spread(llvm::Instruction& instruction) {
    builder_.SetInsertPoint(&instruction);
    if (auto* phi = llvm::dyn_cast<llvm::PHINode>(&instruction)) {
      if (!IsWide(phi->getType())) return;
      llvm::PHINode* own = builder_.CreatePHI(phi->getType()->getScalarType(), phi->getNumIncomingValues());
      phis_.emplace_back(phi, own);
      return Define(*phi, own);
    }
    if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) return SpreadLoad(*load);
    if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) return SpreadStore(*store);
    if (auto* extract = llvm::dyn_cast<llvm::ExtractElementInst>(&instruction)) return SpreadExtract(*extract);
    if (auto* insert = llvm::dyn_cast<llvm::InsertElementInst>(&instruction)) return SpreadInsert(*insert);
    if (auto* shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(&instruction)) return SpreadShuffle(*shuffle);
    if (auto* one = llvm::dyn_cast<llvm::ExtractValueInst>(&instruction)) return SpreadExtractValue(*one);
    if (auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction)) return SpreadCall(*call);
    if (llvm::isa<llvm::AllocaInst>(instruction)) Refuse(instruction);
    if (IsWide(instruction.getType())) return SpreadElementwise(instruction);
    if (std::ranges::any_of(instruction.operands(), [](const llvm::Use& use) { return IsWide(use.get()); })) {
      Refuse(instruction);
    }
  }

  llvm::Function& function_;
  llvm::IRBuilder<> builder_;
  BufferUses uses_;
  TensorCores tensor_cores_;
  int scratch_slot_;
  llvm::Value* thread_ = nullptr;
  llvm::Value* lane_ = nullptr;  ///< i32
  llvm::DenseMap<llvm::Value*, llvm::Value*> own_;
  llvm::DenseSet<llvm::Value*> uniform_;                             ///< vectors with one value in all lanes
  llvm::DenseMap<llvm::Value*, std::vector<llvm::Value*>> several_;  ///< elements of calls' results
  std::vector<std::pair<llvm::PHINode*, llvm::PHINode*>> phis_;
  std::vector<llvm::Instruction*> dead_;
  int64_t scratch_bytes_ = 0;
};

}  // namespace

WarpMemory SpreadOverWarp(llvm::Function& function, int scratch_slot) { return Spreader(function, scratch_slot).Run(); }

}  // namespace collage::native
