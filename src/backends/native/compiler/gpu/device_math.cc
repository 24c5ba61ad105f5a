// device_math.cc: LLVM's intrinsics and C's functions by the names of libdevice.
#include "backends/native/compiler/gpu/device_math.h"

#include <array>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "collage/support/error.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Transforms/IPO/Internalize.h"

namespace collage::native {
namespace {

/// A function of double; that of float has an f behind its name.
struct MathFunction {
  const char* name;
  llvm::Intrinsic::ID intrinsic;  ///< not_intrinsic where there is none
};

constexpr std::array kFunctions{
    MathFunction{"acos", llvm::Intrinsic::acos},
    MathFunction{"asin", llvm::Intrinsic::asin},
    MathFunction{"atan", llvm::Intrinsic::atan},
    MathFunction{"cos", llvm::Intrinsic::cos},
    MathFunction{"cosh", llvm::Intrinsic::cosh},
    MathFunction{"erf", llvm::Intrinsic::not_intrinsic},
    MathFunction{"exp", llvm::Intrinsic::exp},
    MathFunction{"exp2", llvm::Intrinsic::exp2},
    MathFunction{"log", llvm::Intrinsic::log},
    MathFunction{"log10", llvm::Intrinsic::log10},
    MathFunction{"log1p", llvm::Intrinsic::not_intrinsic},
    MathFunction{"log2", llvm::Intrinsic::log2},
    MathFunction{"pow", llvm::Intrinsic::pow},
    MathFunction{"sin", llvm::Intrinsic::sin},
    MathFunction{"sinh", llvm::Intrinsic::sinh},
    MathFunction{"tan", llvm::Intrinsic::tan},
    MathFunction{"tanh", llvm::Intrinsic::tanh},
};

/// The name that C's library has for what `call` computes; empty where it is none of the table.
std::string NameOf(const llvm::CallInst& call) {
  const llvm::Function* callee = call.getCalledFunction();
  if (callee == nullptr) return "";
  const char* suffix = call.getType()->isFloatTy() ? "f" : "";
  for (const MathFunction& one : kFunctions) {
    const bool is_it = one.intrinsic != llvm::Intrinsic::not_intrinsic && callee->getIntrinsicID() == one.intrinsic;
    if (is_it) return std::string(one.name) + suffix;
  }
  return IsMathFunction(callee->getName()) ? callee->getName().str() : "";
}

std::unique_ptr<llvm::Module> OpenLibrary(llvm::LLVMContext& context, const std::string& file,
                                          const std::string& wanted) {
  llvm::SMDiagnostic problem;
  std::unique_ptr<llvm::Module> library = llvm::parseIRFile(file, problem, context);
  if (library == nullptr) {
    throw Error(ErrorCategory::kUnavailable,
                "a GPU has no instruction for '" + wanted + "', and there is no '" + file + "'", "cuda",
                "install NVIDIA's CUDA toolkit and set CUDA_HOME, or run ./setup gpu");
  }
  return library;
}

}  // namespace

bool IsMathFunction(llvm::StringRef name) {
  for (const MathFunction& one : kFunctions) {
    if (name == one.name || (name.ends_with("f") && name.drop_back() == one.name)) return true;
  }
  return false;
}

void DefineMath(llvm::Module& module, const std::string& file) {
  std::vector<llvm::CallInst*> calls;
  std::string wanted;
  for (llvm::Function& function : module) {
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
      auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
      if (call == nullptr || NameOf(*call).empty()) continue;
      calls.push_back(call);
      wanted = NameOf(*call);
    }
  }
  if (calls.empty()) return;
  std::unique_ptr<llvm::Module> library = OpenLibrary(module.getContext(), file, wanted);
  library->setDataLayout(module.getDataLayout());
  library->setTargetTriple(module.getTargetTriple());
  llvm::StringSet<> own;
  for (const llvm::Function& function : module) {
    if (!function.isDeclaration()) own.insert(function.getName());
  }
  for (llvm::CallInst* call : calls) {
    const llvm::FunctionCallee callee = module.getOrInsertFunction("__nv_" + NameOf(*call), call->getFunctionType());
    call->setCalledFunction(callee);
  }
  if (llvm::Linker::linkModules(module, std::move(library), llvm::Linker::LinkOnlyNeeded)) {
    throw Error(ErrorCategory::kInternal, "NVIDIA's libdevice cannot be linked");
  }
  llvm::internalizeModule(module, [&](const llvm::GlobalValue& value) {
    return own.contains(value.getName()) && !value.hasLocalLinkage();
  });
}

}  // namespace collage::native
