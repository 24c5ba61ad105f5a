// table.cc: the list of operator families.
#include "ir/ops/table.h"

#include "ir/ops/families.h"

namespace collage {

std::vector<OpDef> AllOpRows() {
  std::vector<OpDef> rows;
  AddElementwiseOps(rows);
  AddContractionOps(rows);
  AddNormalisationOps(rows);
  AddPoolOps(rows);
  AddReduceOps(rows);
  AddShapeOps(rows);
  AddIndexOps(rows);
  AddAnnotationOps(rows);
  AddQuantisedOps(rows);
  AddRecurrentOps(rows);
  return rows;
}

}  // namespace collage
