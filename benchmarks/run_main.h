// run_main.h: what every benchmark's main does.
#pragma once

#include <fmt/format.h>

#include "collage/support/error.h"

namespace collage {

/// The exit status of `body`, which may throw Error: that is told, and is status 1.
inline int RunMain(int (*body)(int, char**), int argc, char** argv) {
  try {
    return body(argc, argv);
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.Format());
    return 1;
  }
}

}  // namespace collage
