// gpu_code.cc: each stage becomes a kernel whose warps take its units of work in turn.
#include "backends/native/compiler/gpu/gpu_code.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "backends/cuda_driver/emulation.h"
#include "backends/cuda_driver/gpu_kernel.h"
#include "backends/cuda_driver/toolkit.h"
#include "backends/native/compiler/code/link.h"
#include "backends/native/compiler/code/llvm_steps.h"
#include "backends/native/compiler/code/object_cache.h"
#include "backends/native/compiler/gpu/device_math.h"
#include "backends/native/compiler/gpu/emulated.h"
#include "backends/native/compiler/gpu/launches.h"
#include "backends/native/compiler/gpu/warpgroups.h"
#include "backends/native/compiler/gpu/warps.h"
#include "backends/native/compiler/stages/target_info.h"
#include "collage/support/error.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/raw_ostream.h"
#include "support/environment.h"
#include "support/file.h"

namespace collage::native {
namespace {

/// The oldest GPUs that code is made for: what is emulated is their code.
constexpr const char* kOldest = "sm_80";
/// Launches of kernels whose warps have memory of their own have at most so many warps.
constexpr int64_t kScratchWarps = 1024;
constexpr int64_t kAlignment = 64;
/// Libdevice asks it how exact to be; LLVM's passes answer.
constexpr const char* kReflect = "__nvvm_reflect";

/// The symbol of the kernel around a stage.
std::string KernelName(const std::string& stage) { return stage + "_kernel"; }

/// One more than the highest place of the kernel's array of addresses that a stage reads.
int NumAddresses(llvm::Module& module, const std::vector<std::string>& stages) {
  int64_t count = 0;
  for (const std::string& stage : stages) {
    llvm::Function* function = module.getFunction(stage);
    for (const llvm::User* user : function->getArg(0)->users()) {
      const auto* step = llvm::dyn_cast<llvm::GetElementPtrInst>(user);
      const auto* index = step == nullptr ? nullptr : llvm::dyn_cast<llvm::ConstantInt>(*step->idx_begin());
      count = std::max(count, index == nullptr ? 1 : index->getSExtValue() + 1);
    }
  }
  return static_cast<int>(count);
}

/// The number of this warp, or block, and how many there are.
std::pair<llvm::Value*, llvm::Value*> NumberOfWorker(llvm::IRBuilder<>& builder, bool is_for_blocks) {
  const auto special = [&](llvm::Intrinsic::ID id) { return builder.CreateIntrinsic(id, {}); };
  llvm::Value* block = special(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x);
  llvm::Value* blocks = special(llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x);
  if (is_for_blocks) return {block, blocks};
  llvm::Value* size = special(llvm::Intrinsic::nvvm_read_ptx_sreg_ntid_x);
  llvm::Value* warps = builder.CreateUDiv(size, builder.getInt32(kWarpLanes));
  llvm::Value* thread = special(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x);
  llvm::Value* warp = builder.CreateUDiv(thread, builder.getInt32(kWarpLanes));
  return {builder.CreateAdd(builder.CreateMul(block, warps), warp), builder.CreateMul(blocks, warps)};
}

/// void NAME_kernel(addresses by value, count, grain): warps, or blocks, take `grain` units at a time of [0, count).
void AddKernel(llvm::Module& module, const std::string& stage, int num_addresses,
               const cuda_driver::GpuFunction& launched) {
  llvm::LLVMContext& context = module.getContext();
  llvm::IRBuilder<> builder(context);
  llvm::Type* number = builder.getInt64Ty();
  auto* type = llvm::FunctionType::get(builder.getVoidTy(), {builder.getPtrTy(), number, number}, /*isVarArg=*/false);
  llvm::Function* kernel = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, KernelName(stage), module);
  kernel->setCallingConv(llvm::CallingConv::PTX_Kernel);
  auto* array = llvm::ArrayType::get(number, static_cast<uint64_t>(std::max(num_addresses, 1)));
  kernel->addParamAttr(0, llvm::Attribute::getWithByValType(context, array));
  kernel->addParamAttr(0, llvm::Attribute::getWithAlignment(context, llvm::Align(8)));
  kernel->addFnAttr("nvvm.maxntid", std::to_string(launched.warps * kWarpLanes));
  llvm::Function* body = module.getFunction(stage);
  if (body->hasFnAttribute("target-cpu")) kernel->addFnAttr(body->getFnAttribute("target-cpu"));
  if (body->hasFnAttribute("target-features")) kernel->addFnAttr(body->getFnAttribute("target-features"));
  body->setLinkage(llvm::GlobalValue::InternalLinkage);
  body->addFnAttr(llvm::Attribute::AlwaysInline);

