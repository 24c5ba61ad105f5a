// profile_facts.h: a profile (collage/profile.h) as facts.
#pragma once

#include <cstddef>

#include "collage/profile.h"
#include "report/fact.h"

namespace collage {

/// How the steps of a profile are listed.
struct StepOrder {
  bool by_time = false;  ///< the longest first; else in the order of a run
  size_t shown = 0;      ///< text has so many, the others with its details; 0: all
};

Fact ProfileFacts(const Profile& profile, const StepOrder& order = {});

/// The steps alone.
Fact StepsFact(const Profile& profile, const StepOrder& order = {});

}  // namespace collage
