// codegen.cc: code for processors.
#include "backends/native/compiler/driver/codegen.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/cuda_driver/emulation.h"
#include "backends/native/compiler/code/link.h"
#include "backends/native/compiler/code/llvm_steps.h"
#include "backends/native/compiler/code/object_cache.h"
#include "backends/native/compiler/gpu/gpu_code.h"
#include "collage/support/error.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Host.h"
#include "runtime/native_loader.h"
#include "support/machine.h"

namespace collage::native {
namespace {

bool Has(const llvm::TargetMachine& machine, const char* feature) {
  return machine.getTargetTriple().isX86_64() && machine.getMCSubtargetInfo()->checkFeatures(feature);
}

int LanesOf(const llvm::TargetMachine& machine) {
  if (Has(machine, "+avx512f") && Has(machine, "+avx512vl") && Has(machine, "+avx512dq")) return 16;
  return Has(machine, "+avx2") ? 8 : 4;
}

/// A string of the object that names every instruction set that its code may use.
void RecordNeeds(llvm::Module& module, const llvm::TargetMachine& machine) {
  std::string needs;
  for (const llvm::SubtargetFeatureKV& feature : machine.getMCSubtargetInfo()->getEnabledProcessorFeatures()) {
    if (IsInstructionSet(feature.Key)) needs += (needs.empty() ? "" : " ") + std::string(feature.Key);
  }
  llvm::Constant* text = llvm::ConstantDataArray::getString(module.getContext(), needs);
  // The module owns it.
  new llvm::GlobalVariable(module, text->getType(), /*isConstant=*/true, llvm::GlobalValue::ExternalLinkage, text,
                           kObjectNeeds);
}

}  // namespace

namespace {

/// Bytes that a block of threads can share on a GPU of `architecture` (CUDA C++ Programming Guide, "Technical
/// Specifications per Compute Capability").
int64_t SharedBytes(const std::string& architecture) {
  constexpr int64_t kKilobyte = 1024;
  if (architecture.starts_with("sm_86") || architecture.starts_with("sm_89") || architecture.starts_with("sm_12")) {
    return 99 * kKilobyte;
  }
  return (architecture.starts_with("sm_9") || architecture.starts_with("sm_10") ? 227 : 163) * kKilobyte;
}

int64_t LeastSharedBytes(const NativeOptions& options) {
  int64_t least = SharedBytes(options.cpu);
  for (const std::string& gpu : options.further_gpus) least = std::min(least, SharedBytes(gpu));
  return least;
}

}  // namespace

TargetInfo TargetOf(const NativeOptions& options) {
  if (options.is_for_gpu()) {
    const bool is_hopper = options.cpu == "sm_90a" && options.further_gpus.empty();
    constexpr int64_t kProcessors = 108;  // an A100's; later ones of its kind have more, smaller ones fewer
    // The many warps of a GPU share even short rows and small partitions.
    return {.vector_lanes = kWarpLanes,
            .has_bfloat16_products = true,
            .has_byte_products = true,
            .has_tensor_cores = true,
            .has_warpgroups = is_hopper || options.cpu == cuda_driver::kEmulatedArchitecture,
            .prefers_warpgroups = is_hopper,
            .block_shared_bytes = LeastSharedBytes(options),
            .processors = kProcessors,
            .chunk = 8 * kWarpLanes,
            .thread_flops = 0,
            .is_this_kind = false};
  }
  const Cpu cpu = CpuOf(options);
  const std::unique_ptr<llvm::TargetMachine> machine = MakeTargetMachine(cpu);
  const int lanes = LanesOf(*machine);
  TargetInfo info{.vector_lanes = lanes};
  // Zen 4 has units of 32 bytes; vectors of 64 pass them in two steps.
  info.has_whole_units = lanes < 16 || machine->getTargetCPU() != "znver4";
  info.has_bfloat16_products = lanes == 16 && Has(*machine, "+avx512bf16");
  info.has_int16_products = Has(*machine, lanes == 16 ? "+avx512bw" : "+sse2");
  // Vectors narrower than the widest have them, too: by AVX512-VL, which those of 16 lanes imply, or by AVX-VNNI.
  info.has_byte_products = info.has_int16_products && Has(*machine, lanes == 16 ? "+avx512vnni" : "+avxvnni");
  info.has_byte_pairs = Has(*machine, lanes == 16 ? "+avx512bw" : lanes == 8 ? "+avx2" : "+ssse3");
  info.is_this_kind =
      machine->getTargetTriple().getArch() == llvm::Triple(llvm::sys::getDefaultTargetTriple()).getArch();
  return info;
}

namespace {

/// MLIR translated to LLVM IR and optimised for one processor.
class OptimisedModule {
 public:
  /// Throws kInternal with MLIR's diagnostics.
  OptimisedModule(const std::string& text, const Cpu& cpu) : machine_(MakeTargetMachine(cpu)) {
    WithDiagnostics([&] { Make(text, cpu); });
  }

  llvm::Module& module() { return *module_; }
  llvm::TargetMachine& machine() { return *machine_; }

 private:
  void Make(const std::string& text, const Cpu& cpu) {
    const mlir::OwningOpRef<mlir::ModuleOp> parsed = ParseMlir(text);
    const bool has_bfloat16 = Has(*machine_, "+avx512bf16");
    Lower(*parsed, !has_bfloat16 && text.find("bf16") != std::string::npos);
    module_ = Translate(*parsed, context_, *machine_);
    RelaxMath(*module_, cpu, LanesOf(*machine_));
    RecordNeeds(*module_, *machine_);
    Optimise(*module_, *machine_);
  }

  std::unique_ptr<llvm::TargetMachine> machine_;
  llvm::LLVMContext context_;
  std::unique_ptr<llvm::Module> module_;
};

std::vector<std::byte> CompileNew(const std::string& text, const Cpu& cpu) {
  OptimisedModule optimised(text, cpu);
  return Link(Emit(optimised.module(), optimised.machine(), llvm::CodeGenFileType::ObjectFile), cpu);
}

}  // namespace

std::vector<std::byte> CompileMlir(const std::string& text, const NativeOptions& options) {
  // Layers that repeat have the same text; only their constants differ.
  const Cpu cpu = CpuOf(options);
  const std::string made_from = fmt::format("LLVM {} {}\n{} {} {}\n{}", LLVM_VERSION_STRING, LinkerFor(cpu).program,
                                            cpu.triple.str(), cpu.name, cpu.features, text);
  return FindOrMakeObject(made_from, [&] { return CompileNew(text, cpu); });
}

CodeListing ListCode(const std::string& text, const NativeOptions& options) {
  OptimisedModule optimised(text, CpuOf(options));
  CodeListing listing;
  llvm::raw_string_ostream stream(listing.llvm_ir);
  optimised.module().print(stream, nullptr);
  const llvm::SmallVector<char> assembly =
      Emit(optimised.module(), optimised.machine(), llvm::CodeGenFileType::AssemblyFile);
  listing.assembly.assign(assembly.data(), assembly.size());
  return listing;
}

}  // namespace collage::native
