// compiles_elsewhere.h: toolchains that compile for a machine on which they are not.
#pragma once

#include <optional>
#include <string>

#include "collage/target/toolchain.h"

namespace collage {

/// Base class of a `Toolchain` whose compiler does not need what runs its kernels: a library or a device that only the
/// machine has that the kernels are for. Such a toolchain joins a measuring pack, and a compilation for another machine
/// (docs/many-machines.md), although `Probe` says that it cannot be used here. Neither function may use a device in
/// this process.
class CompilesElsewhere {
 public:
  virtual ~CompilesElsewhere() = default;

  /// Whether what it compiles under its options is for processors of this machine's kind only.
  virtual bool IsForThisProcessor() const { return false; }
  /// Whether it compiles here under its options. `version` is that of the compiler.
  virtual Availability ProbeCompiler() const = 0;
  /// Whether kernels that were compiled under its options run here. `version` is that of what runs them.
  virtual Availability ProbeRunner() const = 0;
  /// Returns the version that `Probe` has where these are together; nothing if kernels of that compiler are not for
  /// that runner.
  virtual std::optional<std::string> JoinVersions(const std::string& compiler, const std::string& runner) const = 0;
};

/// Whether `toolchain` compiles here for machines that have what runs its kernels. Toolchains without the base class
/// above do so where they can be used.
Availability ProbeCompilerOf(const Toolchain& toolchain);
/// Whether kernels that `toolchain` compiles here are for processors of this machine's kind only; true without the base
/// class above, since libraries choose kernels by the processor that they find.
bool CompilesForThisProcessor(const Toolchain& toolchain);
/// Whether kernels of `toolchain` that were compiled on another machine run here.
Availability ProbeRunnerOf(const Toolchain& toolchain);
/// Returns the version of kernels compiled there and run here; nothing if they do not go together: without the base
/// class above, both must be the same version.
std::optional<std::string> JoinedVersion(const Toolchain& toolchain, const std::string& compiler,
                                         const std::string& runner);

}  // namespace collage
