// pass_table.cc: the passes, one row each: name, level, passes that must run first, summary. To add a pass, add a
// row. Passes of later stages are added by those.
#include <algorithm>
#include <deque>
#include <utility>

#include "collage/support/error.h"
#include "collage/transform/passes.h"
#include "partition/passes.h"
#include "transform/passes.h"

namespace collage {
namespace {

ModulePass Each(Function (*pass)(const Function&)) {
  return OnEachFunction(
      [pass](const Function& function, const IRModule&, const PassContext&) { return pass(function); });
}

IRModule InferTypePass(IRModule module, const PassContext&) { return module; }  // RunPass infers

std::deque<Pass> PassesOfThisStage() {
  return {
      Pass{"AlterOpLayout",
           3,
           {"InferType"},
           "convolutions go into the layout in which processors are fast",
           Each(AlterOpLayout)},
      Pass{"AnnotateTarget",
           0,
           {"InferType"},
           "what toolchains take is put between compiler_begin and compiler_end",
           OnEachFunction(AnnotateTarget)},
      Pass{"CanonicalizeOps", 3, {"InferType"}, "bias_add becomes expand_dims and add", Each(CanonicalizeOps)},
      Pass{"CapturePostDfsIndexInSpans",
           0,
           {"InferType"},
           "spans say each node's place in the dataflow graph",
           Each(CapturePostDfsIndexInSpans)},
      Pass{"CombineParallelBatchMatmul",
           4,
           {"InferType"},
           "batch products of one left factor become a wider one",
           OnEachFunction(CombineParallelBatchMatmul)},
      Pass{"CombineParallelConv2D",
           4,
           {"InferType"},
           "convolutions of one value, and what follows them alike, become one with more channels",
           OnEachFunction(CombineParallelConv2D)},
      Pass{"CombineParallelDense",
           4,
           {"InferType"},
           "dense layers of one value become a batch product or a wider layer",
           OnEachFunction(CombineParallelDense)},
      Pass{"ConvertLayout",
           3,
           {"InferType"},
           "operators go into the layouts that are asked for",
           OnEachFunction(ConvertLayout)},
      Pass{"DeadCodeElimination",
           1,
           {"InferType"},
           "variables that nothing uses are not bound",
           OnEachFunction(DeadCodeElimination)},
      Pass{"DefuseOps", 3, {"InferType"}, "calls of primitive functions become their bodies", Each(DefuseOps)},
      Pass{"DuplicateDequantize",
           0,
           {"InferType"},
           "every reader of dequantised values dequantises them itself",
           Each(DuplicateDequantize)},
      Pass{"DynamicToStatic",
           2,
           {"InferType"},
           "operators whose computed shapes are known become static ones",
           OnEachFunction(DynamicToStatic)},
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
      Pass{"FuseOps",
           0,
           {"InferType"},
           "operators become primitive functions, one kernel each, by kind and dominators",
           OnEachFunction(FuseOps)},
      Pass{"InferType", 0, {}, "types are inferred and checked", InferTypePass},
      Pass{"Inline", 1, {}, "global functions with attribute Inline go where they are called", Inline},
      Pass{"InlineComposites", 0, {}, "Composites in no partition become their bodies", Each(InlineComposites)},
      Pass{"LambdaLift", 1, {"InferType"}, "functions within functions become global", LambdaLift},
      Pass{"Legalize", 1, {"InferType"}, "operators that few toolchains know become others", OnEachFunction(Legalize)},
      Pass{"MergeCompilerRegions",
           0,
           {"InferType"},
           "regions of one toolchain that feed each other become one",
           OnEachFunction(MergeCompilerRegions)},
      Pass{"MergeComposite",
           0,
           {"InferType"},
           "matches of a toolchain's patterns become Composite functions",
           OnEachFunction(MergeComposite)},
      Pass{"PackWeights", 2, {"InferType"}, "products and rows read constants of few bits packed", Each(PackWeights)},
      Pass{"PartialEvaluate",
           1,
           {"InferType"},
           "known branches, clauses, fields and calls are decided now",
           OnEachFunction(PartialEvaluate)},
      Pass{"PartitionGraph", 0, {"InferType"}, "regions become global functions for their toolchains", PartitionGraph},
      Pass{"PlanDevices",
           0,
           {"InferType"},
           "every value gets a device; device_copy moves what is needed elsewhere",
           PlanDevices},
      Pass{"SimplifyExpr", 0, {"InferType"}, "identities vanish, padding goes into convolutions", Each(SimplifyExpr)},
      Pass{"SimplifyInference",
           0,
           {"InferType"},
           "batch_norm becomes multiply and add, dropout vanishes",
           Each(SimplifyInference)},
      Pass{"SinkReshapes",
           0,
           {"InferType"},
           "what is behind a product of matrices is computed in its rows, reshapes come later",
           Each(SinkReshapes)},
      Pass{"ToANormalForm", 1, {}, "intermediate values get names, in the order of evaluation", Each(ToANormalForm)},
      Pass{"ToGraphNormalForm", 1, {}, "let variables become shared nodes", Each(ToGraphNormalForm)},
      Pass{"ToMixedPrecision",
           0,
           {"InferType"},
           "contractions compute in 16 bits, what loses too much does not",
           ToMixedPrecision},
      Pass{"qnn.CanonicalizeOps",
           0,
           {"InferType"},
           "the quantised dialect becomes operators between qnn.dequantize and qnn.quantize",
           Each(QnnCanonicalizeOps)},
  };
}

std::deque<Pass>& Table() {
  static std::deque<Pass> passes = PassesOfThisStage();
  return passes;
}

}  // namespace

const std::deque<Pass>& AllPasses() { return Table(); }

void RegisterPass(Pass pass) {
  const auto at = std::ranges::lower_bound(Table(), pass.name, {}, &Pass::name);
  COLLAGE_CHECK(at == Table().end() || at->name != pass.name) << "two passes are called '" << pass.name << "'";
  Table().insert(at, std::move(pass));
}

}  // namespace collage
