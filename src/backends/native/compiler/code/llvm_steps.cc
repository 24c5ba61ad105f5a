// llvm_steps.cc: passes of MLIR and LLVM in the order in which kernels need them.
#include "backends/native/compiler/code/llvm_steps.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/native/compiler/code/object_cache.h"
#include "backends/native/compiler/code/targets.h"
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
#include "support/machine.h"

namespace collage::native {

namespace {

std::string HostFeatures() {
  std::string features;
  for (const auto& feature : llvm::sys::getHostCPUFeatures()) {
    features += (features.empty() ? "" : ",") + std::string(feature.second ? "+" : "-") + feature.first().str();
  }
  return features;
}

}  // namespace

std::unique_ptr<llvm::TargetMachine> MakeTargetMachine(const Cpu& cpu) {
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Fast;
  return std::unique_ptr<llvm::TargetMachine>(cpu.target->createTargetMachine(
      cpu.triple, cpu.name, cpu.features, options, llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

namespace {

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

const llvm::Target& TargetFor(const llvm::Triple& triple) {
  std::string problem;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, problem);
  if (target == nullptr) throw Error(ErrorCategory::kUnavailable, "this LLVM makes no such code: " + problem);
  return *target;
}

/// GPUs of one generation know PTX up to a version, that of the driver which came with them.
std::string PtxFeature(const std::string& architecture) {
  const auto generation = [&](const char* name) { return architecture.starts_with(name); };
  if (generation("sm_12")) return "+ptx87";
  if (architecture == "sm_90a") return "+ptx84";  // wgmma of bytes without sign by such with one
  return generation("sm_10") ? "+ptx86" : "+ptx80";
}

}  // namespace

Cpu HostCpu() {
  InitialiseTargets();
  Cpu cpu{llvm::Triple(llvm::sys::getDefaultTargetTriple()), llvm::sys::getHostCPUName().str(), HostFeatures()};
  cpu.target = &TargetFor(cpu.triple);
  return cpu;
}

Cpu CpuOf(const NativeOptions& options) {
  InitialiseTargets();
  const llvm::Triple host(llvm::sys::getDefaultTargetTriple());
  Cpu cpu;
  cpu.triple = options.triple.empty() ? host : llvm::Triple(llvm::Triple::normalize(options.triple));
  const bool is_host = cpu.triple.getArch() == host.getArch();
  const bool is_processor = cpu.triple.isOSBinFormatELF() && (cpu.triple.isX86_64() || cpu.triple.isAArch64());
  if (!is_processor && !cpu.triple.isNVPTX()) {
    throw Error(
        ErrorCategory::kInput,
        "native code is made for x86-64 and AArch64 with ELF and for nvptx64, not for '" + options.triple + "'");
  }
  cpu.target = &TargetFor(cpu.triple);
  const std::optional<std::string> variable = GetEnvironment("COLLAGE_CPU");
  cpu.name = options.cpu.empty() && variable && is_host ? *variable : options.cpu;
  const bool is_this_machine = is_host && (cpu.name == "native" || (cpu.name.empty() && options.triple.empty()));
  if (is_this_machine) {
    cpu.name = llvm::sys::getHostCPUName().str();
    cpu.features = HostFeatures();
  } else if (cpu.name.empty()) {
    cpu.name = is_host ? "x86-64" : "generic";
  }
  if (cpu.triple.isNVPTX()) cpu.features = PtxFeature(cpu.name);
  if (!options.attributes.empty()) cpu.features += (cpu.features.empty() ? "" : ",") + options.attributes;
  if (!is_this_machine || !options.attributes.empty()) CheckIsKnown(cpu);
  return cpu;
}

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

namespace {

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

}  // namespace

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

void WithDiagnostics(const std::function<void()>& make) {
  std::string diagnostics;
  const mlir::ScopedDiagnosticHandler handler(&Context(), [&](mlir::Diagnostic& diagnostic) {
    diagnostics += (diagnostics.empty() ? "" : "; ") + diagnostic.str();
    return mlir::success();
  });
  try {
    make();
  } catch (const Error& error) {
    if (diagnostics.empty()) throw;
    throw Error(error.category(), error.message() + ": " + diagnostics.substr(0, 600));
  }
}

mlir::OwningOpRef<mlir::ModuleOp> ParseMlir(const std::string& text) {
  mlir::OwningOpRef<mlir::ModuleOp> parsed = mlir::parseSourceString<mlir::ModuleOp>(text, &Context());
  if (!parsed) throw Error(ErrorCategory::kInternal, "generated MLIR does not parse");
  return parsed;
}

std::unique_ptr<llvm::Module> Translate(mlir::ModuleOp module, llvm::LLVMContext& context,
                                        const llvm::TargetMachine& machine) {
  std::unique_ptr<llvm::Module> translated = mlir::translateModuleToLLVMIR(module, context);
  if (!translated) throw Error(ErrorCategory::kInternal, "generated MLIR does not translate to LLVM IR");
  translated->setDataLayout(machine.createDataLayout());
  translated->setTargetTriple(machine.getTargetTriple());
  return translated;
}

}  // namespace collage::native
