#include "report/profile_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/json.h"
#include "report/text.h"

namespace collage {
namespace {

Profile Sample() {
  Profile profile;
  profile.executable = "m.clg";
  profile.machine = "a CPU";
  profile.runs = 60;
  profile.seconds = {9e-6, 10e-6, 12e-6};
  profile.timed = {10e-6, 11e-6, 13e-6};
  profile.overhead = 0.1;
  profile.between_steps = 1e-6;
  profile.first_run_seconds = 50e-6;
  profile.roof = RoofProfile{50e9, 400e9, 100e9, 20e9};
  profile.steps.resize(2);
  profile.steps[0] = {.kind = "kernel", .plan_step = 0, .partition = 0, .toolchain = "native", .operators = "exp"};
  profile.steps[0].seconds = {2e-6, 2.5e-6, 3e-6};
  profile.steps[0].share = 0.25;
  profile.steps[1] = {.kind = "kernel", .plan_step = 1, .partition = 1, .toolchain = "dnnl", .operators = "nn.dense"};
  profile.steps[1].nodes = {"fc_1"};
  profile.steps[1].seconds = {7e-6, 7.5e-6, 8e-6};
  profile.steps[1].share = 0.75;
  profile.steps[1].products = 75000;
  profile.steps[1].bytes = 15000;
  profile.steps[1].roof_seconds = 1.5e-6;
  profile.steps[1].bound = "arithmetic";
  profile.counters = {{"cycles", "not here", {}}, {"instructions", "not here", {}}, {"page_faults", "", 0}};
  profile.memory = {1'000'000, 900'000, 4000, 2000};
  return profile;
}

TEST(ProfileFactsTest, TextHasTheLongestStepsFirst) {
  EXPECT_EQ(RenderText(ProfileFacts(Sample(), {.by_time = true})), R"(m.clg · 1 thread · a CPU
run         p50 10.0 us, p10 9.00 us, p90 12.0 us
            60 runs · first run 50.0 us
timed       p50 11.0 us with every step timed, in turns with the others
            timing adds +10.0 % · 1.00 us between steps
roof        100.0 GFLOP/s in float32 · reads near caches 400.0, the shared one 100.0, memory 20.0 GB/s
memory      1.0 MB at most in this process, 900 kB now · weights 4.0 kB · arenas 0 B · code 2.0 kB
counters    cycles, instructions: not here · page_faults 0
  step  p50      share   cumulative  of roof            GFLOP/s  GB/s  estimated  toolchain  operators  nodes of the model
  1     7.50 us  75.0 %      75.0 %  20.0 % arithmetic     20.0  2.00             dnnl       nn.dense   fc_1
  0     2.50 us  25.0 %     100.0 %                                               native     exp
)");
}

TEST(ProfileFactsTest, TextLeavesOutStepsBeyondThoseThatAreWanted) {
  const std::string text = RenderText(ProfileFacts(Sample(), {.by_time = true, .shown = 1}));
  EXPECT_THAT(text, testing::HasSubstr("nn.dense"));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("exp\n")));
  EXPECT_THAT(text, testing::EndsWith("the 1 longest of 2 steps; --top 0 shows all\n"));
}

TEST(ProfileFactsTest, JsonHasNothingForWhatIsNotKnown) {
  const nlohmann::json json = nlohmann::json::parse(RenderJson(ProfileFacts(Sample())));
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["roof"]["flops_per_second"], 100e9);
  Profile without = Sample();
  without.roof.reset();
  EXPECT_TRUE(nlohmann::json::parse(RenderJson(ProfileFacts(without)))["roof"].is_null());
  EXPECT_TRUE(json["cold_seconds"].is_null());
  EXPECT_TRUE(json["estimated_seconds"].is_null()) << "no partition has an estimate";
  EXPECT_TRUE(json["steps"][0]["flops"].is_null());
  EXPECT_TRUE(json["steps"][0]["roof_share"].is_null());
  EXPECT_EQ(json["steps"][1]["flops"], 150000);
  EXPECT_NEAR(json["steps"][1]["roof_share"].get<double>(), 0.2, 1e-9);
  EXPECT_EQ(json["counters"][0]["available"], false);
  EXPECT_TRUE(json["counters"][0]["per_run"].is_null());
  EXPECT_EQ(json["counters"][2]["per_run"], 0);
}

}  // namespace
}  // namespace collage
