// emulated.cc: instructions of a GPU become calls, and every address is asked for before it is used.
#include "backends/native/compiler/gpu/emulated.h"

#include <optional>

#include "backends/cuda_driver/emulation.h"
#include "backends/native/compiler/code/link.h"
#include "backends/native/compiler/code/llvm_steps.h"
#include "backends/native/compiler/gpu/tensor_cores.h"
#include "backends/native/compiler/gpu/warpgroups.h"
#include "collage/support/error.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/ReplaceConstant.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Transforms/Scalar/ScalarizeMaskedMemIntrin.h"

namespace collage::native {
namespace {

using cuda_driver::Emulated;
using cuda_driver::EmulatedProduct;

class HostRewriter {
 public:
  /// `array_bytes`: of the array that kernels get by value.
  HostRewriter(llvm::Module& module, const Cpu& cpu, uint64_t array_bytes)
      : module_(module), cpu_(cpu), builder_(module.getContext()), array_bytes_(array_bytes) {
    auto* type = llvm::ArrayType::get(builder_.getPtrTy(), static_cast<uint64_t>(Emulated::kNumFunctions));
    table_ = new llvm::GlobalVariable(module, type, /*isConstant=*/false, llvm::GlobalValue::ExternalLinkage,
                                      llvm::Constant::getNullValue(type), cuda_driver::kEmulationTable);
  }

  void Run(const std::vector<std::string>& kernels) {
    MoveSharedMemory();
    for (llvm::Function& function : module_) {
      if (!function.isDeclaration()) Rewrite(function);
    }
    for (const std::string& name : kernels) Export(name);
  }

 private:
  llvm::Value* Call(Emulated which, llvm::Type* result, const std::vector<llvm::Value*>& arguments) {
    std::vector<llvm::Type*> types;
    for (const llvm::Value* argument : arguments) types.push_back(argument->getType());
    llvm::Type* pointer = builder_.getPtrTy();
    llvm::Value* slot = builder_.CreateConstGEP1_64(pointer, table_, static_cast<uint64_t>(which));
    return builder_.CreateCall(llvm::FunctionType::get(result, types, /*isVarArg=*/false),
                               builder_.CreateLoad(pointer, slot), arguments);
  }

  /// Memory that threads of a block share becomes memory of the driver.
  void MoveSharedMemory() {
    std::vector<llvm::Constant*> shared;
    for (llvm::GlobalVariable& variable : module_.globals()) {
      if (variable.getAddressSpace() == kSharedSpace) shared.push_back(&variable);
    }
    if (shared.empty()) return;
    COLLAGE_CHECK(shared.size() == 1) << "shared memory is one array";
    llvm::convertUsersOfConstantsToInstructions(shared);
    for (llvm::Use& use : llvm::make_early_inc_range(shared[0]->uses())) {
      auto* user = llvm::cast<llvm::Instruction>(use.getUser());
      builder_.SetInsertPoint(&*user->getFunction()->getEntryBlock().getFirstInsertionPt());
      llvm::Value* all = Call(Emulated::kShared, builder_.getPtrTy(), {});
      use.set(builder_.CreateAddrSpaceCast(all, shared[0]->getType()));
    }
    llvm::cast<llvm::GlobalVariable>(shared[0])->eraseFromParent();
  }

  void Rewrite(llvm::Function& function) {
    // Its attributes hold for the GPU's instructions.
    function.setAttributes({});
    function.setCallingConv(llvm::CallingConv::C);
    function.addFnAttr("target-cpu", cpu_.name);
    function.addFnAttr("target-features", cpu_.features);
    std::vector<llvm::Instruction*> instructions;
    for (llvm::Instruction& instruction : llvm::instructions(function)) instructions.push_back(&instruction);
    for (llvm::Instruction* instruction : instructions) {
      builder_.SetInsertPoint(instruction);
      if (auto* load = llvm::dyn_cast<llvm::LoadInst>(instruction)) {
        Find(*load, 0, load->getType(), load->getAlign(), /*is_store=*/false);
      } else if (auto* store = llvm::dyn_cast<llvm::StoreInst>(instruction)) {
        Find(*store, 1, store->getValueOperand()->getType(), store->getAlign(), /*is_store=*/true);
      } else if (auto* call = llvm::dyn_cast<llvm::CallInst>(instruction)) {
        RewriteCall(*call);
      }
    }
  }

