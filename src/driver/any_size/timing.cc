// timing.cc: the worker keeps a machine for each program.
#include "driver/any_size/timing.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "collage/runtime/thread_pool.h"
#include "cost/measure/input_toggle.h"
#include "cost/measure/timing.h"
#include "ir/eval/sample_inputs.h"
#include "support/stopwatch.h"

namespace collage {
namespace {

using Json = nlohmann::json;

constexpr double kSecondsAtASize = 0.4;
constexpr int kFewestRounds = 5;
constexpr int kMostRounds = 101;
constexpr int kUntimedRuns = 3;

/// Medians of `machines` on the same inputs.
std::vector<double> TimeOn(std::vector<vm::Machine>& machines, const std::vector<Tensor>& inputs) {
  std::vector<std::function<void()>> runs;
  double seconds = 0;
  InputToggle toggle(inputs);
  for (vm::Machine& machine : machines) {
    runs.emplace_back([&machine, &inputs, &toggle, num_runs = 0]() mutable {
      toggle.Set(num_runs++ % 2 == 1);
      machine.Invoke("main", std::vector<Value>(inputs.begin(), inputs.end()), {.random_seed = 1});
    });
    for (int i = 1; i < kUntimedRuns; ++i) runs.back()();
    seconds += SecondsOf(runs.back());
  }
  const auto affordable = static_cast<int>(std::min<double>(kMostRounds, kSecondsAtASize / std::max(seconds, 1e-9)));
  const bool settle = seconds < kSettleBelowSeconds;
  std::vector<double> medians;
  for (const Samples& samples : TimeInterleaved(runs, std::max(affordable, kFewestRounds), settle)) {
    medians.push_back(samples.p50());
  }
  return medians;
}

}  // namespace

Result<std::vector<std::vector<double>>> TimeAtSizes(const std::vector<vm::Executable>& programs,
                                                     const Function& function,
                                                     const std::vector<std::vector<Shape>>& shapes, int num_threads,
                                                     double most_seconds, const WorkerLimits& limits) {
  const auto time = [&](const std::string&, const SendProgress& progress) {
    SetNumThreads(num_threads);
    std::vector<vm::Machine> machines;
    for (const vm::Executable& program : programs) machines.emplace_back(program);
    std::vector<std::vector<double>> by_size;
    double spent = 0;
    for (const std::vector<Shape>& at : shapes) {
      if (spent > most_seconds) break;
      progress("time");
      const Stopwatch stopwatch(spent);
      by_size.push_back(TimeOn(machines, SampleInputs(function, Draw::kUnit, at)));
    }
    return Json(by_size).dump();
  };
  Worker worker(time, limits);
  const Result<std::string> answer = worker.Call("time");
  if (!answer.ok()) return answer.reason();
  const auto by_size = Json::parse(*answer).get<std::vector<std::vector<double>>>();
  std::vector<std::vector<double>> by_program(programs.size());
  for (const std::vector<double>& one : by_size) {
    for (size_t i = 0; i < programs.size(); ++i) by_program[i].push_back(one.at(i));
  }
  return by_program;
}

double GeometricMean(const std::vector<double>& seconds) {
  double sum = 0;
  for (const double one : seconds) sum += std::log(one);
  return std::exp(sum / static_cast<double>(seconds.size()));
}

}  // namespace collage
