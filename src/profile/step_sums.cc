// step_sums.cc: calls of steps added up, run by run.
#include "profile/step_sums.h"

namespace collage {

int StepNumbers::Add(const RunStep& step) {
  const auto [known, is_new] = numbers_.emplace(step, static_cast<int>(profiles_.size()));
  if (is_new) profiles_.push_back(subject_.Describe(step));
  return known->second;
}

std::optional<int> StepNumbers::Find(const RunStep& step) const {
  const auto found = numbers_.find(step);
  return found == numbers_.end() ? std::nullopt : std::optional(found->second);
}

std::map<int, double> SecondsBySteps(const RecordedRun& run, const StepNumbers& numbers) {
  std::map<int, double> seconds;
  for (const RecordedRun::Event& event : run.events) {
    const std::optional<int> number = numbers.Find(event.step);
    if (number) seconds[*number] += std::chrono::duration<double>(event.end - event.begin).count();
  }
  return seconds;
}

std::map<int, std::optional<Work>> WorkBySteps(RunSubject& subject, StepNumbers& numbers) {
  std::map<int, std::optional<Work>> all;
  StepLister lister([&](const RunStep& step, std::span<const Tensor> inputs) {
    const int number = numbers.Add(step);
    ++numbers.profiles()[static_cast<size_t>(number)].calls;
    const std::optional<Work> one = subject.WorkOf(step, inputs);
    const auto [known, is_new] = all.emplace(number, one);
    if (is_new || !known->second) return;
    if (!one) {
      known->second.reset();
      return;
    }
    known->second->products += one->products;
    known->second->multiply_adds += one->multiply_adds;
    known->second->spared += one->spared;
    known->second->constant_bytes += one->constant_bytes;
    known->second->boundary_bytes += one->boundary_bytes;
  });
  subject.Run(lister);
  return all;
}

}  // namespace collage
