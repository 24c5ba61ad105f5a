// table.h: the op table's rows, gathered from one file per family of operators.
#pragma once

#include <vector>

#include "collage/ir/op.h"

namespace collage {

/// All rows, in no particular order. Defined in table.cc, the explicit list of families.
std::vector<OpDef> AllOpRows();

}  // namespace collage
