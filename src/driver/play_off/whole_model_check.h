// whole_model_check.h: how far executables of a whole model are from its reference evaluation.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collage/ir/expr.h"
#include "collage/runtime/executable.h"
#include "ir/eval/reference.h"

namespace collage {

/// Values for all inputs of a model, by name.
using NamedInputs = std::map<std::string, Tensor>;

/// `inputs` in the order of the parameters of `main`, those of dynamic shapes included. Throws kInput, naming all that
/// is wrong, where names, dtypes or shapes are not those of the parameters; names "out.…" are ignored, and "in.x" is
/// "x", as files of `collage run` have them.
std::vector<Tensor> InOrderOfParameters(const NamedInputs& inputs, const Function& main, const std::string& where);

struct WholeModelCheckOptions {
  /// CompileOptions::max_error.
  std::optional<double> max_error;
  /// Inputs to try executables on beside random ones, each in the order of the parameters.
  std::vector<std::vector<Tensor>> inputs;
  /// Called now and then: evaluation and runs may take long. WholeModelCheck::OnProgress replaces it.
  std::function<void()> on_progress = {};
};

/// The results of a function on fixed inputs, to compare executables with. Slow to make for a large model.
class WholeModelCheck {
 public:
  WholeModelCheck(const Function& main, WholeModelCheckOptions options);

  /// Replaces WholeModelCheckOptions::on_progress.
  void OnProgress(std::function<void()> on_progress) { *on_progress_ = std::move(on_progress); }

  /// Sets the first of the inputs, which executables are timed on.
  void SetInputs(ExecutionInstance& instance) const;
  /// The first of the inputs, which instances read where they lie.
  const std::vector<Tensor>& first_inputs() const { return samples_.front().inputs; }
  /// Runs `instance` on each of the inputs, and at last on the first ones again, which stay set: results must follow
  /// the inputs. Empty when all may be what they are, else what is wrong with the first that may not; `error` becomes
  /// no less than the largest error so far, relative to the largest element of its result, those of inputs far larger
  /// than usual left out. Values that are kept as float16 must be so small that they would not overflow were the
  /// inputs, which are within 1, as large as bytes.
  std::string Check(ExecutionInstance& instance, double& error) const;

 private:
  struct Sample {
    std::vector<Tensor> inputs;
    Reference reference;
    std::string name;
    bool is_unit = false;  ///< inputs within 1
    bool is_wide = false;  ///< larger than models are made for
  };

  void AddRandomSamples(const Function& main);
  void AddSample(const Function& main, Sample sample);
  void Progress() const {
    if (*on_progress_) (*on_progress_)();
  }
  static void SetInputs(const Sample& sample, ExecutionInstance& instance);
  /// Runs once. Empty when what is kept as float16 is far enough from the largest that this holds.
  static std::string RunLookingForOverflow(ExecutionInstance& instance);
  std::string FindDifference(const Sample& sample, size_t index, const Tensor& actual, double& error) const;

  WholeModelCheckOptions options_;
  std::shared_ptr<std::function<void()>> on_progress_;  ///< which references call, too
  std::vector<Sample> samples_;
};

}  // namespace collage
