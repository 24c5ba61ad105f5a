// launches.cc: entry points are sequences of calls whose bounds are constants, and loops of such.
#include "backends/native/compiler/gpu/launches.h"

#include <algorithm>
#include <optional>

#include "collage/support/error.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"

namespace collage::native {
namespace {

constexpr const char* kEntry = "collage_kernel";
constexpr const char* kParallelFor = "collage_parallel_for";

[[noreturn]] void Refuse(mlir::Operation& operation) {
  throw Error(ErrorCategory::kUnsupported,
              "a GPU's kernels cannot be called as '" + operation.getName().getStringRef().str() + "' says");
}

int64_t ConstantOf(mlir::Value value) {
  mlir::APInt number;
  if (mlir::matchPattern(value, mlir::m_ConstantInt(&number))) return number.getSExtValue();
  throw Error(ErrorCategory::kUnsupported, "how often a GPU's kernels are called is known in a run only");
}

/// A number in memory, and its value from now on.
struct Counter {
  int slot = -1;
  int64_t offset = 0;
  int64_t value = 0;
};

class CallReader {
 public:
  explicit CallReader(mlir::func::FuncOp entry) : entry_(entry) {}

  KernelCalls Read() {
    Read(entry_.getBody().front());
    return std::move(calls_);
  }

 private:
  void Read(mlir::Block& block) {
    for (mlir::Operation& operation : block) {
      if (auto call = mlir::dyn_cast<mlir::func::CallOp>(operation)) {
        ReadCall(call);
      } else if (auto loop = mlir::dyn_cast<mlir::scf::ForOp>(operation)) {
        ReadLoop(loop);
      } else if (auto store = mlir::dyn_cast<mlir::LLVM::StoreOp>(operation)) {
        ReadStore(store);
      } else if (operation.getNumRegions() > 0) {
        Refuse(operation);
      }
      // All else computes what calls are given.
    }
  }

  void ReadCall(mlir::func::CallOp call) {
    if (call.getCallee() == kParallelFor) {
      auto cast = call.getOperand(1).getDefiningOp<mlir::UnrealizedConversionCastOp>();
      auto function = cast ? cast.getInputs()[0].getDefiningOp<mlir::func::ConstantOp>() : nullptr;
      if (!function) Refuse(*call);
      return Add(function.getValue().str(), ConstantOf(call.getOperand(0)), /*is_parallel=*/true);
    }
    if (call.getNumOperands() != 3 || ConstantOf(call.getOperand(1)) != 0) Refuse(*call);
    Add(call.getCallee().str(), ConstantOf(call.getOperand(2)), /*is_parallel=*/false);
  }

  void Add(const std::string& function, int64_t count, bool is_parallel) {
    if (count < 1) return;
    auto known = std::ranges::find(calls_.functions, function);
    if (known == calls_.functions.end()) known = calls_.functions.insert(known, function);
    cuda_driver::Launch launch;
    launch.function = static_cast<int>(known - calls_.functions.begin());
    launch.count = count;
    launch.grain = is_parallel ? 1 : count;
    if (counter_) {
      launch.counter_slot = counter_->slot;
      launch.counter_offset = counter_->offset;
      launch.counter = counter_->value;
      counter_.reset();
    }
    calls_.launches.push_back(launch);
  }

  void ReadLoop(mlir::scf::ForOp loop) {
    const int64_t begin = ConstantOf(loop.getLowerBound());
    const int64_t end = ConstantOf(loop.getUpperBound());
    const int64_t step = ConstantOf(loop.getStep());
    for (int64_t i = begin; i < end; i += step) {
      iteration_ = {loop.getInductionVar(), i};
      Read(*loop.getBody());
    }
  }

  /// The number of an iteration, stored for the calls behind it.
  void ReadStore(mlir::LLVM::StoreOp store) {
    auto step = store.getAddr().getDefiningOp<mlir::LLVM::GEPOp>();
    auto base = step ? step.getBase().getDefiningOp<mlir::LLVM::LoadOp>() : nullptr;
    auto slot = base ? base.getAddr().getDefiningOp<mlir::LLVM::GEPOp>() : nullptr;
    if (store.getValue() != iteration_.first || !slot || slot.getBase() != entry_.getArgument(0)) Refuse(*store);
    counter_ = {static_cast<int>(IndexOf(slot)), IndexOf(step), iteration_.second};
  }

  static int64_t IndexOf(mlir::LLVM::GEPOp step) {
    const llvm::ArrayRef<int32_t> indices = step.getRawConstantIndices();
    if (indices.size() != 1 || indices[0] == mlir::LLVM::GEPOp::kDynamicIndex) Refuse(*step);
    return indices[0];
  }

  mlir::func::FuncOp entry_;
  KernelCalls calls_;
  std::pair<mlir::Value, int64_t> iteration_;
  std::optional<Counter> counter_;
};

}  // namespace

KernelCalls TakeCalls(mlir::ModuleOp module) {
  auto entry = module.lookupSymbol<mlir::func::FuncOp>(kEntry);
  if (!entry) throw Error(ErrorCategory::kInternal, "generated MLIR has no entry point");
  KernelCalls calls = CallReader(entry).Read();
  entry.erase();
  return calls;
}

}  // namespace collage::native
