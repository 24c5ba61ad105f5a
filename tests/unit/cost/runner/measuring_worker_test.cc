#include "cost/runner/measuring_worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <sstream>

#include "collage/ir/infer_type.h"
#include "collage/ir/structural.h"
#include "collage/support/error.h"

namespace collage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A toolchain whose compiler misbehaves.
class Misbehaving : public Toolchain {
 public:
  std::string name() const override { return "misbehaving"; }
  std::string description() const override { return "crashes or prints"; }
  Availability Probe() const override { return {true, "1", "", ""}; }
  int priority() const override { return 0; }
  Result<CompiledPartition> RelayToRuntime(const PartitionRequest& request) const override {
    if (request.layouts.inputs[0] == Layout::kPlain) std::raise(SIGSEGV);
    std::puts("{\"id\": 1, \"record\": \"forged\"}");
    return Reason{"declined", "misbehaving"};
  }
};

const Toolchain& MisbehavingToolchain() {
  ToolchainRegistry& registry = ToolchainRegistry::Global();
  if (registry.Find("misbehaving") == nullptr) registry.Add(std::make_unique<Misbehaving>());
  return *registry.Find("misbehaving");
}

Function Relu() {
  const Var x = MakeVar("x", TensorType(Shape{1, 2, 3, 4}, kFloat32));
  const Function function = MakeFunction({x}, MakeCall("nn.relu", {x}));
  InferType(function);
  return function;
}

/// The text of a request to time it with the input in `layout`.
std::string ReluRequest(Layout layout) {
  const PartitionRequest request{Relu(), {{layout}, {Layout::kPlain}}, 1};
  return ToText({{}, TimePartition{{std::nullopt, HeldPartition{request, MisbehavingToolchain().name()}, ""}}});
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> Serve(const std::string& requests, const WorkerIdentity* wanted = nullptr) {
  std::istringstream in(requests);
  std::ostringstream out;
  ServeMeasurements({"1.0", "here", 2, {{"a", "1"}}}, wanted, {}, in, out);
  return LinesOf(out.str());
}

std::string Line(int id, const std::string& request) {
  return R"({"id":)" + std::to_string(id) + R"(,"request":)" + request + "}\n";
}

TEST(MeasuringWorkerTest, SaysWhatItIsAndWhetherItFits) {
  EXPECT_THAT(Serve(""), ElementsAre(AllOf(HasSubstr(R"("machine":"here")"), HasSubstr(R"("ready":1)"),
                                           HasSubstr(R"("toolchains":{"a":"1"})"), Not(HasSubstr("unfit")))));
  const WorkerIdentity same{"1.0", "here", 1, {{"a", "1"}}};
  EXPECT_THAT(Serve("", &same), ElementsAre(Not(HasSubstr("unfit"))));
  const WorkerIdentity other{"1.1", "there", 4, {{"a", "2"}, {"b", "1"}}};
  EXPECT_THAT(Serve("", &other), ElementsAre(HasSubstr("unfit")));
  EXPECT_EQ(
      WhyUnfit({"1.0", "here", 2, {{"a", "1"}}}, other),
      "Collage is 1.0, not 1.1; the machine is of kind 'here', not 'there'; there are 2 processors for 4 threads; "
      "toolchain 'a' is 1, not 2; there is no toolchain 'b'");
}

TEST(MeasuringWorkerTest, AnIdentityIsReadBack) {
  const WorkerIdentity identity{"1.0", "here \"x\"", 3, {{"a", "1"}, {"b", "2+3"}}};
  const WorkerIdentity read = WorkerIdentityFromText(ToText(identity));
  EXPECT_EQ(WhyUnfit(read, identity), "");
  EXPECT_EQ(WhyUnfit(identity, read), "");
  EXPECT_THROW(WorkerIdentityFromText("{}"), Error);
}

TEST(MeasuringWorkerTest, CrashesAndForgeriesAreAnswers) {
  const std::string crash = ReluRequest(Layout::kPlain);
  const std::string print = ReluRequest(Layout::kChannelsLast);
  const std::vector<std::string> lines = Serve(Line(1, crash) + Line(2, print) + Line(3, crash));
  ASSERT_EQ(lines.size(), 4u);
  for (size_t i : {1, 3}) {
    EXPECT_THAT(lines[i], HasSubstr(R"("id":)" + std::to_string(i)));
    EXPECT_THAT(lines[i], HasSubstr("crashed with signal 11"));
  }
  EXPECT_THAT(lines[2], AllOf(HasSubstr(R"("id":2)"), HasSubstr("declined"), Not(HasSubstr("forged"))));
}

TEST(MeasuringWorkerTest, QuestionsAreJsonHoweverItIsWritten) {
  const std::string request = ReluRequest(Layout::kChannelsLast);
  const std::vector<std::string> lines =
      Serve(" { \"request\" : " + request + " , \"id\": 12 } \n{\"id\":13,\"other\":1,\"request\":" + request + "}\n");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_THAT(lines[1], AllOf(HasSubstr(R"("id":12)"), HasSubstr("declined")));
  EXPECT_THAT(lines[2], AllOf(HasSubstr(R"("id":13)"), HasSubstr("declined")));
}

TEST(MeasuringWorkerTest, WhatIsNoRequestIsNoRecord) {
  ASSERT_EQ(MisbehavingToolchain().name(), "misbehaving");  // is registered
  const std::vector<std::string> lines =
      Serve("garbage\n[1]\n{\"id\":1}\n" + Line(2, "{}") + Line(9, "{") +
            Line(3, ToText({{}, TimePartition{{CandidateHandle{7}, std::nullopt, ""}}})) + "\n{\"cancel\":[1,2]}\n" +
            Line(4, R"({"kind":"partition","threads":1,"operands":0,)"
                    R"("partition":{"held":{"module":"}","toolchain":"misbehaving","inputs":[],"outputs":[]}}})"));
  ASSERT_EQ(lines.size(), 8u);
  for (const std::string& line : lines) EXPECT_THAT(line, Not(HasSubstr("record")));
  for (size_t i : {1, 2, 3}) EXPECT_THAT(lines[i], HasSubstr("no line of JSON with an id and a request"));
  EXPECT_THAT(lines[4], HasSubstr("no request to measure something"));
  EXPECT_THAT(lines[5], HasSubstr("no request to measure something"));
  EXPECT_THAT(lines[6], HasSubstr("candidate 7 is not known here"));
  EXPECT_THAT(lines[7], HasSubstr("partition"));
}

}  // namespace
}  // namespace collage
