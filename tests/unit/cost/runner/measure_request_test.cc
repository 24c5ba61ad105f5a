#include "cost/runner/measure_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <utility>

#include "collage/ir/infer_type.h"
#include "collage/ir/structural.h"
#include "collage/ir/text.h"
#include "collage/support/error.h"

namespace collage {
namespace {

using testing::HasSubstr;

/// A toolchain that keeps what it is asked to compile, and declines.
class Recording : public Toolchain {
 public:
  std::string name() const override { return "recording"; }
  std::string description() const override { return "keeps requests"; }
  Availability Probe() const override { return {true, "1", "", ""}; }
  int priority() const override { return 0; }
  Result<CompiledPartition> RelayToRuntime(const PartitionRequest& request) const override {
    last = request;
    return Reason{"only recorded", "recording"};
  }
  static inline std::optional<PartitionRequest> last;
};

const Toolchain& RecordingToolchain() {
  ToolchainRegistry& registry = ToolchainRegistry::Global();
  if (registry.Find("recording") == nullptr) registry.Add(std::make_unique<Recording>());
  return *registry.Find("recording");
}

/// Any bits: numbers that are none and such as text easily loses are among them.
Expr AnyConstant(const Shape& shape, DataType dtype) {
  static std::mt19937_64 random(7);
  Tensor tensor = Tensor::Zeros(shape, dtype);
  auto* bytes = static_cast<unsigned char*>(tensor.raw());
  for (size_t i = 0; i < tensor.size_bytes(); ++i) bytes[i] = static_cast<unsigned char>(random());
  return MakeConstant(std::move(tensor));
}

std::string TextOf(const Function& function) {
  IRModule module;
  module.Set("main", function);
  return PrintModule(module);
}

TimePartition Held(const PartitionRequest& request) {
  return {{std::nullopt, HeldPartition{request, RecordingToolchain().name()}, ""}};
}

/// What a toolchain is given for `request` after it went through text.
PartitionRequest ThroughText(const PartitionRequest& request) {
  Recording::last.reset();
  MeasureContext context;
  context.num_threads = request.num_threads;
  const TuningRecord record = MeasureAnswerFromText(AnswerMeasureRequest(ToText({context, Held(request)}), nullptr));
  EXPECT_FALSE(record.ok);
  EXPECT_THAT(record.reason, HasSubstr("only recorded"));
  EXPECT_TRUE(Recording::last.has_value());
  return *std::exchange(Recording::last, std::nullopt);  // no expression outlives the main thread's data
}

void ExpectSame(const PartitionRequest& a, const PartitionRequest& b) {
  EXPECT_TRUE(StructuralEqual(a.function, b.function));
  EXPECT_TRUE(TextOf(a.function) == TextOf(b.function)) << "texts or constants differ";
  EXPECT_EQ(a.layouts, b.layouts);
  EXPECT_EQ(a.num_threads, b.num_threads);
}

TEST(MeasureRequestTest, PartitionsOfPatternsAreReadBack) {
  // What a pattern toolchain gets: a composite with a constant of 9 MB, two results, one of them channels-last.
  const Var data = MakeVar("data", TensorType(Shape{1, 64, 8, 8}, kFloat32));
  const Var inner = MakeVar("FunctionVar_0", TensorType(Shape{1, 64, 8, 8}, kFloat32));
  Attrs convolution;
  convolution.Set("padding", std::vector<int64_t>{1, 1, 1, 1});
  const Expr conv = MakeCall("nn.conv2d", {inner, AnyConstant({4096, 64, 3, 3}, kFloat32)}, convolution);
  Attrs composite;
  composite.Set("Composite", std::string("recording.conv2d_relu"));
  composite.Set("PartitionedFromPattern", std::string("nn.conv2d_nn.relu_"));
  const Function called = MakeFunction({inner}, MakeCall("nn.relu", {conv}), nullptr, composite);
  Attrs whole;
  whole.Set("Primitive", int64_t{1});
  whole.Set("Compiler", std::string("recording"));
  whole.Set("global_symbol", std::string("recording_0"));
  const Function function =
      MakeFunction({data}, MakeTuple({MakeCall(called, {data}), MakeCall("nn.relu", {data})}), nullptr, whole);
  InferType(function);
  const PartitionRequest request{
      function, {{Layout::kChannelsLast}, {Layout::kChannelsLastBFloat16, Layout::kPlain}}, /*num_threads=*/1};
  ExpectSame(ThroughText(request), request);
}

TEST(MeasureRequestTest, ConstantsOfAllTypesAreReadBack) {
  for (const DataType dtype : {kFloat32, kFloat64, kFloat16, kInt8, kUInt8, kInt32, kInt64}) {
    const Var x = MakeVar("x", TensorType(Shape{3, 5}, dtype));
    const Expr scalar = AnyConstant({}, dtype);
    const Expr shared = AnyConstant({3, 5}, dtype);
    const Expr sum = MakeCall("add", {MakeCall("multiply", {x, shared}), scalar});
    const Function function = MakeFunction({x}, MakeCall("maximum", {sum, shared}));
    InferType(function);
    const PartitionRequest request{function, {{Layout::kPlain}, {Layout::kPlain}}, 1};
    SCOPED_TRACE(dtype.ToString());
    ExpectSame(ThroughText(request), request);
  }
}

TEST(MeasureRequestTest, OtherRequestsAreRefused) {
  const auto message = [](const std::string& request) -> std::string {
    try {
      AnswerMeasureRequest(request, nullptr);
    } catch (const Error& error) {
      return error.message();
    }
    return "answered";
  };
  EXPECT_THAT(message("{"), HasSubstr("no request to measure something"));
  EXPECT_THAT(message(R"({"threads":1,"operands":0})"), HasSubstr("no request to measure something"));
  EXPECT_THAT(message(R"({"kind":"weather","threads":1,"operands":0})"), HasSubstr("'weather' is no kind of request"));
  EXPECT_THAT(message(R"({"kind":"partition","threads":1,"operands":0,"partition":{}})"),
              HasSubstr("it names no partition"));
  EXPECT_THAT(message(ToText({{}, TimePartition{{CandidateHandle{7}, std::nullopt, ""}}})),
              HasSubstr("candidate 7 is not known here"));
  EXPECT_THAT(message(R"({"kind":"probe","threads":1,"operands":0,"probe":"smallest call","toolchain":"nobody"})"),
              HasSubstr("there is no toolchain 'nobody'"));
}

TEST(MeasureRequestTest, RequestsOfEveryKindAreReadBack) {
  MeasureContext context;
  context.num_threads = 3;
  context.timing.operands = CacheLevel::kShared;
  context.timing.percentile = 0.9;
  const MeasureTask tasks[] = {TimePartition{{CandidateHandle{0}, std::nullopt, "tile=8"}},
                               KeepCompiled{{CandidateHandle{3}, std::nullopt, "rows=4"}},
                               ListSchedules{{CandidateHandle{7}, std::nullopt, ""}},
                               TimeProbe{"smallest call", "native -accuracy=exact"},
                               TimeTransition{},
                               TimeSwitch{"a", "b"},
                               FindRate{"memory"},
                               TimeConversion{{1, 2}, kFloat16, Layout::kPlain, Layout::kChannelsLast}};
  for (size_t i = 0; i < std::size(tasks); ++i) {
    EXPECT_EQ(tasks[i].index(), i);
    const std::string text = ToText({context, tasks[i]});
    const MeasureRequest read = MeasureRequestFromText(text);
    EXPECT_EQ(read.task.index(), i);
    EXPECT_EQ(ToText(read), text);
    EXPECT_EQ(read.context.timing.operands, CacheLevel::kShared);
  }
}

TEST(MeasureRequestTest, AnswersAreReadBack) {
  MeasureAnswer record;
  record.schedules = {"rows=3", "a \"quoted\" one"};
  record.ok = true;
  record.minimum = 1.0 / 3;
  record.p50 = 2e-9;
  record.p90 = 5;
  record.num_samples = 7;
  record.max_error = 1e-300;
  record.reason = "\"quoted\" \xff\n";
  const MeasureAnswer read = MeasureAnswerFromText(ToText(record));
  EXPECT_EQ(read.ok, record.ok);
  EXPECT_EQ(read.schedules, record.schedules);
  EXPECT_EQ(read.minimum, record.minimum);
  EXPECT_EQ(read.p50, record.p50);
  EXPECT_EQ(read.p90, record.p90);
  EXPECT_EQ(read.num_samples, record.num_samples);
  EXPECT_EQ(read.max_error, record.max_error);
  EXPECT_THAT(read.reason, HasSubstr("\"quoted\""));
}

}  // namespace
}  // namespace collage
