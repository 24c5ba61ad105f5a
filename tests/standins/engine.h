// engine.h: the threads of a launch.
#pragma once

#include <string>

#include "emulation.h"

namespace standin {

/// Fills the table of an object (backends/cuda_driver/emulation.h) with what its threads call.
void FillTable(void** table);

/// RunGrid for kernels that are run thread by thread.
std::string RunThreads(const EmulatedKernel& kernel, const Grid& grid, const Parameters& parameters,
                       const FindMemory& find);

}  // namespace standin
