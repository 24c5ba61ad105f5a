// chrome_trace.h: runs as events of Chrome's trace format, which Perfetto and chrome://tracing open.
#pragma once

#include <span>
#include <string>

#include "collage/profile.h"

namespace collage {

/// One process for each profile, with the run of its timeline: a track for each thread, a slice for each step with its
/// facts as arguments, inside of it the thread's shares of parallel regions, and a counter of the bytes that are in use
/// in each arena.
std::string ChromeTrace(std::span<const Profile> profiles);

}  // namespace collage
