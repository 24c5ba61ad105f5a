// for_random_modules.h: the loop of all properties of random modules. COLLAGE_PROPERTY_MODULES says how many,
// COLLAGE_PROPERTY_SEED with which seed the first is made, COLLAGE_PROPERTY_ALL that the first failure is not the end.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "collage/support/error.h"
#include "property/random_module.h"

namespace collage {

inline uint64_t Setting(const char* name, uint64_t fallback) {
  const char* text = std::getenv(name);
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

/// Calls `check(seed)` for `count` seeds.
template <typename Check>
void ForRandomSeeds(uint64_t count, const Check& check) {
  const uint64_t first = Setting("COLLAGE_PROPERTY_SEED", 1);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    try {
      check(seed);
    } catch (const Error& error) {
      ADD_FAILURE() << error.Format();
    }
    if (testing::Test::HasFailure() && std::getenv("COLLAGE_PROPERTY_ALL") == nullptr) return;
  }
}

/// Calls `check(module, seed)` for `fewest` modules, or as many as the environment asks for.
template <typename Check>
void ForRandomModules(uint64_t fewest, const Check& check) {
  ForRandomSeeds(Setting("COLLAGE_PROPERTY_MODULES", fewest),
                 [&](uint64_t seed) { check(MakeRandomModule(seed, {.references = seed % 3 == 0}), seed); });
}

}  // namespace collage
