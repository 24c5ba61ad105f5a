// passes.h: the passes, one file each under passes/.
#pragma once

#include "collage/ir/expr.h"

namespace collage {

Function SimplifyInference(const Function& function);
Function FoldConstant(const Function& function);
Function FoldScaleAxis(const Function& function);
Function SimplifyExpr(const Function& function);
Function EliminateCommonSubexpr(const Function& function);

}  // namespace collage
