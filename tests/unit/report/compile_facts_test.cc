#include "report/compile_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/json.h"
#include "report/text.h"

namespace collage {
namespace {

using testing::HasSubstr;

Contender MakeContender(const std::string& name, double p50, std::map<std::string, int> partitions) {
  Contender one;
  one.name = name;
  one.is_single = partitions.size() == 1;
  one.estimated_seconds = p50 * 0.75;
  one.p50 = p50;
  one.p90 = p50 + 0.125e-3;
  one.minimum = p50;
  one.samples = 21;
  one.relative = 1;
  one.max_error = 1.5e-6;
  one.partitions = std::move(partitions);
  return one;
}

CompileReport MakeReport() {
  CompileReport report;
  report.model = "model.onnx";
  report.num_operators = 24;
  report.num_parameters = 5'930'000;
  report.machine = "a CPU";
  report.num_threads = 2;
  ToolchainReport& native = report.toolchains.emplace_back();
  native.name = "native";
  native.available = native.takes_part = true;
  native.version = "22.1";
  native.license = "Apache-2.0";
  native.participants = {"native"};
  native.options = {{"accuracy", "a string", "standard", "how exact"}};
  ToolchainReport& vendor = report.toolchains.emplace_back();
  vendor.name = "vendor";
  vendor.reason = "cannot open libvendor.so";
  vendor.hint = "install it";
  report.num_candidates = 120;
  report.num_variants = 340;
  report.num_states = 12;
  report.num_measured = 80;
  report.num_remeasured = 3;
  report.num_from_database = 20;
  report.num_failed = 1;
  report.budget_spent = true;
  report.failures["timed out"] = {1, "nn.dense took longer than 60 s"};
  report.tuning.partitions = 2;
  report.tuning.faster = 1;
  report.tuning.trials = 30;
  report.tuning.seconds = 60;
  report.tuning.gain = 0.125;
  report.contenders = {MakeContender("collage", 8e-3, {{"native", 1}, {"other", 2}}),
                       MakeContender("native", 10e-3, {{"native", 3}}), MakeContender("other", 52e-3, {{"other", 1}})};
  report.contenders[2].failure = "result 0 is off by 1.6e-02";
  report.winner = "collage";
  report.additive_error_seconds = 2e-3;
  report.apparent_loss_seconds = {{"native", -2e-3}, {"other", -43.7e-3}};
  report.optimality_loss_seconds = 0.5e-3;
  report.num_covers = 24;
  report.output = "model.clg";
  report.output_bytes = 17'200'000;
  report.import_seconds = 0.5;
  report.search_seconds = 4;
  report.play_off_seconds = 8;
  report.play_off_parts = {1, 2, 4, 1};
  report.total_seconds = 12.5;
  return report;
}

TEST(CompileFactsTest, Text) {
  CompileReport report = MakeReport();
  ToolchainReport& when_named = report.toolchains.emplace_back();  // of which nothing is said
  when_named.name = "for_another_machine";
  when_named.reason = "there is no GPU";
  when_named.is_default = false;
  EXPECT_EQ(RenderText(CompileFacts(report)),
            R"(8.000 ms on a CPU, 2 threads, by native and other: 1.25 times faster than native alone.
model.onnx  24 operators · 5.93 M parameters
machine     a CPU · 2 threads
toolchains  native 22.1 · vendor is not here: cannot open libvendor.so
search      120 candidates, with formats 340 · 80 measured and 3 again, 20 from the database, 1 failed · 12 states of the search · the budget was spent: run again to measure more
failures    1 x timed out   first: nn.dense took longer than 60 s
schedules   30 trials in 60.0 s, 30 a minute, 0 known · 1 of 2 partitions faster, by 12.5 % of all
  play-off      p50       p90       time   estimated  partitions
  best mix      8.000 ms  8.125 ms  1.00x   6.000 ms  native 1 · other 2
  native alone  10.00 ms  10.12 ms  1.25x   7.500 ms  native 3
  other is out: result 0 is off by 1.6e-02
winner      best mix: p50 8.000 ms, p90 125 us more · native 1 · other 2
gain        Faster by 2.000 ms than native, the best partitioning without a search.
costs       The best mix takes 2.000 ms more than its costs add up to (additive error). The best of all 24 covers takes 500 us less than the best that was searched (optimality loss).
verified    best mix against the reference evaluation: max error 1.5e-06 of the largest result
wrote       model.clg  17.2 MB  in 12.5 s (import 0.5 s, search 4.0 s, play-off 8.0 s: build 2.0 s, check 1.0 s, timing 4.0 s, write 1.0 s)
)");
}

/// The report of the test that follows, with one contender and one toolchain.
const char* const kJson = R"({
  "schema": 2,
  "verdict": "8.000 ms on a CPU, 2 threads, by native and other.",
  "model": "model.onnx",
  "operators": 24,
  "parameters": 5930000,
  "machine": "a CPU",
  "threads": 2,
  "toolchains": [
    {
      "name": "native",
      "available": true,
      "version": "22.1",
      "default": true,
      "reason": "",
      "hint": "",
      "license": "Apache-2.0",
      "hooks": [],
      "options": [
        {
          "name": "accuracy",
          "type": "a string",
          "default": "standard",
          "meaning": "how exact"
        }
      ],
      "incompatible": [],
      "takes_part": true,
      "takes_part_as": [
        "native"
      ]
    }
  ],
  "precision_variants": [],
  "no_precision_variants": "",
  "search": {
    "candidates": 120,
    "variants": 340,
    "states": 12,
    "distinct": 0,
    "measured": 80,
    "remeasured": 3,
    "from_database": 20,
    "failed": 1,
    "below_bound": 0,
    "checkpoints": 0,
    "stopped": false,
    "budget_spent": true
  },
  "failures": [
    {
      "kind": "timed out",
      "count": 1,
      "example": "nn.dense took longer than 60 s"
    }
  ],
  "certificate": null,
  "choices": [],
  "tuning": {
    "partitions": 2,
    "faster": 1,
    "trials": 30,
    "known_trials": 0,
    "seconds": 60.0,
    "gain": 0.125,
    "budget_spent": false,
    "trials_per_minute": 30.0
  },
  "bounded_mix": null,
  "play_off": [
    {
      "name": "collage",
      "words": "best mix",
      "single": false,
      "extra": false,
      "estimated_seconds": 0.006,
      "p50_seconds": 0.008,
      "spread_seconds": 0.0001250000000000001,
      "to_winner": 1.0,
      "p90_seconds": 0.008125,
      "min_seconds": 0.008,
      "samples": 21,
      "relative": 1.0,
      "first_relative": 0.0,
      "is_finalist": false,
      "max_error": 1.5e-06,
      "partitions": {
        "native": 1,
        "other": 2
      },
      "failure": ""
    }
  ],
  "regions": [],
  "searched_sizes": [],
  "winner": "collage",
  "p50_seconds": 0.008,
  "spread_seconds": 0.0001250000000000001,
  "estimated_seconds": null,
  "partitions": {
    "native": 1,
    "other": 2
  },
  "best_baseline": "native",
  "apparent_loss_seconds": {
    "native": -0.002,
    "other": -0.0437
  },
  "additive_error_seconds": 0.002,
  "optimality_loss_seconds": 0.0005,
  "optimality_loss_unknown": "",
  "covers": 24,
  "verified": {
    "sizes": [],
    "max_error": 1.5e-06,
    "not_verified": ""
  },
  "parts": [],
  "reference_evaluation": [],
  "output": "model.clg",
  "output_bytes": 17200000,
  "seconds": {
    "import": 0.5,
    "search": 4.0,
    "play_off": 8.0,
    "total": 12.5,
    "build": 2.0,
    "check": 1.0,
    "timing": 4.0,
    "write": 1.0
  }
})";

