// c_api_error.h: exceptions as statuses, and the text of each thread's last one.
#pragma once

#include <utility>

#include "collage/runtime/c_api.h"

namespace collage {

/// Keeps the exception that is being handled as this thread's last error and returns its status. Called within a catch.
collage_status KeepCurrentException() noexcept;

/// Runs `body`: nothing that it throws gets out.
template <typename Body>
collage_status Guarded(Body&& body) noexcept {
  try {
    std::forward<Body>(body)();
    return COLLAGE_OK;
  } catch (...) {
    return KeepCurrentException();
  }
}

}  // namespace collage
