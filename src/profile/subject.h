// subject.h: a model with its inputs at hand, to be run again and again.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collage/profile.h"
#include "collage/runtime/run_observer.h"
#include "partition/work.h"
#include "profile/plan_steps.h"

namespace collage {

/// An executable or a program with tensors for all inputs. Not thread-safe.
class RunSubject {
 public:
  virtual ~RunSubject() = default;

  virtual void Run() = 0;
  virtual void Run(RunObserver& observer) = 0;
  virtual int num_threads() const = 0;
  virtual std::vector<NamedPlan> plans() const = 0;
  /// Working memory outside of plans, as the latest run had it.
  virtual std::vector<ArenaMap> other_arenas() const { return {}; }
  /// Bytes of the code of all kernels, equal pieces once.
  virtual int64_t code_bytes() const = 0;
  /// Constants outside of plans.
  virtual std::vector<Tensor> other_constants() const { return {}; }

  /// A step with all that is known of it before it runs.
  virtual StepProfile Describe(const RunStep& step) const = 0;
  /// The work of one call of a step whose tensors are `inputs`, as observers get them; nothing if it is not known.
  virtual std::optional<Work> WorkOf(const RunStep& step, std::span<const Tensor> inputs) const = 0;
};

/// The shape that `inputs` give tensor parameter `index` of a function of a program, for random values; errors name
/// `file`. Throws kInput where a size of it is not given.
Shape ShapeOfInput(const vm::Executable& program, const std::string& function, size_t index, const RunInputs& inputs,
                   const std::string& file);

/// Loads the kernels of a plan. Throws kInput for inputs that do not fit.
std::unique_ptr<RunSubject> MakeSubject(const Executable& executable, const RunInputs& inputs);
/// Makes inputs for @main of a program; errors name `file`. Throws kInput where a size is not given.
std::unique_ptr<RunSubject> MakeSubject(const vm::Executable& program, const RunInputs& inputs,
                                        const std::string& file);
/// Loads a file of either kind.
std::unique_ptr<RunSubject> LoadSubject(const std::filesystem::path& file, const RunInputs& inputs);

}  // namespace collage
