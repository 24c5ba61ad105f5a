// families.h: the families of operators; each adds its rows to the table.
#pragma once

#include <vector>

#include "collage/ir/op.h"

namespace collage {

void AddElementwiseOps(std::vector<OpDef>& rows);
void AddContractionOps(std::vector<OpDef>& rows);
void AddConvolutionOps(std::vector<OpDef>& rows);
void AddNormalisationOps(std::vector<OpDef>& rows);
void AddPoolOps(std::vector<OpDef>& rows);
void AddResizeOps(std::vector<OpDef>& rows);
void AddReduceOps(std::vector<OpDef>& rows);
void AddShapeOps(std::vector<OpDef>& rows);
void AddSliceOps(std::vector<OpDef>& rows);
void AddIndexOps(std::vector<OpDef>& rows);
void AddAnnotationOps(std::vector<OpDef>& rows);
/// Behind the operators of which they are variants.
void AddDynamicOps(std::vector<OpDef>& rows);
/// Last: it also lets operators that have rows by then accept other orders of dimensions.
void AddLayoutOps(std::vector<OpDef>& rows);
/// Relay's quantised dialect; behind the operators of floats that it computes with.
void AddRequantiseOps(std::vector<OpDef>& rows);
void AddQuantisedElementwise(std::vector<OpDef>& rows);
void AddQuantisedContractions(std::vector<OpDef>& rows);
void AddMatMulNBits(std::vector<OpDef>& rows);
void AddTakeNBits(std::vector<OpDef>& rows);
/// Behind all: what calls may state besides the schemas.
void AddForeignAttrs(std::vector<OpDef>& rows);
void AddQuantisedOps(std::vector<OpDef>& rows);
void AddCreationOps(std::vector<OpDef>& rows);
void AddRandomOps(std::vector<OpDef>& rows);
void AddMovementOps(std::vector<OpDef>& rows);
void AddScatterOps(std::vector<OpDef>& rows);
void AddSortOps(std::vector<OpDef>& rows);
void AddLinearAlgebraOps(std::vector<OpDef>& rows);
void AddVisionOps(std::vector<OpDef>& rows);
void AddSamplingOps(std::vector<OpDef>& rows);
void AddRecurrentOps(std::vector<OpDef>& rows);
void AddTreeOps(std::vector<OpDef>& rows);

}  // namespace collage