  /// An address of any memory.
  llvm::Value* Generic(llvm::Value* pointer) { return builder_.CreateAddrSpaceCast(pointer, builder_.getPtrTy()); }

  /// Whether it is memory of the thread or of the code, which no driver knows.
  static bool IsOwn(const llvm::Value* pointer) {
    const llvm::Value* object = llvm::getUnderlyingObject(pointer, /*MaxLookup=*/0);
    return llvm::isa<llvm::AllocaInst, llvm::GlobalVariable, llvm::Argument>(object);
  }

  /// Has operand `operand` of `access` looked for.
  void Find(llvm::Instruction& access, unsigned operand, llvm::Type* type, llvm::Align alignment, bool is_store) {
    const uint64_t bytes = module_.getDataLayout().getTypeStoreSize(type);
    Find(access, operand, builder_.getInt64(bytes), alignment, is_store);
  }

  void Find(llvm::Instruction& access, unsigned operand, llvm::Value* bytes, llvm::Align alignment, bool is_store) {
    llvm::Value* pointer = access.getOperand(operand);
    if (IsOwn(pointer)) return;
    pointer = Generic(pointer);
    const auto told = static_cast<uint32_t>(alignment.value());
    access.setOperand(operand, Call(Emulated::kAddress, builder_.getPtrTy(),
                                    {pointer, bytes, builder_.getInt32(told), builder_.getInt32(is_store ? 1 : 0)}));
  }

  void Replace(llvm::CallInst& call, Emulated which, const std::vector<llvm::Value*>& arguments) {
    llvm::Value* result = Call(which, call.getType(), arguments);
    if (!call.getType()->isVoidTy()) call.replaceAllUsesWith(result);
    call.eraseFromParent();
  }

  void ReplaceCopy(llvm::CallInst& call, uint32_t size) {
    Replace(call, Emulated::kCopy,
            {Generic(call.getArgOperand(0)), Generic(call.getArgOperand(1)), call.getArgOperand(2),
             builder_.getInt32(size)});
  }

  /// Memory of the thread for `count` words.
  llvm::Value* Words(llvm::CallInst& call, unsigned count) {
    builder_.SetInsertPoint(&*call.getFunction()->getEntryBlock().getFirstInsertionPt());
    llvm::Value* words = builder_.CreateAlloca(llvm::ArrayType::get(builder_.getInt32Ty(), count));
    builder_.SetInsertPoint(&call);
    return words;
  }

  llvm::Value* WordAt(llvm::Value* words, unsigned number) {
    return builder_.CreateConstGEP1_32(builder_.getInt32Ty(), words, number);
  }

  /// Has the results of `call` be the words from number `first` on.
  void ReplaceByWords(llvm::CallInst& call, llvm::Value* words, unsigned first) {
    auto* type = llvm::cast<llvm::StructType>(call.getType());
    llvm::Value* results = llvm::PoisonValue::get(type);
    for (unsigned i = 0; i < type->getNumElements(); ++i) {
      llvm::Value* word = builder_.CreateLoad(type->getElementType(i), WordAt(words, first + i));
      results = builder_.CreateInsertValue(results, word, i);
    }
    call.replaceAllUsesWith(results);
    call.eraseFromParent();
  }

  /// mma.sync: its operands and results pass through memory.
  void ReplaceProduct(llvm::CallInst& call, EmulatedProduct product) {
    constexpr unsigned kSums = 4;
    const unsigned count = call.arg_size();
    llvm::Value* words = Words(call, count);
    for (unsigned i = 0; i < count; ++i) builder_.CreateStore(call.getArgOperand(i), WordAt(words, i));
    Call(Emulated::kMultiply, builder_.getVoidTy(), {builder_.getInt32(static_cast<uint32_t>(product)), words});
    ReplaceByWords(call, words, count - kSums);
  }

