// compile_facts.h: the results of compiling and tuning, as facts.
#pragma once

#include <string>
#include <vector>

#include "collage/compile.h"
#include "driver/tuning/tune_models.h"
#include "report/fact.h"

namespace collage {

/// The report of `collage compile`, of collage.compile in Python, and of each region of a program.
Fact CompileFacts(const CompileReport& report);

/// The report of `collage tune`.
Fact TuneFacts(const std::vector<TunedModel>& models, bool interrupted);

}  // namespace collage
