// target.h: targets as text, `cuda -compiler=tensorrt -use_fp16=1` (RFC 0.81, "Phase 1" and Appendix G): a kind of
// device, and how it is used. Several targets may be of one kind of device.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collage/ir/attrs.h"
#include "collage/target/target_kind.h"
#include "collage/target/toolchain.h"

namespace collage {

/// A value. Options have types: those that every target may have by their table, those of a toolchain (which need
/// `-compiler`, or a kind that is a toolchain) by what it declares.
class Target {
 public:
  /// Reads "KIND -option=value …". Values with blanks are quoted, '…' or "…"; 0 and 1 are false and true where these
  /// are wanted. Throws kInput, naming the character, for an unknown kind or option, with those there are, for a value
  /// of another type, an option given twice. Options of a compiler that is not in `registry` are typed by how they are
  /// written: true, 16, 0.5, name.
  static Target Parse(std::string_view text, const ToolchainRegistry& registry = ToolchainRegistry::Global());

  const std::string& kind() const { return kind_; }
  /// The option -device_type, else the kind's.
  int device_type() const;
  const Attrs& options() const { return options_; }
  /// Which toolchain: of the option, or the kind itself; empty for native code.
  std::string compiler() const { return is_toolchain_ ? kind_ : options_.StringOr("compiler", ""); }
  /// Returns a value for each option of `toolchain`: this target's, or the default.
  Attrs OptionsFor(const Toolchain& toolchain) const;
  /// Options that every target may have, and that change nothing of what `toolchain` compiles.
  std::vector<std::string> IdleOptions(const Toolchain& toolchain) const;
  /// JSON of the rule that finds its candidates; empty for the one that follows from the toolchain.
  std::string partition_rule() const { return options_.StringOr("partition_rule", ""); }

  /// Whether this one says more than `other` of how to use the same thing: it has a compiler or a partition rule, the
  /// other has neither, and all else agrees. A kind that is a toolchain refines those for the same type of device.
  bool Refines(const Target& other) const;
  bool operator==(const Target&) const = default;

  /// Text that Parse reads back, options by name.
  std::string ToString() const;

 private:
  std::string kind_;
  int kind_device_type_ = 0;
  bool is_toolchain_ = false;  ///< whether the kind is
  Attrs options_;
};

}  // namespace collage
