// choose.h: the fastest of several ways to compute a program at any size.
//
// Contenders are built, and checked against the reference evaluation at the sizes that the user names and at others,
// each in a worker: one that is wrong, fails or outlives the budget is out, with the reason. Contenders that are left
// are timed, interleaved, at the same sizes: the named ones, or else those at which they were all checked. Plans for
// named sizes are put aside meanwhile, as in runs at other sizes. The least geometric mean wins; the first contender
// wins ties.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "collage/vm/vm.h"
#include "driver/any_size/contender.h"
#include "driver/play_off/program_check.h"

namespace collage {

struct AnySizeOptions {
  vm::CompileOptions compiling;  ///< how all contenders are compiled
  ProgramCheckOptions checking;  ///< with the shapes of the named sizes
  std::filesystem::path folder;  ///< for files of workers
  double budget_seconds = 0;     ///< for building, checking and timing; contenders that it is spent before are out
  std::filesystem::path dump;    ///< folder for the winner's partitions as text; empty: they are not wanted
  std::function<void(const std::string& toolchain)> on_contender;  ///< told which one is next
  /// Why a program may not evaluate these operators; empty if it may.
  std::function<std::string(const std::vector<EvaluatedOperator>& evaluated)> why_refused;
};

/// Builds, checks and times `contenders`, of which there is at least one, and returns the winner's place. A single one
/// is only built. Throws kUnsupported, with the reasons of all, if none is left.
size_t ChooseAtAnySize(std::vector<AnySizeContender>& contenders, const IRModule& source,
                       const AnySizeOptions& options);

/// Why each contender but the `winner` has no kernel in the program, by toolchain.
std::map<std::string, std::string> ReasonsOfLosers(const std::vector<AnySizeContender>& contenders, size_t winner);

}  // namespace collage