  /// ldmatrix.
  void ReplaceLoad(llvm::CallInst& call) {
    constexpr unsigned kMatrices = 4;
    llvm::Value* words = Words(call, kMatrices);
    Call(Emulated::kLoadMatrices, builder_.getVoidTy(), {Generic(call.getArgOperand(0)), words});
    ReplaceByWords(call, words, 0);
  }

  /// Functions that stand for instructions.
  void RewriteFunction(llvm::CallInst& call) {
    const llvm::Function* callee = call.getCalledFunction();
    if (callee == nullptr || !callee->isDeclaration()) return;
    if (callee->getName() == kProxyFence) return Replace(call, Emulated::kProxyFence, {});
    const std::optional<GroupFunction> group = GroupFunctionOf(*callee);
    if (!group) return;
    const unsigned count = group->sums + group->words;
    llvm::Value* words = Words(call, count);
    for (unsigned i = 0; i < count; ++i) builder_.CreateStore(call.getArgOperand(i), WordAt(words, i));
    Call(Emulated::kMultiplyGroup, builder_.getVoidTy(),
         {builder_.getInt32(static_cast<uint32_t>(group->product)), builder_.getInt32(group->columns),
          builder_.getInt32(group->depth()), words, Generic(call.getArgOperand(count))});
    ReplaceByWords(call, words, 0);
  }

  void RewriteCall(llvm::CallInst& call) {
    if (auto* memory = llvm::dyn_cast<llvm::MemIntrinsic>(&call)) {
      llvm::Value* bytes = builder_.CreateZExtOrTrunc(memory->getLength(), builder_.getInt64Ty());
      Find(call, 0, bytes, memory->getDestAlign().valueOrOne(), /*is_store=*/true);
      if (auto* transfer = llvm::dyn_cast<llvm::MemTransferInst>(memory)) {
        Find(call, 1, bytes, transfer->getSourceAlign().valueOrOne(), /*is_store=*/false);
      }
      return;
    }
    auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&call);
    if (intrinsic == nullptr) return RewriteFunction(call);
    switch (intrinsic->getIntrinsicID()) {
      case llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x: return Replace(call, Emulated::kThread, {});
      case llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x: return Replace(call, Emulated::kBlock, {});
      case llvm::Intrinsic::nvvm_read_ptx_sreg_ntid_x: return Replace(call, Emulated::kBlockSize, {});
      case llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x: return Replace(call, Emulated::kGridSize, {});
      case llvm::Intrinsic::nvvm_bar_warp_sync: return Replace(call, Emulated::kSynchronise, {});
      case llvm::Intrinsic::nvvm_shfl_sync_idx_i32:
        return Replace(call, Emulated::kShuffle, {call.getArgOperand(1), call.getArgOperand(2)});
      case llvm::Intrinsic::nvvm_shfl_sync_bfly_i32:
        return Replace(call, Emulated::kShuffleXor, {call.getArgOperand(1), call.getArgOperand(2)});
      case llvm::Intrinsic::nvvm_barrier_cta_sync_aligned_all: return Replace(call, Emulated::kSynchroniseBlock, {});
      case llvm::Intrinsic::nvvm_cp_async_cg_shared_global_16_s: return ReplaceCopy(call, 16);
      case llvm::Intrinsic::nvvm_cp_async_ca_shared_global_4_s: return ReplaceCopy(call, 4);
      case llvm::Intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_b16: return ReplaceLoad(call);
      case llvm::Intrinsic::nvvm_cp_async_commit_group: return Replace(call, Emulated::kEndCopies, {});
      case llvm::Intrinsic::nvvm_cp_async_wait_group:
        return Replace(call, Emulated::kAwaitCopies, {call.getArgOperand(0)});
      case llvm::Intrinsic::nvvm_mma_m16n8k8_row_col_tf32: return ReplaceProduct(call, EmulatedProduct::kTf32);
      case llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_bf16: return ReplaceProduct(call, EmulatedProduct::kBFloat16);
      case llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_f32_f32: return ReplaceProduct(call, EmulatedProduct::kFloat16);
      case llvm::Intrinsic::nvvm_mma_m16n8k32_row_col_u8_s8: return ReplaceProduct(call, EmulatedProduct::kBytes);
      default: break;
    }
    if (intrinsic->getCalledFunction()->getName().starts_with("llvm.nvvm.")) {
      throw Error(ErrorCategory::kUnsupported, "nobody emulates " + intrinsic->getCalledFunction()->getName().str());
    }
  }

