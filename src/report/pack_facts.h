// pack_facts.h: what making and measuring packs found out, as facts.
#pragma once

#include "collage/measuring_pack.h"
#include "report/fact.h"

namespace collage {

/// The report of `collage pack`.
Fact PackFacts(const PackReport& report);

/// The report of `collage measure`.
Fact MeasureFacts(const MeasurePackReport& report);

}  // namespace collage
