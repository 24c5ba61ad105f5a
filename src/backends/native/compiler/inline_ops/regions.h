// regions.h: samples and largest pixels of regions of images.
#pragma once

#include "backends/native/compiler/emit/expressions.h"

namespace collage::native {

/// vision.roi_align and vision.roi_pool.
void AddRegionRows(InPlaceTable& rows);

}  // namespace collage::native
