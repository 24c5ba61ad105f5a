// verdict_test.cc: the answer of a compilation in a sentence.
#include "report/verdict.h"

#include <gtest/gtest.h>

namespace collage {
namespace {

Contender Made(const std::string& name, bool is_single, double seconds, std::map<std::string, int> partitions) {
  Contender one;
  one.name = name;
  one.is_single = is_single;
  one.p50 = one.p90 = seconds;
  one.samples = 10;
  one.partitions = std::move(partitions);
  return one;
}

CompileReport Report(const std::string& winner, std::vector<Contender> contenders) {
  CompileReport report;
  report.machine = "a CPU";
  report.num_threads = 1;
  report.winner = winner;
  report.contenders = std::move(contenders);
  return report;
}

TEST(Verdict, OfAMixHasEachToolchainAlone) {
  const CompileReport report =
      Report("collage", {Made("collage", false, 2e-3, {{"a", 1}, {"b", 2}}), Made("a", true, 4e-3, {{"a", 3}}),
                         Made("b-search", true, 2.5e-3, {{"b", 3}}), Made("b", true, 3e-3, {{"b", 3}})});
  EXPECT_EQ(VerdictOf(report),
            "2.000 ms on a CPU, 1 thread, by a and b: 1.25 times faster than b alone, 2.00 times faster than a alone.");
}

TEST(Verdict, OfASingleToolchainSaysThatNoMixIsFaster) {
  CompileReport report = Report("a", {Made("a", true, 2e-3, {{"a", 3}}), Made("b", true, 3e-3, {{"b", 3}}),
                                      Made("collage", false, 2.1e-3, {{"a", 1}, {"b", 2}})});
  const std::string begin =
      "2.000 ms on a CPU, 1 thread, by a: 1.50 times faster than b alone, no mix of toolchains is faster";
  EXPECT_EQ(VerdictOf(report), begin + ".");
  report.certificate = Certificate{};
  report.certificate->cover_seconds = 2e-3;
  report.certificate->least_seconds = 1.9e-3;
  EXPECT_EQ(VerdictOf(report), begin + ", and none can be by more than 5.0 %, by their costs.");
  report.certificate->least_seconds = 2e-3;
  report.budget_spent = true;
  EXPECT_EQ(VerdictOf(report), begin + ", and none can be, by the costs measured so far.");
}

TEST(Verdict, WithoutOthersIsTheTime) {
  EXPECT_EQ(VerdictOf(Report("a", {Made("a", true, 2e-3, {{"a", 3}})})), "2.000 ms on a CPU, 1 thread, by a.");
  EXPECT_EQ(VerdictOf(Report("", {})), "");
  Contender untimed = Made("collage", false, 0, {{"a", 1}});
  untimed.samples = 0;
  EXPECT_EQ(VerdictOf(Report("collage", {untimed})), "");
  untimed.estimated_seconds = 3e-3;
  EXPECT_EQ(VerdictOf(Report("collage", {untimed})), "3.000 ms by an estimate on a CPU, 1 thread, by a.");
}

TEST(Verdict, ATieIsNoGain) {
  EXPECT_EQ(VerdictOf(Report("collage", {Made("collage", false, 2e-3, {{"a", 1}, {"b", 1}}),
                                         Made("a", true, 2.005e-3, {{"a", 2}})})),
            "2.000 ms on a CPU, 1 thread, by a and b: as fast as a alone.");
}

TEST(ContenderWords, SayWhatItIs) {
  EXPECT_EQ(WordsFor(Made("collage", false, 1, {})), "best mix");
  EXPECT_EQ(WordsFor(Made("collage-3", false, 1, {})), "next best mix, 3");
  EXPECT_EQ(WordsFor(Made("collage-primary", false, 1, {})), "best mix of largest parts");
  EXPECT_EQ(WordsFor(Made("collage-a-b", false, 1, {})), "best mix of a-b");
  EXPECT_EQ(WordsFor(Made("a", true, 1, {})), "a alone");
  EXPECT_EQ(WordsFor(Made("a-search", true, 1, {})), "a alone, searched");
  EXPECT_EQ(WordsFor(Made("given p.json", false, 1, {})), "given p.json");
}

}  // namespace
}  // namespace collage
