// regions.h: samples of regions of images.
#pragma once

#include "backends/native/compiler/expressions.h"

namespace collage::native {

/// vision.roi_align.
void AddRegionRows(InPlaceTable& rows);

}  // namespace collage::native
