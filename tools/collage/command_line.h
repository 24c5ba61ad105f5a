// command_line.h: a command line that cannot be understood, and how errors are printed.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "collage/support/error.h"

namespace collage::cli {

/// Returns what the command line says wrong as an error of Collage: where it is, and what may have been meant.
Error UsageErrorOf(const CLI::App& app, const CLI::ParseError& error);

/// Returns an error for a command that there is not, with the nearest ones.
Error UnknownCommand(const CLI::App& app, const std::string& name);

/// "collage db export": the command's full name.
std::string FullName(const CLI::App& command);

/// The commands of `app`, in the order of the help text.
std::vector<const CLI::App*> CommandsOf(const CLI::App& app);

/// The options of a command as they are written: "--budget", "-o".
std::vector<std::string> OptionsOf(const CLI::App& command);

/// Prints `error` to standard error and, `as_json`, as an object to standard output. Returns the exit code.
int PrintError(const Error& error, bool as_json);

}  // namespace collage::cli
