// machine.h: whether this machine, as it is now, lets kernels be timed well.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "doctor/finding.h"

namespace collage {

/// Processes that wanted a processor while this looked, beside the calling thread, on average over `seconds`. `root`:
/// the folder of `proc`. 0 where the system does not say.
double BusyProcesses(double seconds, const std::filesystem::path& root = "/");

/// Examines processors, frequency, load, memory and counters. `root`: the folder of `proc` and `sys`. Takes about a
/// quarter of a second.
std::vector<Finding> ExamineMachine(const std::filesystem::path& root = "/");

/// Times the same loop again and again for about `seconds`: a processor whose clock changes, or that is taken away,
/// shows.
Finding ExamineSteadiness(double seconds = 0.5);

/// The warning to give before a measurement on a busy machine; empty if it is not busy.
std::string BusyWarning();

}  // namespace collage
