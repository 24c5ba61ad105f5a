// replay_test.cc: runs at sizes that were seen before: the same results, from memory that nobody else writes to.
#include "bytecode/replay.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ir/eval/interpreter.h"
#include "unit/bytecode/run_text.h"
#include "unit/support/throws.h"

namespace collage {
namespace {

Tensor Counting(const Shape& shape, double from) {
  const Tensor tensor = Tensor::Empty(shape, kFloat32);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.Set(i, from + static_cast<double>(i));
  return tensor;
}

/// A program with shape arithmetic: reshapes to a shape that is computed, and its inverse.
constexpr const char* kReshapes = R"(
  def @main(%x: Tensor[(?, 6), float32], %y: Tensor[(?, 6), float32]) {
    %0 = shape_of(%x, dtype="int64");
    %1 = take(%0, 0i64, axis=0);
    %2 = reshape(%1, newshape=[1]);
    %3 = concatenate((%2, full(2i64, shape=[1]), full(3i64, shape=[1])), axis=0);
    %4 = dyn.reshape(add(%x, %y), %3);
    %5 = transpose(%4, axes=[0, 2, 1]);
    %6 = dyn.reshape(%5, %0);
    (multiply(%6, %x), %0, expand_dims(%6, axis=0), %y, 7f)
  })";

/// The value of `text` on arguments, by the reference.
Value Expected(const std::string& text, const std::vector<Value>& args) {
  return Interpret(ParseModule(text, "t.relay"), "main", args);
}

std::unique_ptr<vm::Replay> Planned(const vm::Executable& executable, const std::vector<Value>& args) {
  static std::vector<std::unique_ptr<vm::KernelInstances>> kept;
  kept.push_back(std::make_unique<vm::KernelInstances>(executable.program()));
  return vm::Replay::Make(executable.program(), executable.program().functions[0], args, *kept.back());
}

TEST(ReplayTest, LaterRunsGiveTheSame) {
  const vm::Executable executable = CompileText(kReshapes);
  vm::Machine machine(executable);
  for (int round = 0; round < 4; ++round) {
    for (const int64_t rows : {3, 1, 0, 5}) {
      const std::vector<Value> args{Counting({rows, 6}, round), Counting({rows, 6}, 10)};
      const Value result = machine.Invoke("main", args);
      EXPECT_TRUE(ValuesEqual(result, Expected(kReshapes, args)))
          << "round " << round << ", " << rows << " rows: " << ToString(result);
    }
  }
  EXPECT_NE(Planned(executable, {Counting({3, 6}, 0), Counting({3, 6}, 0)}), nullptr);
}

TEST(ReplayTest, MoreSizesThanAreRememberedGiveTheSame) {
  vm::Machine machine(CompileText(kReshapes));
  for (int round = 0; round < 3; ++round) {
    for (int64_t rows = 1; rows < 40; ++rows) {
      const std::vector<Value> args{Counting({rows, 6}, round), Counting({rows, 6}, 10)};
      for (int i = 0; i < 2; ++i) {
        EXPECT_TRUE(ValuesEqual(machine.Invoke("main", args), Expected(kReshapes, args))) << rows;
      }
    }
  }
}

TEST(ReplayTest, ResultsOutliveLaterRuns) {
  vm::Machine machine(CompileText(kReshapes));
  std::vector<Value> results;
  std::vector<std::vector<Value>> all_args;
  for (int i = 0; i < 5; ++i) {
    all_args.push_back({Counting({3, 6}, i), Counting({3, 6}, 10 * i)});
    results.push_back(machine.Invoke("main", all_args.back()));
  }
  for (size_t i = 0; i < results.size(); ++i) {
    EXPECT_TRUE(ValuesEqual(results[i], Expected(kReshapes, all_args[i]))) << i;
  }
}

TEST(ReplayTest, WritingToAResultChangesNoLaterOne) {
  vm::Machine machine(CompileText(kReshapes));
  const std::vector<Value> args{Counting({3, 6}, 1), Counting({3, 6}, 2)};
  for (int i = 0; i < 4; ++i) {
    const Value result = machine.Invoke("main", args);
    EXPECT_TRUE(ValuesEqual(result, Expected(kReshapes, args))) << i;
    if (i < 2) continue;  // planned
    for (const size_t field : {0, 1, 2, 4}) result.fields()[field].tensor().Set(0, 99);
  }
}

TEST(ReplayTest, SizesThatDependOnDataAreNotPlanned) {
  const std::string text = R"(def @main(%x: Tensor[(?), float32]) { argwhere(greater(%x, 2f)) })";
  const vm::Executable executable = CompileText(text);
  EXPECT_EQ(Planned(executable, {Counting({4}, 0)}), nullptr);
  vm::Machine machine(executable);
  for (const double from : {0, 1, 2, 0}) {
    const std::vector<Value> args{Counting({4}, from)};
    EXPECT_TRUE(ValuesEqual(machine.Invoke("main", args), Expected(text, args))) << from;
  }
}

TEST(ReplayTest, ControlFlowIsNotPlanned) {
  const std::string text = R"(def @main(%x: Tensor[(?), float32], %c: bool) { if (%c) { exp(%x) } else { %x } })";
  const vm::Executable executable = CompileText(text);
  EXPECT_EQ(Planned(executable, {Counting({4}, 0), Scalar(1, kBool)}), nullptr);
  vm::Machine machine(executable);
  for (const int flag : {0, 1, 0, 1}) {
    const std::vector<Value> args{Counting({4}, 1), Scalar(flag, kBool)};
    EXPECT_TRUE(ValuesEqual(machine.Invoke("main", args), Expected(text, args))) << flag;
  }
}

TEST(ReplayTest, FunctionsArePlannedWhereTheyAreCalled) {
  const std::string text = R"(
    def @twice(%x: Tensor[(?), float32]) -> Tensor[(?), float32] { add(%x, %x) }
    def @main(%x: Tensor[(?), float32], %y: Tensor[(1), float32]) -> Tensor[(?), float32] {
      let %scale = fn (%z: Tensor[(?), float32]) -> Tensor[(?), float32] { multiply(%z, %y) };
      let %w = @twice(%scale(%x));
      @twice(%w)
    })";
  const vm::Executable executable = CompileText(text);
  vm::Machine machine(executable);
  for (const double from : {0, 1, 2, 0}) {
    const std::vector<Value> args{Counting({4}, from), Counting({1}, 3)};
    EXPECT_TRUE(ValuesEqual(machine.Invoke("main", args), Expected(text, args))) << from;
  }
  const auto& globals = executable.program().globals;
  const auto main = static_cast<size_t>(std::ranges::find(globals, "main") - globals.begin());
  vm::KernelInstances kernels(executable.program());
  EXPECT_NE(vm::Replay::Make(executable.program(), executable.program().functions[main],
                             {Counting({4}, 0), Counting({1}, 3)}, kernels),
            nullptr);
}

