// build.h: compiles a program with partitions of a toolchain for symbolic sizes.
#pragma once

#include <filesystem>

#include "collage/vm/vm.h"
#include "driver/any_size/contender.h"
#include "worker/worker.h"

namespace collage {

/// Compiles `contender`, which has native kernels alone. Sets `executable` and adds to `evaluated`. Partitions are
/// written as text into the folder `dump`, unless it is empty.
void BuildHere(AnySizeContender& contender, vm::CompileOptions compiling, const std::filesystem::path& dump);

/// Compiles `contender` in a worker, since a toolchain's library may crash, hang or start threads. Loads the program
/// from `file`, which the worker writes. Sets `failure` where that fails.
void BuildInWorker(AnySizeContender& contender, vm::CompileOptions compiling, const std::filesystem::path& dump,
                   const std::filesystem::path& file, const WorkerLimits& limits);

/// `program` without its functions for known sizes as answers: its general functions compute all sizes.
vm::Executable WithoutPlans(const vm::Executable& program);

}  // namespace collage
