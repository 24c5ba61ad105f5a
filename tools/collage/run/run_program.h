// run_program.h: `collage run` for programs with control flow, closures and data: Relay text, or bytecode.
#pragma once

#include <string>
#include <vector>

#include "collage/profile.h"
#include "run_values.h"

namespace collage::cli {

struct ProgramArguments {
  std::string file;
  std::string function = "main";
  std::string inputs;               ///< an .npz, by parameter
  std::vector<std::string> values;  ///< NAME=NUMBER, NAME=FILE.npy or NAME=EXPRESSION
  std::string outputs;              ///< an .npz to write
  ComparisonArguments comparison;
  bool random = false;
  RunInputs sizes;  ///< shapes and sizes of random values of dynamic shapes
  bool interpret = false;
  bool disassemble = false;
  bool json = false;
};

/// Prints what a function of the program returns, or the program's bytecode. False when the result is compared and
/// differs.
bool RunProgram(const ProgramArguments& arguments);

/// Runs a compiled program likewise.
bool RunBytecode(const ProgramArguments& arguments);

}  // namespace collage::cli
