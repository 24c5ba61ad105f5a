// codegen.cc: the one file that sees MLIR and LLVM.
#include "backends/native/compiler/driver/codegen.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "backends/native/compiler/driver/object_cache.h"
#include "collage/support/error.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/Transforms/Scalar/LoopIdiomRecognize.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"
#include "runtime/native_loader.h"
#include "support/environment.h"
#include "support/file.h"
#include "support/machine.h"

extern char** environ;

namespace collage::native {
namespace {

/// The processor that code is made for, complete even where options leave it out.
struct Cpu {
  llvm::Triple triple;
  std::string name;
  std::string features;
  const llvm::Target* target = nullptr;
};

std::string HostFeatures() {
  std::string features;
  for (const auto& feature : llvm::sys::getHostCPUFeatures()) {
    features += (features.empty() ? "" : ",") + std::string(feature.second ? "+" : "-") + feature.first().str();
  }
  return features;
}

std::unique_ptr<llvm::TargetMachine> MakeTargetMachine(const Cpu& cpu) {
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Fast;
  return std::unique_ptr<llvm::TargetMachine>(cpu.target->createTargetMachine(
      cpu.triple, cpu.name, cpu.features, options, llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

/// LLVM goes on without what it does not know; that is refused here.
void CheckIsKnown(const Cpu& cpu) {
  const std::unique_ptr<llvm::TargetMachine> any = MakeTargetMachine({cpu.triple, "", "", cpu.target});
  const llvm::MCSubtargetInfo& known = *any->getMCSubtargetInfo();
  if (!known.isCPUStringValid(cpu.name)) {
    throw Error(ErrorCategory::kInput,
                fmt::format("LLVM knows no processor '{}' of {}", cpu.name, cpu.triple.getArchName().str()));
  }
  llvm::SmallVector<llvm::StringRef> wanted;
  llvm::StringRef(cpu.features).split(wanted, ',', -1, /*KeepEmpty=*/false);
  for (const llvm::StringRef feature : wanted) {
    const auto is_it = [&](const llvm::SubtargetFeatureKV& one) { return feature.drop_front() == one.Key; };
    if (std::none_of(known.getAllProcessorFeatures().begin(), known.getAllProcessorFeatures().end(), is_it)) {
      throw Error(ErrorCategory::kInput, fmt::format("LLVM knows no instruction set '{}' of {}",
                                                     feature.drop_front().str(), cpu.triple.getArchName().str()));
    }
  }
}

Cpu CpuOf(const NativeOptions& options) {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
  });
  const llvm::Triple host(llvm::sys::getDefaultTargetTriple());
  Cpu cpu;
  cpu.triple = options.triple.empty() ? host : llvm::Triple(llvm::Triple::normalize(options.triple));
  const bool is_host = cpu.triple.getArch() == host.getArch();
  if (!is_host) {
    static std::once_flag others;
    std::call_once(others, [] {
      llvm::InitializeAllTargetInfos();
      llvm::InitializeAllTargets();
      llvm::InitializeAllTargetMCs();
      llvm::InitializeAllAsmPrinters();
    });
  }
  if (!cpu.triple.isOSBinFormatELF() || !(cpu.triple.isX86_64() || cpu.triple.isAArch64())) {
    throw Error(ErrorCategory::kInput,
                "native code is made for x86-64 and AArch64 with ELF, not for '" + options.triple + "'");
  }
  std::string problem;
  cpu.target = llvm::TargetRegistry::lookupTarget(cpu.triple, problem);
  if (cpu.target == nullptr) throw Error(ErrorCategory::kUnavailable, "this LLVM makes no such code: " + problem);
  const std::optional<std::string> variable = GetEnvironment("COLLAGE_CPU");
  cpu.name = options.cpu.empty() && variable && is_host ? *variable : options.cpu;
  const bool is_this_machine = is_host && (cpu.name == "native" || (cpu.name.empty() && options.triple.empty()));
  if (is_this_machine) {
    cpu.name = llvm::sys::getHostCPUName().str();
    cpu.features = HostFeatures();
  } else if (cpu.name.empty()) {
    cpu.name = is_host ? "x86-64" : "generic";
  }
  if (!options.attributes.empty()) cpu.features += (cpu.features.empty() ? "" : ",") + options.attributes;
  if (!is_this_machine || !options.attributes.empty()) CheckIsKnown(cpu);
  return cpu;
}

/// `expand_bfloat16`: conversions from and to it become integer arithmetic. Without instructions for them, they would
/// call a library that kernels are not linked with.
void Lower(mlir::ModuleOp module, bool expand_bfloat16) {
  mlir::PassManager passes(module.getContext());
  if (expand_bfloat16) {
    mlir::arith::ArithExpandOpsPassOptions options;
    options.includeBf16 = true;
    passes.addPass(mlir::arith::createArithExpandOpsPass(options));
  }
  passes.addPass(mlir::createCanonicalizerPass());
  passes.addPass(mlir::createCSEPass());
  passes.addPass(mlir::createSCFToControlFlowPass());
  passes.addPass(mlir::createConvertMathToLLVMPass());
  passes.addPass(mlir::createConvertMathToLibmPass());
  passes.addPass(mlir::createConvertVectorToLLVMPass());
  passes.addPass(mlir::createArithToLLVMConversionPass());
  passes.addPass(mlir::createConvertControlFlowToLLVMPass());
  passes.addPass(mlir::createConvertFuncToLLVMPass());
  passes.addPass(mlir::createReconcileUnrealizedCastsPass());
  if (mlir::failed(passes.run(module))) throw Error(ErrorCategory::kInternal, "MLIR passes failed");
}

/// Floating-point freedom that does not change what NaN and infinity mean: sums may be reordered and fused.
void RelaxMath(llvm::Module& module, const Cpu& cpu, int lanes) {
  llvm::FastMathFlags flags;
  flags.setFast();
  flags.setNoNaNs(false);
  flags.setNoInfs(false);
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    function.addFnAttr("target-cpu", cpu.name);
    if (!cpu.features.empty()) function.addFnAttr("target-features", cpu.features);
    function.addFnAttr("prefer-vector-width", std::to_string(lanes * 32));
    for (llvm::BasicBlock& block : function) {
      for (llvm::Instruction& instruction : block) {
        // Instructions that came with flags of their own, and conversions, must round as they stand.
        const bool is_math = llvm::isa<llvm::FPMathOperator>(instruction) && !llvm::isa<llvm::CastInst>(instruction);
        if (is_math && !instruction.getFastMathFlags().any()) instruction.setFastMathFlags(flags);
      }
    }
  }
}

/// Masked stores of one lane become plain ones. If an integer was truncated before, LLVM 22 would write all the
/// bytes that it had, over its neighbours.
void StoreSingleLanesPlainly(llvm::Module& module) {
  std::vector<llvm::IntrinsicInst*> stores;
  for (llvm::Function& function : module) {
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
      auto* const call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
      if (call != nullptr && call->getIntrinsicID() == llvm::Intrinsic::masked_store) stores.push_back(call);
    }
  }
  for (llvm::IntrinsicInst* store : stores) {
    llvm::Value* const vector = store->getArgOperand(0);
    const auto* const mask = llvm::dyn_cast<llvm::Constant>(store->getArgOperand(2));
    if (mask == nullptr) continue;
    int num_stored = 0;
    unsigned last = 0;
    const unsigned lanes = llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements();
    for (unsigned lane = 0; lane < lanes; ++lane) {
      const llvm::Constant* is_stored = mask->getAggregateElement(lane);
      if (is_stored == nullptr || !is_stored->isZeroValue()) {
        ++num_stored;
        last = lane;
      }
    }
    if (num_stored != 1) continue;
    llvm::IRBuilder<> builder(store);
    llvm::Value* const element = builder.CreateExtractElement(vector, last);
    llvm::Value* const address = builder.CreateConstGEP1_64(element->getType(), store->getArgOperand(1), last);
    const llvm::Align alignment = llvm::commonAlignment(
        store->getParamAlign(1).valueOrOne(), last * module.getDataLayout().getTypeStoreSize(element->getType()));
    builder.CreateAlignedStore(element, address, alignment);
    store->eraseFromParent();
  }
}

void Optimise(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  // Looking for loops that compute a CRC, LLVM 22 walks all paths of a loop's expressions, twice as many for each value
  // that is used twice: of unrolled integer products it does not come to an end. Kernels compute none.
  llvm::DisableLIRP::HashRecognize = true;
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
  StoreSingleLanesPlainly(module);
}

/// An object file or assembly. Changes `module` on the way.
llvm::SmallVector<char> Emit(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType kind) {
  llvm::SmallVector<char> code;
  llvm::raw_svector_ostream stream(code);
  llvm::legacy::PassManager emitter;
  if (machine.addPassesToEmitFile(emitter, stream, nullptr, kind)) {
    throw Error(ErrorCategory::kInternal, "LLVM cannot emit code for this machine");
  }
  emitter.run(module);
  return code;
}

/// Chooses the system's own linker for this machine's objects: it starts in a sixth of the time that lld takes, and a
/// kernel is so small that linking costs little else. lld links for all other processors.
std::string LinkerFor(const Cpu& cpu) {
  const std::string chosen = GetEnvironment("COLLAGE_LINKER").value_or("");
  if (!chosen.empty()) return chosen;
  const bool is_host = cpu.triple.getArch() == llvm::Triple(llvm::sys::getDefaultTargetTriple()).getArch();
  return is_host && access(COLLAGE_LD, X_OK) == 0 ? COLLAGE_LD : COLLAGE_LLD;
}

std::vector<std::byte> Link(const llvm::SmallVector<char>& object, const Cpu& cpu) {
  const TemporaryFolder folder;
  const std::string input = (folder / "kernel.o").string();
  const std::string output = (folder / "kernel.so").string();
  WriteFile(input, {object.data(), object.size()});
  const std::string program = LinkerFor(cpu);
  std::vector<std::string> words{program, "-shared", "-z", "noseparate-code", "-o", output, input};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  int status = 1;
  const int code = posix_spawnp(&child, program.c_str(), nullptr, nullptr, argv.data(), environ);
  if (code != 0) {
    throw Error(ErrorCategory::kUnavailable,
                fmt::format("cannot run the linker '{}': {}", program, std::strerror(code)));
  }
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0) throw Error(ErrorCategory::kInternal, "linking a kernel failed");
  const std::string linked = ReadFile(output);
  const auto* bytes = reinterpret_cast<const std::byte*>(linked.data());
  return {bytes, bytes + linked.size()};
}

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

