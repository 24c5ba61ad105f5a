// passes.h: the passes of this stage, one file each under passes/; their rows in
// src/pipeline/pass_table.cc say what they do. Passes that need toolchains or the dataflow graph are in
// src/partition/passes.h.
#pragma once

#include "collage/ir/expr.h"
#include "collage/ir/module.h"
#include "collage/transform/pass_context.h"

namespace collage {

// ---- on one function, whatever the module and the context ----

Function AlterOpLayout(const Function& function);
Function CanonicalizeOps(const Function& function);
Function DefuseOps(const Function& function);
Function DuplicateDequantize(const Function& function);
Function EliminateCommonSubexpr(const Function& function);
Function FoldConstant(const Function& function);
Function FoldScaleAxis(const Function& function);
Function InlineComposites(const Function& function);
Function PackWeights(const Function& function);
Function QnnCanonicalizeOps(const Function& function);
Function SimplifyExpr(const Function& function);
Function SimplifyInference(const Function& function);
Function SinkReshapes(const Function& function);
Function ToANormalForm(const Function& function);
Function ToGraphNormalForm(const Function& function);

// ---- on one function, with definitions and options ----

Function CombineParallelBatchMatmul(const Function& function, const IRModule& module, const PassContext& context);
Function CombineParallelConv2D(const Function& function, const IRModule& module, const PassContext& context);
Function CombineParallelDense(const Function& function, const IRModule& module, const PassContext& context);
Function ConvertLayout(const Function& function, const IRModule& module, const PassContext& context);
Function DeadCodeElimination(const Function& function, const IRModule& module, const PassContext& context);
Function DynamicToStatic(const Function& function, const IRModule& module, const PassContext& context);
Function Legalize(const Function& function, const IRModule& module, const PassContext& context);
Function PartialEvaluate(const Function& function, const IRModule& module, const PassContext& context);

// ---- on modules ----

IRModule Inline(IRModule module, const PassContext& context);
IRModule LambdaLift(IRModule module, const PassContext& context);
IRModule PlanDevices(IRModule module, const PassContext& context);
/// Whether anything in `module` is for a device, or values without a device are for another one than the processor.
bool NamesDevices(const IRModule& module, const PassContext& context);
IRModule ToMixedPrecision(IRModule module, const PassContext& context);

}  // namespace collage