  /// A function that unpacks the parameters of kernel `name`, and takes its name.
  void Export(const std::string& name) {
    llvm::Function* kernel = module_.getFunction(name);
    kernel->setName(name + "_thread");
    kernel->setLinkage(llvm::GlobalValue::InternalLinkage);
    llvm::Type* pointer = builder_.getPtrTy();
    auto* type = llvm::FunctionType::get(builder_.getVoidTy(), {pointer}, /*isVarArg=*/false);
    llvm::Function* outer = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, module_);
    builder_.SetInsertPoint(llvm::BasicBlock::Create(module_.getContext(), "", outer));
    std::vector<llvm::Value*> arguments;
    std::vector<llvm::Constant*> sizes;
    for (const llvm::Argument& argument : kernel->args()) {
      llvm::Value* slot = builder_.CreateConstGEP1_64(pointer, outer->getArg(0), arguments.size());
      llvm::Value* place = builder_.CreateLoad(pointer, slot);
      const bool is_address = argument.getType()->isPointerTy();
      arguments.push_back(is_address ? place : builder_.CreateLoad(argument.getType(), place));
      const uint64_t bytes = is_address ? array_bytes_ : module_.getDataLayout().getTypeStoreSize(argument.getType());
      sizes.push_back(builder_.getInt64(bytes));
    }
    builder_.CreateCall(kernel, arguments);
    builder_.CreateRetVoid();
    sizes.push_back(builder_.getInt64(0));
    auto* array = llvm::ArrayType::get(builder_.getInt64Ty(), sizes.size());
    new llvm::GlobalVariable(module_, array, /*isConstant=*/true, llvm::GlobalValue::ExternalLinkage,
                             llvm::ConstantArray::get(array, sizes), name + cuda_driver::kEmulationSizes);
  }

  llvm::Module& module_;
  const Cpu& cpu_;
  llvm::IRBuilder<> builder_;
  llvm::GlobalVariable* table_;
  uint64_t array_bytes_;
};

/// Masked accesses of the vectors that are not a warp's become such of one element each.
void SplitMaskedAccesses(llvm::Module& module) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  for (llvm::Function& function : module) {
    if (!function.isDeclaration()) llvm::ScalarizeMaskedMemIntrinPass().run(function, functions);
  }
}

/// Bytes of the array that kernels get by value.
uint64_t ArrayBytes(const llvm::Module& module, const std::vector<std::string>& functions) {
  for (const std::string& name : functions) {
    const llvm::Argument* array = module.getFunction(name)->getArg(0);
    if (llvm::Type* type = array->getParamByValType()) return module.getDataLayout().getTypeAllocSize(type);
  }
  return 0;
}

}  // namespace

std::vector<std::byte> CompileEmulated(llvm::Module& module, const std::vector<std::string>& functions) {
  const Cpu cpu = HostCpu();
  const std::unique_ptr<llvm::TargetMachine> machine = MakeTargetMachine(cpu);
  SplitMaskedAccesses(module);
  HostRewriter rewriter(module, cpu, ArrayBytes(module, functions));
  module.setDataLayout(machine->createDataLayout());
  module.setTargetTriple(machine->getTargetTriple());
  rewriter.Run(functions);
  return Link(Emit(module, *machine, llvm::CodeGenFileType::ObjectFile), cpu);
}

}  // namespace collage::native
