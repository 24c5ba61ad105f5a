// environment.h: the environment variables that Collage reads, in one table. Nothing else in Collage calls getenv.
#pragma once

#include <optional>
#include <span>
#include <string>

namespace collage {

/// A row of the table. `collage --help` prints it, and docs/environment.md repeats it.
struct EnvironmentVariable {
  const char* name;
  const char* meaning;
  const char* when_unset;  ///< default
};

/// All variables that Collage's libraries, its command and its Python package read, by name.
std::span<const EnvironmentVariable> EnvironmentVariables();

/// The variable's value, which may be empty; nothing where it is unset. `name` must be in the table.
std::optional<std::string> GetEnvironment(const char* name);

}  // namespace collage
