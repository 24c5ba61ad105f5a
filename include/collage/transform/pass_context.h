// pass_context.h: under which conditions passes run: optimisation level, passes forced or barred, options, instruments.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "collage/ir/attrs.h"
#include "collage/ir/module.h"
#include "collage/ir/op.h"

namespace collage {

struct Pass;

/// An option of a pass: a name such as "relay.FuseOps.max_depth", its type, what holds when it is not given, and what
/// it does. The list is in src/transform/config.cc.
struct ConfigKey {
  std::string name;
  AttrKind kind;
  AttrValue default_value;
  std::string doc;
};

/// All options, by name.
std::span<const ConfigKey> AllConfigKeys();

/// Watches passes run. Instruments are called in the order in which they were added; behind a pass, too.
class PassInstrument {
 public:
  virtual ~PassInstrument() = default;
  /// False bars `pass`; the other hooks are then not called for it.
  virtual bool ShouldRun(const Pass& pass, const IRModule& module);
  virtual void Before(const Pass& pass, const IRModule& module);
  virtual void After(const Pass& pass, const IRModule& module);
};

/// Adds up the time that each pass takes, in the order of their first run.
class TimingInstrument : public PassInstrument {
 public:
  void Before(const Pass& pass, const IRModule& module) override;
  void After(const Pass& pass, const IRModule& module) override;

  struct Row {
    std::string pass;
    int runs = 0;
    std::chrono::nanoseconds total{0};
  };
  const std::vector<Row>& rows() const { return rows_; }
  /// One line per pass: milliseconds, runs, name.
  std::string ToText() const;

 private:
  std::vector<std::chrono::steady_clock::time_point> started_;  ///< passes may run passes
  std::vector<Row> rows_;
};

/// Writes the module's text behind passes, or in front of them.
class PrintIrInstrument : public PassInstrument {
 public:
  enum class When { kBefore, kAfter };
  /// An empty list of `passes` means every pass. `out` must outlive the instrument.
  PrintIrInstrument(std::ostream& out, When when, std::vector<std::string> passes = {})
      : out_(out), when_(when), passes_(std::move(passes)) {}
  void Before(const Pass& pass, const IRModule& module) override;
  void After(const Pass& pass, const IRModule& module) override;

 private:
  bool Wants(const Pass& pass) const;
  void Print(const char* when, const Pass& pass, const IRModule& module);

  std::ostream& out_;
  When when_;
  std::vector<std::string> passes_;
};

/// A value that is handed to whatever runs passes; there is no hidden current context.
class PassContext {
 public:
  PassContext() = default;
  explicit PassContext(int level) : opt_level(level) {}

  /// Passes of a higher level are left out by `Sequential`, unless they are in `required_pass`.
  int opt_level = 2;
  std::vector<std::string> required_pass;
  /// Passes that `Sequential` leaves out whatever their level.
  std::vector<std::string> disabled_pass;
  std::vector<std::shared_ptr<PassInstrument>> instruments;

  /// Throws kInput: for an unknown key with near misses, for a value that is not of the key's type with what it wants.
  void SetConfig(std::string_view key, AttrValue value);
  /// As SetConfig, the value as text: `true`/`false`/`1`/`0`, a decimal integer, or the string itself.
  void SetConfigText(std::string_view key, std::string_view value);
  /// Drops all options that were set.
  void ClearConfig() { config_.clear(); }
  /// The options that were set, by name.
  const std::map<std::string, AttrValue, std::less<>>& config() const { return config_; }
  /// Returns the value that was set, else the default. Throws kInternal for a key that is not in the list.
  const AttrValue& Config(std::string_view key) const;
  bool ConfigBool(std::string_view key) const { return *Config(key).as_bool(); }
  int64_t ConfigInt(std::string_view key) const { return *Config(key).as_int(); }
  const std::string& ConfigString(std::string_view key) const { return *Config(key).as_string(); }

  /// Whether `Sequential` runs `pass`.
  bool IsEnabled(const Pass& pass) const;

 private:
  std::map<std::string, AttrValue, std::less<>> config_;
};

}  // namespace collage
