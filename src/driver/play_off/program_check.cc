// program_check.cc: sizes to try, and the worker that tries them.
#include "driver/play_off/program_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "collage/ir/infer_type.h"
#include "collage/runtime/thread_pool.h"
#include "collage/support/error.h"
#include "cost/machine/roofline.h"
#include "ir/eval/computed_in.h"
#include "ir/eval/interpreter.h"
#include "ir/eval/random_draws.h"
#include "ir/eval/reference.h"
#include "ir/eval/sample_inputs.h"
#include "program/named_sizes.h"
#include "program/regions.h"

namespace collage {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;

// How often a program is to be right, and how often it is when that costs little.
constexpr size_t kFewestSizes = 3;
constexpr size_t kMostSizes = 6;
// Limits of the reference: products that it adds up, in a run and in all, operators, and seconds. A loop may go on
// for ever.
constexpr double kMostMultiplyAdds = 4e8;
constexpr double kAllMultiplyAdds = 8e8;
constexpr auto kLongestEvaluation = std::chrono::seconds(20);
constexpr int64_t kMostOperators = 100'000;
constexpr auto kLongestCheck = std::chrono::seconds(15);
// Workers that the reference may cost, by silence or by memory.
constexpr int kMostDeaths = 2;
// Seed of random numbers: the program and its reference draw the same.
constexpr uint64_t kRandomSeed = 1;
// Elements of one input.
constexpr int64_t kMostElements = 1 << 20;

/// Sizes of dimensions that are open: of the first dimension of an input, and of its others in order, again and again.
struct Sizes {
  int64_t first;
  std::array<int64_t, 3> others;
};
constexpr std::array kSizes{
    Sizes{2, {33, 17, 24}},    Sizes{1, {1, 1, 1}},      Sizes{3, {64, 64, 64}},    Sizes{1, {160, 128, 192}},
    Sizes{5, {5, 5, 5}},       Sizes{1, {640, 32, 32}},  Sizes{2, {8, 8, 8}},       Sizes{1, {96, 64, 32}},
    Sizes{7, {7, 7, 7}},       Sizes{160, {160, 2, 2}},  Sizes{1, {224, 224, 224}}, Sizes{1, {512, 640, 8}},
    Sizes{2, {2, 2, 2}},       Sizes{1, {1000, 16, 16}}, Sizes{4, {16, 48, 16}},    Sizes{1, {4096, 16, 16}},
    Sizes{1, {16000, 16, 16}}, Sizes{1, {32, 320, 320}},
};
// Each symbolic size of all inputs has another one.
constexpr std::array<int64_t, 16> kDistinct{3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59};
constexpr size_t kPlaceOfDistinct = 3;

const TensorTypeNode* TypeOfParameter(const Var& param) {
  return AsTensorType(param->checked_type() ? param->checked_type() : param->type_annotation());
}

/// A size of a range: `size` itself, or one that goes by it.
int64_t Within(const SizeRange& range, int64_t size) {
  if (size >= range.low && size <= range.high) return size;
  const int64_t count = range.high == std::numeric_limits<int64_t>::max() ? size : range.high - range.low + 1;
  return range.low + size % count;
}

/// Dimensions that are known to be the same size in every run get one size, and each one that its range has; sums of
/// others get theirs.
template <typename SizeOf>
std::vector<Shape> ShapesOf(const Function& function, const SizeOf& size_of) {
  const NamedDimensions dimensions = DimensionsOf(function);
  std::vector<Shape> shapes;
  std::vector<std::pair<Dim, int64_t>> known;
  for (const Var& param : function->params()) {
    Shape shape;
    for (const Dim& dim : TypeOfParameter(param)->shape()) {
      const auto same = std::ranges::find_if(known, [&](const auto& one) { return one.first.IsSame(dim); });
      const SizeRange range = dimensions.RangeOf(shapes.size(), shape.size());
      const int64_t size = !dim.is_any()         ? dim.size()
                           : same != known.end() ? same->second
                                                 : Within(range, size_of(shape.size(), shapes.size()));
      if (dim.is_any() && same == known.end()) known.emplace_back(dim, size);
      shape.push_back(size);
    }
    shapes.push_back(std::move(shape));
  }
  std::map<std::string, int64_t> sizes;
  for (size_t i = 0; i < shapes.size(); ++i) {
    for (size_t axis = 0; axis < shapes[i].size(); ++axis) sizes.emplace(dimensions.NameOf(i, axis), shapes[i][axis]);
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    for (size_t axis = 0; axis < shapes[i].size(); ++axis) {
      const std::optional<SizeSum> sum = dimensions.SumOf(i, axis);
      if (sum) shapes[i][axis] = sum->Of(sizes).value_or(shapes[i][axis]);
    }
  }
  return shapes;
}

std::string ShapeText(const Shape& shape) {
  return shape.empty() ? "scalar" : fmt::format("{}", fmt::join(shape, "x"));
}

/// The dimensions that have names, and the shapes of inputs that are open otherwise; of all inputs if none is open.
std::string SizesText(const Function& function, const std::vector<Shape>& shapes) {
  const NamedDimensions dimensions = DimensionsOf(function);
  std::vector<std::string> open, all;
  const auto add = [&](const std::string& text) {
    if (std::ranges::find(open, text) == open.end()) open.push_back(text);
  };
  for (size_t i = 0; i < shapes.size(); ++i) {
    const Var& param = function->params()[i];
    all.push_back(fmt::format("{}={}", param->name(), ShapeText(shapes[i])));
    std::vector<std::string> named;
    bool have_names = true;
    for (size_t axis = 0; axis < shapes[i].size(); ++axis) {
      if (!TypeOfParameter(param)->shape()[axis].is_any()) continue;
      have_names = have_names && dimensions.HasName(i, axis);
      named.push_back(fmt::format("{}={}", dimensions.NameOf(i, axis), shapes[i][axis]));
    }
    if (have_names) {
      std::ranges::for_each(named, add);
    } else {
      add(all.back());
    }
  }
  return all.empty() ? "no inputs" : fmt::format("{}", fmt::join(open.empty() ? all : open, ", "));
}

/// One run to make: at these shapes, on random inputs or given ones.
struct Trial {
  std::vector<Shape> shapes;
  Draw draw = Draw::kUnit;
  const std::vector<Tensor>* inputs = nullptr;  ///< null: random
  std::string name;
  bool is_named = false;  ///< in ProgramCheckOptions::shapes
};

/// The result of a trial.
struct Outcome {
  enum class Kind : uint8_t { kRight, kWrong, kRefused } kind = Kind::kRefused;
  std::string reason;
  double error = 0;
  double multiply_adds = 0;
};

/// The child process's side.
class Child {
 public:
  Child(const IRModule& module, const vm::Executable& program, const ProgramCheckOptions& options)
      : module_(module), program_(program), options_(options) {}

