// compile_options.h: the options that `collage compile` and `collage tune` share: one table, so that what is tuned is
// what compiling asks for.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "collage/compile.h"

namespace collage::cli {

/// Shared options as they are written.
struct SharedArguments {
  CompileOptions options;
  std::vector<std::string> shapes;
  std::string toolchains;
  std::string budget;
  std::string tuning_budget = "0";
};

/// Adds every row of the table to `command`; `arguments` must outlive it.
void AddSharedOptions(CLI::App& command, SharedArguments& arguments);

/// What was written, read. Throws kInput.
CompileOptions OptionsFrom(const SharedArguments& arguments);

}  // namespace collage::cli
