// passes.h: the passes that need toolchains or the dataflow graph, one file each under passes/ and byoc/; their rows
// in src/pipeline/pass_table.cc say what they do.
#pragma once

#include "collage/ir/expr.h"
#include "collage/ir/module.h"
#include "collage/transform/pass_context.h"

namespace collage {

/// The source of spans whose line is a node's index in the dataflow graph, and whose column is its dominator's.
inline constexpr const char* kIndexSpan = "index";
Function CapturePostDfsIndexInSpans(const Function& function);

Function AnnotateTarget(const Function& function, const IRModule& module, const PassContext& context);
Function FuseOps(const Function& function, const IRModule& module, const PassContext& context);
Function MergeCompilerRegions(const Function& function, const IRModule& module, const PassContext& context);
Function MergeComposite(const Function& function, const IRModule& module, const PassContext& context);

IRModule PartitionGraph(IRModule module, const PassContext& context);

}  // namespace collage