  Outcome Try(const Trial& trial, double most_multiply_adds, const SendProgress& progress) {
    SignsOfLife alive(progress);
    alive.Say("reference");
    Outcome outcome;
    std::optional<Reference> reference;
    std::vector<Tensor> inputs;
    try {
      const IRModule model = options_.bind ? options_.bind(trial.shapes) : module_;
      CheckParameters(model, trial.shapes);
      outcome.multiply_adds = IsProgram(model) ? 0 : WorkOf(model.main()).multiply_adds;
      if (outcome.multiply_adds > most_multiply_adds) {
        outcome.reason = fmt::format("the reference would take too long at {}", trial.name);
        return outcome;
      }
      inputs = trial.inputs != nullptr ? *trial.inputs : SampleInputs(model.main(), trial.draw, trial.shapes);
      SetNumThreads(options_.num_threads);
      reference = MakeReference(model, inputs, trial.draw, alive);
    } catch (const Error& error) {
      outcome.reason = error.message();
      return outcome;
    }
    alive.Say("program");
    outcome = Compare(*reference, Run(inputs), outcome);
    // The second run has the sizes planned (bytecode/replay.h).
    if (outcome.kind == Outcome::Kind::kRight) outcome = Compare(*reference, Run(inputs), outcome);
    if (outcome.kind == Outcome::Kind::kRight) outcome = TryOthers(trial, alive, outcome);
    if (outcome.kind == Outcome::Kind::kRight) outcome = Compare(*reference, Run(inputs), outcome);
    return outcome;
  }