TEST(CompileFactsTest, Json) {
  CompileReport report = MakeReport();
  report.contenders.resize(1);
  report.toolchains.resize(1);
  EXPECT_EQ(RenderJson(CompileFacts(report)), kJson);
}

TEST(CompileFactsTest, TheApparentLossIsAgainstTheBestWithoutASearch) {
  CompileReport report = MakeReport();
  report.apparent_loss_seconds["native-fuse-ops"] = -1e-3;
  EXPECT_THAT(
      RenderText(CompileFacts(report)),
      HasSubstr("gain        Faster by 1.000 ms than native-fuse-ops, the best partitioning without a search.\n"));
  report.apparent_loss_seconds["partition_for_other"] = 0;
  EXPECT_THAT(RenderText(CompileFacts(report)),
              HasSubstr("gain        No faster than partition_for_other, the best partitioning without a search.\n"));
  report.apparent_loss_seconds["given mine"] = 1e-6;  // a tie, with more toolchains
  EXPECT_THAT(RenderText(CompileFacts(report)),
              HasSubstr("gain        Slower by 1.00 us than given mine, the best partitioning without a search.\n"));
}

TEST(CompileFactsTest, OptimalityLossThatIsNotKnown) {
  CompileReport report = MakeReport();
  report.additive_error_seconds = 0;
  report.optimality_loss_seconds.reset();
  report.optimality_loss_unknown = "not feasible: more than 24 covers";
  EXPECT_THAT(RenderText(CompileFacts(report)),
              HasSubstr("costs       Optimality loss not feasible: more than 24 covers.\n"));
}

