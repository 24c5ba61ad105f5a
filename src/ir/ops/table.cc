// table.cc: the list of operator families.
#include "ir/ops/table.h"

#include "ir/ops/families.h"

namespace collage {

std::vector<OpDef> AllOpRows() {
  std::vector<OpDef> rows;
  AddElementwiseOps(rows);
  AddContractionOps(rows);
  AddConvolutionOps(rows);
  AddNormalisationOps(rows);
  AddPoolOps(rows);
  AddResizeOps(rows);
  AddReduceOps(rows);
  AddShapeOps(rows);
  AddSliceOps(rows);
  AddIndexOps(rows);
  AddAnnotationOps(rows);
  AddQuantisedOps(rows);
  AddCreationOps(rows);
  AddRandomOps(rows);
  AddMovementOps(rows);
  AddScatterOps(rows);
  AddSortOps(rows);
  AddLinearAlgebraOps(rows);
  AddVisionOps(rows);
  AddSamplingOps(rows);
  AddRecurrentOps(rows);
  AddTreeOps(rows);
  AddDynamicOps(rows);
  AddLayoutOps(rows);
  AddRequantiseOps(rows);
  AddQuantisedElementwise(rows);
  AddQuantisedContractions(rows);
  AddMatMulNBits(rows);
  AddTakeNBits(rows);
  AddForeignAttrs(rows);
  return rows;
}

}  // namespace collage