  auto* entry = llvm::BasicBlock::Create(context, "entry", kernel);
  auto* head = llvm::BasicBlock::Create(context, "head", kernel);
  auto* unit = llvm::BasicBlock::Create(context, "unit", kernel);
  auto* done = llvm::BasicBlock::Create(context, "done", kernel);
  builder.SetInsertPoint(entry);
  const auto [worker, workers] = NumberOfWorker(builder, launched.is_for_blocks);
  llvm::Value* count = kernel->getArg(1);
  llvm::Value* grain = kernel->getArg(2);
  llvm::Value* first = builder.CreateMul(builder.CreateZExt(worker, number), grain);
  llvm::Value* stride = builder.CreateMul(builder.CreateZExt(workers, number), grain);
  builder.CreateBr(head);
  builder.SetInsertPoint(head);
  llvm::PHINode* begin = builder.CreatePHI(number, 2);
  begin->addIncoming(first, entry);
  builder.CreateCondBr(builder.CreateICmpSLT(begin, count), unit, done);
  builder.SetInsertPoint(unit);
  llvm::Value* end = builder.CreateBinaryIntrinsic(llvm::Intrinsic::smin, builder.CreateAdd(begin, grain), count);
  builder.CreateCall(body, {kernel->getArg(0), begin, end});
  begin->addIncoming(builder.CreateAdd(begin, stride), unit);
  builder.CreateBr(head);
  builder.SetInsertPoint(done);
  builder.CreateRetVoid();
}

/// Throws where code calls functions that no GPU has.
void CheckIsClosed(const llvm::Module& module) {
  for (const llvm::Function& function : module) {
    const bool is_library = function.isDeclaration() && !function.isIntrinsic() && function.getName() != kReflect;
    if (is_library && !function.use_empty()) {
      throw Error(ErrorCategory::kUnsupported, "a GPU has no function '" + function.getName().str() + "'");
    }
  }
}

std::vector<std::byte> BytesOf(const llvm::SmallVector<char>& text) {
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  return {bytes, bytes + text.size()};
}

/// NVIDIA's assembler, if it is installed.
std::string FindAssembler() {
  const std::string program = (cuda_driver::ToolkitFolder() / "bin/ptxas").string();
  return access(program.c_str(), X_OK) == 0 ? program : "";
}

/// Machine code of `ptx`. Empty without an assembler.
std::vector<std::byte> Assemble(const llvm::SmallVector<char>& ptx, const std::string& architecture) {
  const std::string program = FindAssembler();
  if (program.empty()) return {};
  const TemporaryFolder folder;
  const std::string input = (folder / "kernel.ptx").string();
  const std::string output = (folder / "kernel.cubin").string();
  WriteFile(input, {ptx.data(), ptx.size()});
  if (RunProgram({program, "-arch=" + architecture, "-O3", "-o", output, input}) != 0) {
    throw Error(ErrorCategory::kUnsupported, "ptxas refuses a kernel for " + architecture);
  }
  const std::string code = ReadFile(output);
  const auto* bytes = reinterpret_cast<const std::byte*>(code.data());
  return {bytes, bytes + code.size()};
}

/// One partition on its way to a GPU's code.
class GpuCompiler {
 public:
  GpuCompiler(const LoweredPartition& lowered, const NativeOptions& options)
      : lowered_(lowered), is_emulated_(options.cpu == cuda_driver::kEmulatedArchitecture), cpu_(CpuFor(options)) {
    kernel_.architecture = options.cpu;
    for (const std::string& gpu : options.further_gpus) kernel_.architecture += "," + gpu;
    // The newest first: older machine code runs on later GPUs of its generation, too.
    architectures_.assign(options.further_gpus.rbegin(), options.further_gpus.rend());
    architectures_.push_back(options.cpu);
  }

  CompiledPartition Run() {
    std::vector<std::byte> blob;
    const std::string made_from =
        fmt::format("LLVM {} {} for {}, workspace {}\n{}", LLVM_VERSION_STRING, FindAssembler(), kernel_.architecture,
                    lowered_.workspace_bytes, lowered_.mlir);
    blob = FindOrMakeObject(made_from, [&] {
      std::vector<std::byte> made;
      WithDiagnostics([&] { made = Compile(); });
      return made;
    });
    CompiledPartition partition{kGpuLoader, std::move(blob), lowered_.constants};
    // As its warps need it, if they do.
    const cuda_driver::GpuKernel kernel = cuda_driver::GpuKernelFrom(partition.blob);
    partition.workspace_bytes = lowered_.workspace_bytes;
    if (kernel.scratch_warps > 0) {
      partition.workspace_bytes =
          static_cast<size_t>(kernel.scratch_offset + kernel.scratch_warps * kernel.scratch_bytes);
    }
    partition.workspace_memory = Memory::kCuda;
    partition.source = lowered_.mlir;
    return partition;
  }

