// arena_map.h: which value of a plan lies where in its working memory, and when.
#pragma once

#include <vector>

#include "collage/profile.h"
#include "profile/plan_steps.h"

namespace collage {

/// The arenas of `plan`, the host's first. Values that live in memory of the caller, inputs and outputs, are in none.
std::vector<ArenaMap> ArenasOf(const NamedPlan& plan);

/// The working memory of a program's @main, as it is planned for certain shapes. Steps are its launches, in order.
ArenaMap ArenaOf(const std::vector<vm::ArenaPlace>& places);

/// Bytes of `arena` that are in use in each step of its plan, of `num_steps`.
std::vector<int64_t> UsedBytes(const ArenaMap& arena, size_t num_steps);

}  // namespace collage