mlir::MLIRContext& Context() {
  static mlir::MLIRContext* const context = [] {
    mlir::DialectRegistry registry;
    registry
        .insert<mlir::arith::ArithDialect, mlir::cf::ControlFlowDialect, mlir::func::FuncDialect,
                mlir::LLVM::LLVMDialect, mlir::math::MathDialect, mlir::scf::SCFDialect, mlir::vector::VectorDialect>();
    mlir::registerBuiltinDialectTranslation(registry);
    mlir::registerLLVMDialectTranslation(registry);
    auto* made = new mlir::MLIRContext(registry, mlir::MLIRContext::Threading::DISABLED);
    made->loadAllAvailableDialects();
    return made;
  }();
  return *context;
}

}  // namespace

TargetInfo TargetOf(const NativeOptions& options) {
  const std::unique_ptr<llvm::TargetMachine> machine = MakeTargetMachine(CpuOf(options));
  const int lanes = LanesOf(*machine);
  TargetInfo info{.vector_lanes = lanes};
  // Zen 4 has units of 32 bytes; vectors of 64 pass them in two steps.
  info.has_whole_units = lanes < 16 || machine->getTargetCPU() != "znver4";
  info.has_bfloat16_products = lanes == 16 && Has(*machine, "+avx512bf16");
  info.has_int16_products = Has(*machine, lanes == 16 ? "+avx512bw" : "+sse2");
  // Vectors narrower than the widest have them, too: by AVX512-VL, which those of 16 lanes imply, or by AVX-VNNI.
  info.has_byte_products = info.has_int16_products && Has(*machine, lanes == 16 ? "+avx512vnni" : "+avxvnni");
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
    std::string diagnostics;
    const mlir::ScopedDiagnosticHandler handler(&Context(), [&](mlir::Diagnostic& diagnostic) {
      diagnostics += (diagnostics.empty() ? "" : "; ") + diagnostic.str();
      return mlir::success();
    });
    try {
      Make(text, cpu);
    } catch (const Error& error) {
      if (diagnostics.empty()) throw;
      throw Error(error.category(), error.message() + ": " + diagnostics.substr(0, 600));
    }
  }

  llvm::Module& module() { return *module_; }
  llvm::TargetMachine& machine() { return *machine_; }

 private:
  void Make(const std::string& text, const Cpu& cpu) {
    mlir::OwningOpRef<mlir::ModuleOp> parsed = mlir::parseSourceString<mlir::ModuleOp>(text, &Context());
    if (!parsed) throw Error(ErrorCategory::kInternal, "generated MLIR does not parse");
    const bool has_bfloat16 = Has(*machine_, "+avx512bf16");
    Lower(*parsed, !has_bfloat16 && text.find("bf16") != std::string::npos);
    module_ = mlir::translateModuleToLLVMIR(*parsed, context_);
    if (!module_) throw Error(ErrorCategory::kInternal, "generated MLIR does not translate to LLVM IR");
    module_->setDataLayout(machine_->createDataLayout());
    module_->setTargetTriple(machine_->getTargetTriple());
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
  const std::string made_from = fmt::format("LLVM {} {}\n{} {} {}\n{}", LLVM_VERSION_STRING, LinkerFor(cpu),
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