 private:
  Cpu CpuFor(NativeOptions options) const {
    if (is_emulated_) options.cpu = kOldest;
    return CpuOf(options);
  }

  std::vector<std::byte> Compile() {
    const mlir::OwningOpRef<mlir::ModuleOp> parsed = ParseMlir(lowered_.mlir);
    KernelCalls calls = TakeCalls(*parsed);
    Lower(*parsed, lowered_.mlir.find("bf16") != std::string::npos);
    const std::unique_ptr<llvm::TargetMachine> machine = MakeTargetMachine(cpu_);
    llvm::LLVMContext context;
    const std::unique_ptr<llvm::Module> module = Translate(*parsed, context, *machine);
    RelaxMath(*module, cpu_, kWarpLanes);
    MakeKernels(*module, calls.functions);
    // The host has its own.
    if (!is_emulated_) {
      DefineGroupFunctions(*module);
      DefineMath(*module, cuda_driver::DeviceLibrary());
      CheckIsClosed(*module);
    }
    Optimise(*module, *machine);
    kernel_.launches = std::move(calls.launches);
    MakeImages(*module, *machine);
    return cuda_driver::ToBlob(kernel_);
  }

  void MakeKernels(llvm::Module& module, const std::vector<std::string>& stages) {
    kernel_.has_workspace = lowered_.workspace_bytes > 0;
    kernel_.num_addresses = NumAddresses(module, stages);
    int64_t bytes_per_warp = 0;
    for (const std::string& stage : stages) {
      const WarpMemory memory = SpreadOverWarp(*module.getFunction(stage), kernel_.num_addresses);
      bytes_per_warp = std::max(bytes_per_warp, memory.scratch_bytes);
      cuda_driver::GpuFunction function{KernelName(stage)};
      function.is_for_blocks = memory.block_warps > 0;
      if (function.is_for_blocks) function.warps = static_cast<int>(memory.block_warps);
      function.shared_bytes = (function.is_for_blocks ? 1 : function.warps) * memory.shared_bytes;
      kernel_.functions.push_back(function);
    }
    if (bytes_per_warp > 0) {
      ++kernel_.num_addresses;
      const auto workspace = static_cast<int64_t>(lowered_.workspace_bytes);
      kernel_.scratch_warps = kScratchWarps;
      kernel_.scratch_offset = (workspace + kAlignment - 1) / kAlignment * kAlignment;
      kernel_.scratch_bytes = bytes_per_warp;
    }
    if (kernel_.num_addresses > cuda_driver::kMostAddresses) {
      throw Error(ErrorCategory::kUnsupported,
                  fmt::format("it has {} buffers, and a GPU's kernel at most {} parameters", kernel_.num_addresses,
                              cuda_driver::kMostAddresses));
    }
    for (size_t i = 0; i < stages.size(); ++i) {
      AddKernel(module, stages[i], kernel_.num_addresses, kernel_.functions[i]);
    }
    std::string problem;
    llvm::raw_string_ostream stream(problem);
    if (llvm::verifyModule(module, &stream)) throw Error(ErrorCategory::kInternal, "a GPU's code is wrong: " + problem);
  }

  void MakeImages(llvm::Module& module, llvm::TargetMachine& machine) {
    if (is_emulated_) {
      std::vector<std::string> names;
      for (const cuda_driver::GpuFunction& function : kernel_.functions) names.push_back(function.name);
      kernel_.images.push_back({cuda_driver::kEmulatedArchitecture, CompileEmulated(module, names)});
      return;
    }
    llvm::SmallVector<char> ptx = Emit(module, machine, llvm::CodeGenFileType::AssemblyFile);
    for (const std::string& architecture : architectures_) {
      std::vector<std::byte> code = Assemble(ptx, architecture);
      if (!code.empty()) kernel_.images.push_back({architecture, std::move(code)});
    }
    ptx.push_back('\0');
    kernel_.images.push_back({cuda_driver::kPtx, BytesOf(ptx)});
  }

  const LoweredPartition& lowered_;
  bool is_emulated_;
  Cpu cpu_;
  std::vector<std::string> architectures_;  ///< that machine code is made for
  cuda_driver::GpuKernel kernel_;
};

}  // namespace

CompiledPartition CompileForGpu(const LoweredPartition& lowered, const NativeOptions& options) {
  return GpuCompiler(lowered, options).Run();
}

std::vector<Listing> GpuListings(const CompiledPartition& compiled) {
  std::vector<Listing> listings{{"mlir", compiled.source}};
  for (const cuda_driver::GpuImage& image : cuda_driver::GpuKernelFrom(compiled.blob).images) {
    if (image.kind == cuda_driver::kPtx) listings.push_back({"ptx", reinterpret_cast<const char*>(image.bytes.data())});
  }
  return listings;
}

}  // namespace collage::native
