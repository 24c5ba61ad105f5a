// families.h: the families of operators; each adds its rows to the table.
#pragma once

#include <vector>

#include "collage/ir/op.h"

namespace collage {

void AddElementwiseOps(std::vector<OpDef>& rows);
void AddContractionOps(std::vector<OpDef>& rows);
void AddNormalisationOps(std::vector<OpDef>& rows);
void AddPoolOps(std::vector<OpDef>& rows);
void AddReduceOps(std::vector<OpDef>& rows);
void AddShapeOps(std::vector<OpDef>& rows);
void AddIndexOps(std::vector<OpDef>& rows);
void AddAnnotationOps(std::vector<OpDef>& rows);
void AddQuantisedOps(std::vector<OpDef>& rows);
void AddRecurrentOps(std::vector<OpDef>& rows);

}  // namespace collage
