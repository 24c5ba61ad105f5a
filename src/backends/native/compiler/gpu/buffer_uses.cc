// buffer_uses.cc: an address is made by steps from one that the array holds.
#include "backends/native/compiler/gpu/buffer_uses.h"

#include <optional>

#include "llvm/IR/Constants.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"

namespace collage::native {
namespace {

/// A place in memory that an instruction reads or writes.
struct MemoryAccess {
  llvm::Value* pointer;  ///< may be a vector of pointers
  bool is_store;
};

std::optional<MemoryAccess> AccessOf(llvm::Instruction& instruction) {
  if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) return MemoryAccess{load->getPointerOperand(), false};
  if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction))
    return MemoryAccess{store->getPointerOperand(), true};
  auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
  if (call == nullptr) return std::nullopt;
  switch (call->getIntrinsicID()) {
    case llvm::Intrinsic::masked_load:
    case llvm::Intrinsic::masked_gather: return MemoryAccess{call->getArgOperand(0), false};
    case llvm::Intrinsic::masked_store:
    case llvm::Intrinsic::masked_scatter: return MemoryAccess{call->getArgOperand(1), true};
    default: return std::nullopt;
  }
}

}  // namespace

BufferUses::BufferUses(llvm::Function& function) : context_(function.getArg(0)) {
  for (llvm::BasicBlock& block : function) {
    for (llvm::Instruction& instruction : block) {
      const std::optional<MemoryAccess> access = AccessOf(instruction);
      if (!access || IsSlot(access->pointer)) continue;
      (access->is_store ? stored_ : loaded_).insert(SlotOf(access->pointer));
    }
  }
}

bool BufferUses::IsShared(const llvm::Value* pointer) const {
  const int64_t slot = SlotOf(pointer);
  if (slot == kAnywhere) return !loaded_.empty();
  return loaded_.contains(slot) || loaded_.contains(kAnywhere);
}

/// Whether it is the place of an address, not an address.
bool BufferUses::IsSlot(const llvm::Value* pointer) const {
  const auto* step = llvm::dyn_cast<llvm::GetElementPtrInst>(pointer);
  return pointer == context_ || (step != nullptr && step->getPointerOperand() == context_);
}

int64_t BufferUses::SlotOf(const llvm::Value* pointer) const {
  for (;;) {
    const auto* step = llvm::dyn_cast<llvm::GetElementPtrInst>(pointer);
    if (step == nullptr) break;
    pointer = step->getPointerOperand();
  }
  const auto* load = llvm::dyn_cast<llvm::LoadInst>(pointer);
  if (load == nullptr) return kAnywhere;
  if (load->getPointerOperand() == context_) return 0;
  const auto* slot = llvm::dyn_cast<llvm::GetElementPtrInst>(load->getPointerOperand());
  if (slot == nullptr || slot->getPointerOperand() != context_) return kAnywhere;
  const auto* index = llvm::dyn_cast<llvm::ConstantInt>(*slot->idx_begin());
  return index == nullptr ? kAnywhere : index->getSExtValue();
}

}  // namespace collage::native
