// throws.h: what an Error that must be thrown says.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "collage/support/error.h"

namespace collage {

/// Expects that `action` throws an Error of `category` whose formatted text contains `part`.
template <typename Action>
void ExpectError(Action&& action, ErrorCategory category, const std::string& part) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(ToString(error.category()), ToString(category)) << error.Format();
    EXPECT_NE(error.Format().find(part), std::string::npos) << error.Format();
    return;
  }
  ADD_FAILURE() << "nothing was thrown; wanted an error with '" << part << "'";
}

}  // namespace collage
