// llvm_steps.h: what every way from MLIR text to code does.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/native/description/options.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/CodeGen.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

namespace collage::native {

/// The processor that code is made for, complete even where options leave it out.
struct Cpu {
  llvm::Triple triple;
  std::string name;
  std::string features;
  const llvm::Target* target = nullptr;
};

/// The processor that `options` say. Throws kInput for what LLVM does not know.
Cpu CpuOf(const NativeOptions& options);
/// The processor of this machine.
Cpu HostCpu();

std::unique_ptr<llvm::TargetMachine> MakeTargetMachine(const Cpu& cpu);

/// The context of this process, with all dialects that kernels are written in.
mlir::MLIRContext& Context();

/// Calls `make`, and adds what MLIR says meanwhile to the error that it throws.
void WithDiagnostics(const std::function<void()>& make);

/// Throws kInternal for text that is no module.
mlir::OwningOpRef<mlir::ModuleOp> ParseMlir(const std::string& text);

/// Lowers a module to the dialect llvm. `expand_bfloat16`: conversions from and to it become integer arithmetic.
/// Without instructions for them, they would call a library that kernels are not linked with.
void Lower(mlir::ModuleOp module, bool expand_bfloat16);

/// The LLVM IR of a lowered module, for the machine `machine` makes code for. Throws kInternal.
std::unique_ptr<llvm::Module> Translate(mlir::ModuleOp module, llvm::LLVMContext& context,
                                        const llvm::TargetMachine& machine);

/// Gives floating-point operations such freedom as does not change what NaN and infinity mean: sums may be reordered
/// and fused. Names the processor in all functions.
void RelaxMath(llvm::Module& module, const Cpu& cpu, int lanes);

/// LLVM's passes at -O3.
void Optimise(llvm::Module& module, llvm::TargetMachine& machine);

/// An object file or assembly. Changes `module` on the way.
llvm::SmallVector<char> Emit(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType kind);

}  // namespace collage::native