 private:
  /// Runs on other inputs of the same sizes: results must follow the inputs.
  Outcome TryOthers(const Trial& trial, SignsOfLife& alive, const Outcome& outcome) {
    alive.Say("reference");
    std::optional<Reference> reference;
    std::vector<Tensor> inputs;
    const Draw draw = trial.draw == Draw::kNormal ? Draw::kUnit : Draw::kNormal;
    try {
      const IRModule model = options_.bind ? options_.bind(trial.shapes) : module_;
      inputs = SampleInputs(model.main(), draw, trial.shapes);
      reference = MakeReference(model, inputs, draw, alive);
    } catch (const Error&) {  // random values that mean nothing, beside given ones
      return outcome;
    }
    alive.Say("program");
    Outcome found = Compare(*reference, Run(inputs), outcome);
    if (found.kind != Outcome::Kind::kRight) found.reason += fmt::format(", on {} after others", NameOf(draw));
    return found;
  }

  /// Throws kInput where the bound model has other parameters than the program.
  void CheckParameters(const IRModule& model, const std::vector<Shape>& shapes) const {
    const std::vector<Var>& params = model.main()->params();
    bool fits = params.size() == shapes.size();
    for (size_t i = 0; fits && i < shapes.size(); ++i) {
      const TensorTypeNode* type = TypeOfParameter(params[i]);
      fits = type != nullptr && type->dtype() == TypeOfParameter(module_.main()->params()[i])->dtype() &&
             (!type->is_static() || type->static_shape() == shapes[i]);
    }
    if (!fits) throw Error(ErrorCategory::kInput, "the model has other inputs with these shapes");
  }

  static Reference MakeReference(const IRModule& model, const std::vector<Tensor>& inputs, Draw draw,
                                 SignsOfLife& alive) {
    const auto evaluate = [model, inputs](const EvaluateOptions& given) {
      RandomDraws draws(kRandomSeed);
      EvaluateOptions options = given;
      options.draws = &draws;
      if (model.functions().size() == 1) return Evaluate(model.main(), inputs, options);
      std::vector<Value> args(inputs.begin(), inputs.end());
      return FlattenTensors(Interpret(model, "main", std::move(args), {.evaluate = options}));
    };
    const auto on_operator = [started = Clock::now(), count = int64_t{0}, &alive]() mutable {
      if (++count > kMostOperators || Clock::now() - started > kLongestEvaluation) {
        throw Error(ErrorCategory::kResource, "evaluating the reference takes too long");
      }
      alive.SayAgain();
    };
    return Reference(evaluate, ComputedIn(model.main()),
                     {.only_finite = draw == Draw::kWide, .on_operator = on_operator});
  }

  std::vector<Tensor> Run(const std::vector<Tensor>& inputs) {
    if (!machine_) machine_ = std::make_unique<vm::Machine>(program_);
    return FlattenTensors(
        machine_->Invoke("main", std::vector<Value>(inputs.begin(), inputs.end()), {.random_seed = kRandomSeed}));
  }