TEST(ReplayTest, EndlessRecursionIsNotPlanned) {
  const std::string text = R"(def @main(%x: Tensor[(?), float32]) -> Tensor[(?), float32] { @main(%x) })";
  vm::Machine machine(CompileText(text));
  for (int i = 0; i < 3; ++i) {
    ExpectError([&] { machine.Invoke("main", {Value(Counting({4}, 0))}, {.max_instructions = 1000}); },
                ErrorCategory::kResource, "more than 1000 instructions");
  }
}

TEST(ReplayTest, ErrorsAreThoseOfTheInterpreter) {
  vm::Machine machine(
      CompileText("def @main(%x: Tensor[(?), float32], %i: Tensor[(1), int64]) {\n"
                  "  %0 = dyn.reshape(%x, %i);\n  %0\n}"));
  for (int i = 0; i < 3; ++i) {
    ExpectError(
        [&] {
          machine.Invoke("main",
                         {Value(Counting({4}, 0)), Value(Tensor::Of<int64_t>({1}, kInt64, std::vector<int64_t>{3}))});
        },
        ErrorCategory::kInput, "reshape");
  }
  ExpectError([&] { machine.Invoke("main", {Value(Counting({4}, 0))}); }, ErrorCategory::kInput,
              "'@main' has 2 parameters, got 1 arguments");
}

TEST(ReplayTest, ResultsGoWhereTheyAreWanted) {
  vm::Machine machine(CompileText("def @main(%x: Tensor[(?, 4), float32]) { (add(%x, 1f), exp(%x)) }"));
  const std::vector<Value> args{Counting({2, 4}, 0)};
  const std::vector<Tensor> given{Tensor::Zeros({2, 4}, kFloat32), Tensor::Zeros({3, 4}, kFloat32)};
  for (int i = 0; i < 3; ++i) {
    const Value result = machine.Invoke("main", args, {.destinations = given});
    EXPECT_EQ(result.fields()[0].tensor().At(7), 8);
    EXPECT_NE(result.fields()[1].tensor().raw(), given[1].raw()) << "it has other elements";
  }
  EXPECT_EQ(given[1].At(0), 0);
}

}  // namespace
}  // namespace collage
