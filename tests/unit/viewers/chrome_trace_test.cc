#include "viewers/chrome_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>

namespace collage {
namespace {

using Json = nlohmann::json;

TEST(ChromeTraceTest, HasATrackForEachThreadAndCountsOfArenas) {
  Profile profile;
  profile.executable = "m.clg";
  profile.steps.resize(2);
  profile.steps[0] = {.kind = "kernel", .plan_step = 0, .partition = 0, .toolchain = "native", .operators = "add"};
  profile.steps[1] = {.kind = "copy", .plan_step = 1, .toolchain = "host", .operators = "copy"};
  profile.timeline = {
      {0, 0, false, 1e-6, 5e-6}, {0, 0, true, 2e-6, 4e-6}, {1, 0, true, 2e-6, 3e-6}, {0, 1, false, 6e-6, 7e-6}};
  profile.arenas = {{"", "host", 128, 128, {{0, 0, 128, 0, 1, "float32(32)"}}}};
  const Json events = Json::parse(ChromeTrace(std::array{profile, profile}))["traceEvents"];
  std::vector<std::string> phases, names;
  for (const Json& event : events) {
    if (event["pid"] != 1) continue;
    phases.push_back(event["ph"]);
    names.push_back(event["name"]);
  }
  EXPECT_THAT(phases, testing::ElementsAre("M", "M", "M", "X", "X", "X", "X", "C", "C", "C"));
  EXPECT_THAT(
      names, testing::ElementsAre("process_name", "thread_name", "thread_name", "native add", "parallel", "parallel",
                                  "host copy", "arena in host memory", "arena in host memory", "arena in host memory"));
  const Json& step = events[3];
  EXPECT_NEAR(step["ts"].get<double>(), 1, 1e-9);
  EXPECT_NEAR(step["dur"].get<double>(), 4, 1e-9);
  EXPECT_EQ(step["args"]["partition"], 0);
  EXPECT_EQ(events[5]["tid"], 1);
  EXPECT_EQ(events[7]["args"]["bytes in use"], 128);
  EXPECT_EQ(events[9]["args"]["bytes in use"], 0) << "behind the last step";
  EXPECT_EQ(events.back()["pid"], 2) << "another executable is another process";
}

}  // namespace
}  // namespace collage