  Outcome Compare(const Reference& reference, const std::vector<Tensor>& actual, Outcome outcome) const {
    outcome.kind = Outcome::Kind::kWrong;
    if (actual.size() != reference.results().size()) {
      outcome.reason = fmt::format("there are {} results, wanted {}", actual.size(), reference.results().size());
      return outcome;
    }
    for (size_t i = 0; i < actual.size(); ++i) {
      const Comparison comparison = options_.max_error ? reference.CompareWithin(i, actual[i], *options_.max_error)
                                                       : reference.Compare(i, actual[i]);
      outcome.error = std::max(outcome.error, comparison.max_relative_error);
      if (comparison.agrees) continue;
      outcome.reason = fmt::format("result {} is wrong, {}", NameOfResult(i), comparison.difference);
      return outcome;
    }
    outcome.kind = Outcome::Kind::kRight;
    return outcome;
  }

  std::string NameOfResult(size_t index) const {
    const AttrValue* names = module_.main()->attrs().Find("output_names");
    if (names != nullptr && names->as_list() != nullptr && index < names->as_list()->size()) {
      const std::string* name = (*names->as_list())[index].as_string();
      if (name != nullptr) return fmt::format("'{}'", *name);
    }
    return std::to_string(index);
  }

  const IRModule& module_;
  const vm::Executable& program_;
  const ProgramCheckOptions& options_;
  std::unique_ptr<vm::Machine> machine_;
};

/// The whole check, from the parent's side.
class ProgramCheck {
 public:
  ProgramCheck(const IRModule& module, const vm::Executable& program, const ProgramCheckOptions& options)
      : module_(module),
        options_(options),
        child_(module, program, options),
        worker_([this](const std::string& request, const SendProgress& progress) { return Answer(request, progress); },
                options.limits) {}

  ProgramCheckResult Run() {
    ProgramCheckResult result;
    FindTrials();
    const auto started = Clock::now();
    std::string refusal = "there is nothing to run it on";
    double left = kAllMultiplyAdds;
    size_t num_right = 0;
    for (size_t i = 0; i < trials_.size(); ++i) {
      const bool is_given = trials_[i].inputs != nullptr;
      const bool is_wanted = is_given || trials_[i].is_named;
      const size_t enough = i < options_.shapes.size() + kMostSizes ? kMostSizes : kFewestSizes;
      if (!is_wanted && num_right >= enough) break;
      if (!is_wanted && num_deaths_ >= kMostDeaths) break;
      if (!is_wanted && num_right > 0 && (left <= 0 || Clock::now() - started > kLongestCheck)) break;
      const Outcome outcome = Try(i);
      if (outcome.kind == Outcome::Kind::kWrong) {
        throw Error(ErrorCategory::kInternal,
                    fmt::format("the compiled program is wrong at {}: {}", trials_[i].name, outcome.reason), "",
                    HasOpenSizes() ? "nothing was written; give the shapes of its inputs, as in --shape NAME=1x64"
                                   : "nothing was written");
      }
      if (outcome.kind == Outcome::Kind::kRefused) {
        if (is_given) {
          throw Error(ErrorCategory::kInput, fmt::format("the model refuses {}: {}", trials_[i].name, outcome.reason));
        }
        refusal = outcome.reason;
        continue;
      }
      left -= outcome.multiply_adds;
      num_right += trials_[i].is_named ? 0 : 1;
      if (std::ranges::find(result.sizes, trials_[i].name) == result.sizes.end()) {
        result.sizes.push_back(trials_[i].name);
        result.shapes.push_back(trials_[i].shapes);
      }
      result.max_error = std::max(result.max_error, outcome.error);
    }
    if (result.sizes.empty()) result.not_verified = refusal;
    return result;
  }

 private:
  bool HasOpenSizes() const {
    return std::ranges::any_of(module_.main()->params(), [](const Var& param) {
      const TensorTypeNode* type = TypeOfParameter(param);
      return type != nullptr && !type->is_static();
    });
  }

