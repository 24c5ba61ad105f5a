// pass_table.cc: the passes, one row each: name, level, what must run first, what it does. Whoever adds a pass adds a
// row.
#include <array>

#include "collage/transform/passes.h"
#include "transform/passes.h"

namespace collage {
namespace {

ModulePass Each(Function (*pass)(const Function&)) {
  return OnEachFunction(
      [pass](const Function& function, const IRModule&, const PassContext&) { return pass(function); });
}

IRModule InferTypePass(IRModule module, const PassContext&) { return module; }  // RunPass infers

}  // namespace

std::span<const Pass> AllPasses() {
  static const std::array passes{
      Pass{"EliminateCommonSubexpr",
           3,
           {"InferType"},
           "equal calls of equal arguments are made once",
           Each(EliminateCommonSubexpr)},
      Pass{"FoldConstant", 2, {"InferType"}, "calls of constants become constants", Each(FoldConstant)},
      Pass{"FoldScaleAxis",
           3,
           {"InferType"},
           "per-channel factors behind convolutions and dense layers go into their weights",
           Each(FoldScaleAxis)},
      Pass{"InferType", 0, {}, "types are inferred and checked", InferTypePass},
      Pass{"SimplifyExpr", 0, {"InferType"}, "identities vanish, padding goes into convolutions", Each(SimplifyExpr)},
      Pass{"SimplifyInference",
           0,
           {"InferType"},
           "batch_norm becomes multiply and add, dropout vanishes",
           Each(SimplifyInference)},
  };
  return passes;
}

}  // namespace collage
