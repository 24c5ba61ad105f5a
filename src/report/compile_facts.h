// compile_facts.h: the results of compiling and tuning, as facts.
#pragma once

#include <string>
#include <vector>

#include "collage/compile.h"
#include "report/fact.h"

namespace collage {

/// The report of `collage compile`, of collage.compile in Python, and of each region of a program.
Fact CompileFacts(const CompileReport& report);

/// How tuning for one model went.
struct TunedModel {
  std::string model;
  CompileReport report;
  std::string failure;  ///< empty: it succeeded
};

/// The report of `collage tune`.
Fact TuneFacts(const std::vector<TunedModel>& models, bool interrupted);

}  // namespace collage