  /// Given inputs first, then shapes that are asked for.
  void FindTrials() {
    const Function& main = module_.main();
    for (const std::vector<Tensor>& inputs : options_.inputs) {
      std::vector<Shape> shapes;
      for (const Tensor& input : inputs) shapes.push_back(input.shape());
      trials_.push_back({shapes, Draw::kUnit, &inputs, SizesText(main, shapes) + " (given inputs)"});
    }
    const bool are_tensors =
        std::ranges::all_of(main->params(), [](const Var& param) { return TypeOfParameter(param) != nullptr; });
    if (!are_tensors) return;
    const auto add = [&](const std::vector<Shape>& shapes, bool is_named) {
      const Draw draw = kDrawsInTurn[trials_.size() % kDrawsInTurn.size()];
      trials_.push_back({shapes, draw, nullptr, SizesText(main, shapes), is_named});
    };
    for (const std::vector<Shape>& shapes : options_.shapes) add(shapes, /*is_named=*/true);
    const std::vector<std::vector<Shape>> all = ShapesToTry(main);
    const size_t repeats = all.size() == 1 ? kDrawsInTurn.size() : 1;
    for (const std::vector<Shape>& shapes : all) {
      for (size_t i = 0; i < repeats; ++i) add(shapes, /*is_named=*/false);
    }
  }

  Outcome Try(size_t trial) {
    std::string stage;
    const Result<std::string> answer =
        worker_.Call(std::to_string(trial), [&](const std::string& text) { stage = text; });
    if (answer.ok()) {
      const Json json = Json::parse(*answer);
      return {static_cast<Outcome::Kind>(json.at("kind").get<int>()), json.at("reason"), json.at("error"),
              json.at("multiply_adds")};
    }
    // The reference may well end with sizes that it was not made for; the program may not where the reference did not.
    const bool is_program = stage == "program";
    ++num_deaths_;
    return {is_program ? Outcome::Kind::kWrong : Outcome::Kind::kRefused,
            fmt::format("{} failed: {}", is_program ? "running it" : "evaluating the reference", answer.reason().text),
            0, 0};
  }

  /// In the child.
  std::string Answer(const std::string& request, const SendProgress& progress) {
    const Trial& trial = trials_.at(std::stoul(request));
    const double most = trial.inputs != nullptr ? std::numeric_limits<double>::infinity() : kMostMultiplyAdds;
    const Outcome outcome = child_.Try(trial, most, progress);
    const Json json{{"kind", static_cast<int>(outcome.kind)},
                    {"reason", outcome.reason},
                    {"error", std::min(outcome.error, std::numeric_limits<double>::max())},
                    {"multiply_adds", outcome.multiply_adds}};
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  // Large values last: they are what models are least made for.
  static constexpr std::array kDrawsInTurn{Draw::kUnit, Draw::kPositive, Draw::kNormal, Draw::kWide};

  const IRModule& module_;
  const ProgramCheckOptions& options_;
  std::vector<Trial> trials_;
  int num_deaths_ = 0;
  Child child_;
  Worker worker_;
};

}  // namespace

std::vector<std::vector<Shape>> ShapesToTry(const Function& function) {
  std::vector<std::vector<Shape>> all;
  const auto add = [&](std::vector<Shape> shapes) {
    const bool is_small =
        std::ranges::all_of(shapes, [](const Shape& shape) { return NumElements(shape) <= kMostElements; });
    if (is_small && std::ranges::find(all, shapes) == all.end()) all.push_back(std::move(shapes));
  };
  for (const Sizes& sizes : kSizes) {
    std::vector<size_t> num_open(function->params().size());
    add(ShapesOf(function, [&](size_t dim, size_t param) {
      return dim == 0 ? sizes.first : sizes.others[num_open[param]++ % sizes.others.size()];
    }));
    if (all.size() != kPlaceOfDistinct) continue;
    size_t next = 0;
    add(ShapesOf(function, [&](size_t, size_t) { return kDistinct[next++ % kDistinct.size()]; }));
  }
  return all;
}

ProgramCheckResult CheckProgram(const IRModule& module, const vm::Executable& program,
                                const ProgramCheckOptions& options) {
  return ProgramCheck(module, program, options).Run();
}

}  // namespace collage
