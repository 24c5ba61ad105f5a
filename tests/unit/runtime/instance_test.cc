// instance_test.cc: running plans.
#include <gtest/gtest.h>

#include <chrono>

#include "collage/runtime/executable.h"
#include "collage/runtime/thread_pool.h"
#include "unit/runtime/test_plan.h"
#include "unit/support/throws.h"

/// Read by AddressSanitizer, which would end the process where an allocation must fail.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }

namespace collage {
namespace {

using Step = ExecutionPlan::Step;

Tensor Range(Shape shape, float first = 0) {
  const Tensor tensor = Tensor::Empty(std::move(shape), kFloat32);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.data<float>()[i] = first + static_cast<float>(i);
  return tensor;
}

void ExpectShifted(const Tensor& actual, const Tensor& input, float by) {
  ASSERT_EQ(actual.num_elements(), input.num_elements());
  for (int64_t i = 0; i < input.num_elements(); ++i) ASSERT_EQ(actual.At(i), input.At(i) + by) << i;
}

class InstanceTest : public testing::Test {
 protected:
  InstanceTest() { RegisterAddLoader(); }
  ~InstanceTest() override { SetNumThreads(1); }
};

TEST_F(InstanceTest, ChainOfAHundredKernels) {
  ExecutionInstance instance(Executable::FromPlan(ChainPlan(100, 77)));
  const Tensor x = Range({77});
  instance.SetInput(0, x);
  instance.Run();
  ExpectShifted(instance.Output(0), x, 100);
  instance.SetInput(0, Range({77}, 5));
  instance.Run();
  ExpectShifted(instance.Output(0), x, 105);
}

/// Adds where its parameter lies, too.
class InPlaceKernel : public AddKernel {
 public:
  using AddKernel::AddKernel;
  std::vector<InPlaceResult> in_place() const override { return {{0, 0}}; }
};

class InPlaceLoader : public KernelLoader {
 public:
  std::unique_ptr<Kernel> Load(const KernelImage& image) override {
    int64_t count = 0;
    std::memcpy(&count, image.blob.data(), sizeof count);
    return std::make_unique<InPlaceKernel>(count, image.constants[0].data<float>()[0]);
  }
};

/// x → x + 1 → … by kernels whose results may lie where their parameters do.
ExecutionPlan InPlaceChain(int length) {
  AddKernelLoader("test_in_place", std::make_unique<InPlaceLoader>());
  ExecutionPlan plan = ChainPlan(length, 16);
  for (ExecutionPlan::KernelEntry& kernel : plan.kernels) kernel.loader = "test_in_place";
  return plan;
}

TEST_F(InstanceTest, AnOutputMayLieWhereTheInputDoesThatItReplaces) {
  ExecutionInstance instance(Executable::FromPlan(InPlaceChain(1)));
  EXPECT_EQ(instance.in_place(), (std::vector<InPlaceResult>{{0, 0}}));
  const Tensor x = Range({16});
  instance.SetInput(0, x);
  instance.SetOutput(0, x);
  for (int run = 1; run <= 3; ++run) {
    instance.Run();
    ExpectShifted(x, Range({16}), static_cast<float>(run));
  }
}

TEST_F(InstanceTest, AnOutputMayNotLieInAnInputThatIsReadLater) {
  const Tensor x = Range({16});
  ExecutionPlan read_twice = InPlaceChain(1);
  read_twice.steps.push_back(read_twice.steps[0]);  // it reads the input once more, and writes the output again
  for (const ExecutionPlan& plan : {ChainPlan(1, 16), InPlaceChain(2), read_twice}) {
    ExecutionInstance instance(Executable::FromPlan(plan));
    EXPECT_EQ(instance.in_place(), std::vector<InPlaceResult>{});
    instance.SetInput(0, x);
    instance.Run();
    instance.SetOutput(0, x);
    ExpectError([&] { instance.Run(); }, ErrorCategory::kInput,
                "output 'y' lies in the memory of input 'x', which is read when it is written");
    instance.SetInput(0, Range({16}, 3));
    instance.Run();
  }
}

TEST_F(InstanceTest, ValuesAreSeenWhenTheyAreMade) {
  const ExecutionPlan plan = ChainPlan(5, 7);
  ExecutionInstance instance(Executable::FromPlan(plan));
  instance.SetInput(0, Range({7}));
  std::vector<float> firsts;
  instance.RunWatched([&](const ExecutionPlan::Value& value, const void* data) {
    EXPECT_EQ(value.shape, (Shape{7}));
    firsts.push_back(*static_cast<const float*>(data));
  });
  EXPECT_EQ(firsts, (std::vector<float>{1, 2, 3, 4, 5}));
  ExpectShifted(instance.Output(0), Range({7}), 5);
}

TEST_F(InstanceTest, InputIsReadInPlaceAndOutputWrittenInPlace) {
  ExecutionInstance instance(Executable::FromPlan(ChainPlan(3, 4)));
  const Tensor x = Range({4});
  const Tensor y = Tensor::Zeros({4}, kFloat32);
  instance.SetInput(0, x);
  instance.SetOutput(0, y);
  x.Set(0, 50);
  instance.Run();
  ExpectShifted(y, x, 3);
  EXPECT_EQ(instance.Output(0).raw(), y.raw());
}

TEST_F(InstanceTest, UnalignedInputIsCopied) {
  ExecutionInstance instance(Executable::FromPlan(ChainPlan(2, 3)));
  const Tensor whole = Range({16});
  const Tensor part = Tensor::View({3}, kFloat32, whole.data<float>() + 1, std::make_shared<Tensor>(whole));
  instance.SetInput(0, part);
  instance.Run();
  ExpectShifted(instance.Output(0), part, 2);
}

TEST_F(InstanceTest, OnlyKernelsThatTouchAnInputAreBoundAgain) {
  ExecutionInstance instance(Executable::FromPlan(ChainPlan(10, 4)));
  instance.SetInput(0, Range({4}));
  Counts() = {};
  instance.SetInput(0, Range({4}));
  EXPECT_EQ(Counts().bound, 1);
  instance.SetOutput(0, Range({4}));
  EXPECT_EQ(Counts().bound, 2);
  instance.Run();
  EXPECT_EQ(Counts().run, 10);
}

TEST_F(InstanceTest, OutputsMayBeInputsConstantsOrRepeated) {
  PlanWriter writer;
  const Tensor constant = Range({5}, 100);
  const int x = writer.AddInput("x", {5});
  const int held = writer.AddConstant(constant);
  const int sum = writer.AddOutput("sum", {5});
  writer.Add(x, sum, 1.0f);
  writer.Move(Step::kCopy, x, writer.AddOutput("same_as_input", {5}));
  writer.Move(Step::kCopy, held, writer.AddOutput("constant", {5}));
  writer.Move(Step::kCopy, sum, writer.AddOutput("sum_again", {5}));
  ExecutionInstance instance(Executable::FromPlan(writer.plan));
  instance.SetInput(0, Range({5}));
  const Tensor elsewhere = Tensor::Zeros({5}, kFloat32);
  instance.SetOutput(0, elsewhere);  // the copy must follow
  instance.Run();
  ExpectShifted(elsewhere, Range({5}), 1);
  EXPECT_TRUE(BitEqual(instance.Output(1), Range({5})));
  EXPECT_TRUE(BitEqual(instance.Output(2), constant));
  EXPECT_TRUE(BitEqual(instance.Output(3), elsewhere));
}

TEST_F(InstanceTest, LayoutStepsConvert) {
  PlanWriter writer;
  const Shape shape{1, 3, 4, 5};
  const int x = writer.AddInput("x", shape);
  const int last = writer.AddArenaValue(shape, Layout::kChannelsLast);
  const int sum = writer.AddArenaValue(shape, Layout::kChannelsLast);
  writer.Move(Step::kConvertLayout, x, last);
  writer.Add(last, sum, 2.0f);
  writer.Move(Step::kConvertLayout, sum, writer.AddOutput("y", shape));
  ExecutionInstance instance(Executable::FromPlan(writer.plan));
  instance.SetInput(0, Range(shape));
  instance.Run();
  ExpectShifted(instance.Output(0), Range(shape), 2);
}

TEST_F(InstanceTest, ValuesBetweenStepsMayBeRounded) {
  PlanWriter writer;
  const Shape shape{1, 3, 4, 5};
  const int x = writer.AddInput("x", shape);
  const int rounded = writer.AddArenaValue(shape, Layout::kChannelsLastBFloat16);
  writer.Move(Step::kConvertLayout, x, rounded);
  writer.Move(Step::kConvertLayout, rounded, writer.AddOutput("y", shape));
  ExecutionInstance instance(Executable::FromPlan(writer.plan));
  const Tensor input = Range(shape, 1000);
  instance.SetInput(0, input);
  instance.Run();
  EXPECT_TRUE(BitEqual(instance.Output(0), input.Cast(kBFloat16).Cast(kFloat32)));
  EXPECT_FALSE(BitEqual(instance.Output(0), input));
}

TEST_F(InstanceTest, AliasesShareMemory) {
  PlanWriter writer;
  const int x = writer.AddInput("x", {2, 6});
  const int flat = writer.AddAlias({12}, x);
  const int sum = writer.AddArenaValue({12});
  writer.Add(flat, sum, 1.0f);
  writer.Add(writer.AddAlias({3, 4}, sum), writer.AddOutput("y", {3, 4}), 1.0f);
  ExecutionInstance instance(Executable::FromPlan(writer.plan));
  instance.SetInput(0, Range({2, 6}));
  instance.Run();
  ExpectShifted(instance.Output(0), Range({2, 6}), 2);
}

TEST_F(InstanceTest, WorkspaceIsApartFromValues) {
  PlanWriter writer;
  const int x = writer.AddInput("x", {3});
  const int middle = writer.AddArenaValue({3});
  writer.Add(x, middle, 1.0f);
  writer.Add(middle, writer.AddOutput("y", {3}), 1.0f, /*workspace_bytes=*/64);
  ExecutionInstance instance(Executable::FromPlan(writer.plan));
  instance.SetInput(0, Range({3}));
  instance.Run();
  ExpectShifted(instance.Output(0), Range({3}), 2);
}

TEST_F(InstanceTest, WrongTensorsAreRefused) {
  ExecutionInstance instance(Executable::FromPlan(ChainPlan(2, 4)));
  ExpectError([&] { instance.Run(); }, ErrorCategory::kInput, "input 'x' has not been set");
  ExpectError([&] { instance.RunTimed(); }, ErrorCategory::kInput, "input 'x' has not been set");
  ExpectError([&] { instance.SetInput(0, Range({5})); }, ErrorCategory::kInput,
              "input 'x' wants float32 (4), got float32 (5)");
  ExpectError([&] { instance.SetInput(0, Tensor::Zeros({4}, kInt32)); }, ErrorCategory::kInput, "got int32 (4)");
  ExpectError([&] { instance.SetInput(0, Tensor()); }, ErrorCategory::kInput, "got an empty tensor");
  ExpectError([&] { instance.SetInput(1, Range({4})); }, ErrorCategory::kInput, "there is no input 1");
  ExpectError([&] { instance.SetOutput(1, Range({4})); }, ErrorCategory::kInput, "there is no output 1");
  ExpectError([&] { instance.SetOutput(0, Range({4, 1})); }, ErrorCategory::kInput, "output 'y' wants");
  const Tensor whole = Range({16});
  const Tensor unaligned = Tensor::View({4}, kFloat32, whole.data<float>() + 1, nullptr);
  ExpectError([&] { instance.SetOutput(0, unaligned); }, ErrorCategory::kInput, "not 64-byte aligned");
}

TEST_F(InstanceTest, TimesEveryStep) {
  ExecutionInstance instance(Executable::FromPlan(ChainPlan(7, 4)));
  instance.SetInput(0, Range({4}));
  const auto start = std::chrono::steady_clock::now();
  const std::vector<double> seconds = instance.RunTimed();
  const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - start;
  ASSERT_EQ(seconds.size(), 7u);
  double sum = 0;
  for (const double step : seconds) {
    EXPECT_GE(step, 0);
    sum += step;
  }
  EXPECT_GT(sum, 0);
  EXPECT_LE(sum, whole.count()) << "steps run one after the other";
  ExpectShifted(instance.Output(0), Range({4}), 7);
}

TEST_F(InstanceTest, InstancesOfOneExecutableAreIndependentAndMovable) {
  const Executable executable = Executable::FromPlan(ChainPlan(3, 4));
  ExecutionInstance first(executable);
  ExecutionInstance second(executable);
  first.SetInput(0, Range({4}));
  second.SetInput(0, Range({4}, 10));
  first.Run();
  ExecutionInstance moved(std::move(second));
  moved.Run();
  ExpectShifted(first.Output(0), Range({4}), 3);
  ExpectShifted(moved.Output(0), Range({4}), 13);
}

TEST_F(InstanceTest, UnknownLoaderIsUnavailable) {
  ExecutionPlan plan = ChainPlan(1, 4);
  plan.kernels[0].loader = "no_such_loader";
  ExpectError([&] { ExecutionInstance(Executable::FromPlan(plan)); }, ErrorCategory::kUnavailable,
              "cannot open module 'libcollage_rt_no_such_loader.so'");
}

TEST_F(InstanceTest, ImpossibleArenaIsAResourceError) {
  PlanWriter writer;
  writer.plan.values.push_back({{int64_t{1} << 40}, {.lanes = 65535}, Layout::kPlain});
  writer.plan.arena_bytes = (size_t{1} << 40) * 4 * 65535;
  ExpectError([&] { ExecutionInstance(Executable::FromPlan(writer.plan)); }, ErrorCategory::kResource,
              "cannot allocate");
}

TEST_F(InstanceTest, ThePlanSetsTheNumberOfThreads) {
  ExecutionPlan plan = ChainPlan(5, 4);
  plan.num_threads = 3;
  const ExecutionInstance instance(Executable::FromPlan(plan));
  EXPECT_EQ(NumThreads(), 3);
}

}  // namespace
}  // namespace collage