TEST(CompileFactsTest, Programs) {
  CompileReport report = MakeReport();
  report.regions = {MakeReport()};
  report.regions[0].model = "model, region 0";
  report.contenders.clear();
  report.winner.clear();
  report.apparent_loss_seconds.clear();
  report.additive_error_seconds = 0;
  report.optimality_loss_seconds.reset();
  report.num_covers = 0;
  report.verified_sizes = {"x=2x33", "x=1x1"};
  report.verified_error = 2e-7;
  report.evaluated = {{"nonzero", 2, "node", "no kernel", false}};
  const std::string text = RenderText(CompileFacts(report));
  EXPECT_THAT(text, HasSubstr(R"(
  region           operators  winner   p50       p90 - p50  partitions          parameters
  model, region 0         24  collage  8.000 ms     125 us  native 1 · other 2      5.93 M
verified    the program at x=2x33 · x=1x1: max error 2.0e-07 of the largest result
evaluated   2 x nonzero by reference evaluation, first at node: no kernel
wrote  )"));
}

TEST(CompileFactsTest, Certificate) {
  CompileReport report = MakeReport();
  report.budget_spent = false;
  report.certificate = Certificate{true, 0, {}, 6e-3, 5.97e-3};
  EXPECT_THAT(
      RenderText(CompileFacts(report)),
      HasSubstr("certificate No cover of these candidates is more than 0.5 % faster than the best mix, by their "
                "costs.\n"));
  report.certificate->least_seconds = 6e-3 * (1 - 1e-4);
  EXPECT_THAT(RenderText(CompileFacts(report)),
              HasSubstr("certificate No cover of these candidates is faster than the best mix, by their costs.\n"));
  report.certificate = Certificate{false, 12, {"dnnl", "xnnpack"}, 6e-3, 3e-3};
  report.budget_spent = true;
  EXPECT_THAT(RenderText(CompileFacts(report)),
              HasSubstr("certificate No cover of these candidates measured so far is more than 50.0 % faster than the "
                        "best mix, by their costs. The search dropped 12 states. There are more candidates of dnnl · "
                        "xnnpack than were tried.\n"));
  EXPECT_THAT(RenderJson(CompileFacts(report)), HasSubstr(R"("gap": 0.5,)"));
  // A bound above the cost is rounding.
  EXPECT_EQ((Certificate{true, 0, {}, 1, 1 + 1e-9}).gap(), 0);
}

CompileReport MakeReportOfChoices() {
  CompileReport report = MakeReport();
  PartitionChoice& first = report.choices.emplace_back();
  first.operators = "nn.conv2d+nn.relu";
  first.num_operators = 2;
  first.first_node = "conv_3";
  first.toolchain = "native";
  first.seconds = 1.23e-3;
  first.share = 0.12;
  first.alternatives = {
      {{{"other", 1}}, 0.31e-3, false}, {{{"native", 1}, {"other", 2}}, 0.4e-3, false}, {{{"third", 1}}, 0.1e-3, true}};
  first.refusals = {{"fourth", "'nn.relu': not taken"}};
  for (int i = 1; i <= 6; ++i) {
    PartitionChoice& next = report.choices.emplace_back();
    next.operators = "nn.relu";
    next.num_operators = 1;
    next.toolchain = "other";
    next.seconds = 0.1e-3;
    next.share = 0.01;
  }
  report.choices.back().operators = "last";
  report.choices[1].alternatives = {{{{"native", 1}}, 0, false}};
  report.choices[2].refusals = {{"native", "'nn.relu': crashed"}, {"third", "'nn.relu': not taken"}};
  return report;
}

TEST(CompileFactsTest, Choices) {
  const Fact facts = CompileFacts(MakeReportOfChoices());
  const std::string text = RenderText(facts);
  EXPECT_THAT(text, HasSubstr(R"(
why         nn.conv2d+nn.relu at conv_3, native 1.230 ms (12.0 %): best other way other +310 us; native and other in 3 partitions +400 us; third at least +100 us
            nn.relu, other 100 us (1.0 %): best other way native +0
            nn.relu, other 100 us (1.0 %): no other way (native: 'nn.relu': crashed; third: 'nn.relu': not taken)
            nn.relu, other 100 us (1.0 %): no other way
            nn.relu, other 100 us (1.0 %): no other way
schedules )"))
      << "five of seven";
  const std::string details = RenderText(facts, {.details = true});
  EXPECT_THAT(details, HasSubstr("third at least +100 us\nrefused     fourth: 'nn.relu': not taken\n\n"));
  EXPECT_THAT(details, HasSubstr("last, other")) << "all seven";
  EXPECT_THAT(RenderJson(facts), HasSubstr(R"(
  "choices": [
    {
      "operators": "nn.conv2d+nn.relu",
      "calls": 2,
      "first_node": "conv_3",
      "toolchain": "native",
      "seconds": 0.00123,
      "share": 0.12,
      "alternatives": [
        {
          "partitions": {
            "other": 1
          },
          "extra_seconds": 0.00031,
          "at_least": false
        },
)"));
  EXPECT_THAT(RenderJson(facts), HasSubstr(R"(
      "refused": [
        {
          "toolchain": "fourth",
          "reason": "'nn.relu': not taken"
        }
      ]
)"));
}

TEST(CompileFactsTest, BoundedMix) {
  CompileReport report = MakeReport();
  report.bounded = BoundedMix{0.01, 0.016, 4, 8e-3, 2, 4, 1.5};
  EXPECT_THAT(
      RenderText(CompileFacts(report)),
      HasSubstr("precision   collage-bounded has 2 partitions in lower precision, off by 8.0e-03, 0.01 is allowed; "
                "the best mix has 4 partitions in lower precision, off by 1.6e-02 (4 mixes built in 1.5 s)\n"));
}

TEST(CompileFactsTest, PartsOfToolchains) {
  CompileReport report = MakeReport();
  report.parts = {{"native", 12, "", 1, ""},
                  {"other", 0, "needs to know all shapes", 3, ""},
                  {"slow", 0, "needs to know all shapes", 0, "other partitionings were faster"},
                  {"third", 0, "'native' is to be alone", 0, "'native' is to be alone"}};
  EXPECT_THAT(RenderText(CompileFacts(report)), HasSubstr(R"(
parts       native: 12 kernels for any size · 1 partition of plans
            other: none for any size, needs to know all shapes · 3 partitions of plans
            slow: none for any size, needs to know all shapes · none in plans, other partitionings were faster
            third: nothing, 'native' is to be alone
)"));
  EXPECT_THAT(RenderJson(CompileFacts(report)), HasSubstr(R"(
  "parts": [
    {
      "toolchain": "native",
      "any_size_kernels": 12,
      "not_at_any_size": "",
      "plan_partitions": 1,
      "not_in_plans": ""
    },
)"));
}

TEST(CompileFactsTest, DetailsAreAllThereIs) {
  const std::string text = RenderText(CompileFacts(MakeReport()), {.details = true});
  for (const char* fact : {"  runs", "  min", "relative", "licence"}) EXPECT_THAT(text, HasSubstr(fact));
}

// docs/reports.md: one line adds a fact to all renderings.
TEST(CompileFactsTest, AnAddedFactIsInTextAndJson) {
  Fact report = CompileFacts(MakeReport());
  for (Fact& part : report.parts) {
    if (part.key == "search") part.parts.push_back(Fact::Count("pruned", "pruned", 7));
  }
  EXPECT_THAT(RenderText(report), HasSubstr(" · 7 pruned\n"));
  EXPECT_THAT(RenderJson(report), HasSubstr("\"pruned\": 7\n"));
}

TEST(TuneFactsTest, TextAndJson) {
  TunedModel tuned{"model.onnx", MakeReport(), {}};
  const std::vector<TunedModel> models{tuned, {"bad.onnx", {}, Error(ErrorCategory::kInput, "no such file")}};
  EXPECT_EQ(RenderText(TuneFacts(models, true)),
            R"(  model       candidates  measured  known  failed  time      state                 schedules
  model.onnx         120        80     20       1    12.5 s  more to measure       30 trials in 60.0 s, 30 a minute, 0 known · 1 of 2 partitions faster, by 12.5 % of all
  bad.onnx             0         0      0       0  0.000 us  failed: no such file
interrupted all that was measured is kept; the same command goes on
)");
  EXPECT_THAT(RenderJson(TuneFacts(models, false)), HasSubstr(R"("complete": false)"));
}

}  // namespace
}  // namespace collage
