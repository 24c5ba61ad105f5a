// toolchain_report.h: what is known of a toolchain here, and its part in a compilation.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace collage {

/// An option that targets may give a toolchain.
struct ToolchainOption {
  std::string name;
  std::string type;  ///< "a string", "an integer", "a number", "true or false"
  std::string default_value;
  std::string doc;
};

struct ToolchainReport {
  std::string name;
  bool available = false;
  std::string version;
  std::string reason;  ///< when not available
  std::string hint;
  bool takes_part = false;                                        ///< in this compilation
  std::vector<std::string> participants;                          ///< how: "NAME", or "NAME -option=value …"
  bool is_default = true;                                         ///< Toolchain::is_default
  std::string license;                                            ///< Toolchain::license
  std::vector<std::string> hooks;                                 ///< "RelayToRuntime", …: RFC 10's
  std::vector<ToolchainOption> options;                           ///< Toolchain::Options
  std::vector<std::pair<std::string, std::string>> incompatible;  ///< others of this build, and why
};

/// The part that a toolchain, which is available here, has in a program with dynamic shapes.
struct ToolchainPart {
  std::string toolchain;
  int64_t any_size_kernels = 0;  ///< kernels for any size
  std::string not_at_any_size;   ///< why it has none; empty if it has some
  int64_t plan_partitions = 0;   ///< partitions of plans for sizes that are named, and of other parts of known sizes
  std::string not_in_plans;      ///< why it has none; empty if it has some
};

}  // namespace collage
