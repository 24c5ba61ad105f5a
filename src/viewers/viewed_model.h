// viewed_model.h: what viewers show of an executable: its steps with their times, and the plans that connect them.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collage/profile.h"
#include "collage/runtime/executable.h"
#include "collage/vm/vm.h"
#include "profile/plan_steps.h"

namespace collage {

class ViewedModel {
 public:
  /// Loads an executable or a program. Times are the estimates that it has.
  explicit ViewedModel(const std::filesystem::path& file);

  /// Takes times of steps from a profile, the JSON text of `collage profile --json`, which errors call `name`. Throws
  /// kInput for what is none, and for a profile of another executable.
  void TakeTimes(const std::string& profile, const std::string& name);

  const std::string& name() const { return name_; }
  /// The executable's own plan, or those of a program's kernels.
  const std::vector<NamedPlan>& plans() const { return plans_; }
  /// The steps of all plans, in order, and behind them kernels for dynamic shapes.
  const std::vector<StepProfile>& steps() const { return steps_; }
  /// Step `index` of `plan`.
  const StepProfile& StepOf(const NamedPlan& plan, size_t index) const;
  /// The sum of all known times.
  double AllSeconds() const;
  /// A colour for a toolchain of the steps, "#8dd3c7".
  std::string ColorOf(const std::string& toolchain) const;
  /// Whether times are those of a profile.
  bool is_measured() const { return is_measured_; }

 private:
  std::optional<Executable> executable_;
  std::optional<vm::Executable> program_;
  std::string name_;
  std::vector<NamedPlan> plans_;
  std::vector<StepProfile> steps_;
  std::map<const ExecutionPlan*, size_t> first_steps_;  ///< place of each plan's first step in `steps_`
  bool is_measured_ = false;
};

/// The time of a step: measured, else estimated; nothing if neither is known.
std::optional<double> SecondsOf(const StepProfile& step);

}  // namespace collage
