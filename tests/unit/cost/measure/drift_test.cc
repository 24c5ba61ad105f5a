#include "cost/measure/drift.h"

#include <gtest/gtest.h>

#include "collage/runtime/thread_pool.h"

namespace collage {
namespace {

Samples One(double seconds) {
  Samples samples;
  samples.Add(seconds);
  return samples;
}

class DriftTest : public testing::Test {
 protected:
  double now_ = 1;  ///< what the fixed kernel takes
  DriftWatch watch_{[this] { return now_; }};
};

TEST_F(DriftTest, IsWhatReadingsAreByTheUsualOne) {
  EXPECT_EQ(watch_.Read(), 1);
  now_ = 1.5;
  EXPECT_EQ(watch_.Read(), 1.5);
  now_ = 0.5;
  EXPECT_EQ(watch_.Read(), 0.5);
}

TEST_F(DriftTest, AMachineThatStaysSlowBecomesUsual) {
  EXPECT_EQ(watch_.Read(), 1);
  now_ = 2;
  EXPECT_EQ(watch_.Read(), 2);
  int readings = 0;
  while (watch_.Read() > 1) ASSERT_LT(++readings, 100);
  EXPECT_GT(readings, 10);
}

TEST_F(DriftTest, WatchesMayShareWhatIsUsual) {
  DriftReadings readings;
  DriftWatch first([] { return 1.0; }, &readings);
  DriftWatch later([] { return 2.0; }, &readings);
  EXPECT_EQ(first.Read(), 1);
  EXPECT_EQ(later.Read(), 2);  // slow from its beginning, which it could not know alone
  EXPECT_EQ(DriftWatch([] { return 2.0; }).Read(), 1);
}

TEST_F(DriftTest, WhatWasHeldUpIsTimedAgain) {
  watch_.Read();
  int calls = 0;
  const Undisturbed timed = TimeUndisturbed(
      [&] {
        now_ = ++calls == 1 ? 1.4 : 1.0;  // held up during the first
        return One(calls);
      },
      watch_);
  // The second began when the machine was still slow, so it is the third that counts.
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(timed.samples.p50(), 3);
  EXPECT_EQ(timed.drift, 1);
}

TEST_F(DriftTest, ABusyMachineIsNotWaitedFor) {
  watch_.Read();
  int calls = 0;
  const double slow[] = {1.5, 1.3, 1.3, 1.6};
  const Undisturbed timed = TimeUndisturbed(
      [&] {
        now_ = slow[++calls];
        return One(calls);
      },
      watch_);
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(timed.samples.p50(), 1);  // the calmest
  EXPECT_EQ(timed.drift, 1.3);
}

TEST_F(DriftTest, ACalmOneIsTimedOnce) {
  int calls = 0;
  EXPECT_EQ(TimeUndisturbed([&] { return One(++calls); }, watch_).drift, 1);
  EXPECT_EQ(calls, 1);
}

TEST(ReferenceKernelTest, RunsOnAnyNumberOfThreads) {
  const int before = NumThreads();
  for (const int threads : {1, 2, 3}) {
    SetNumThreads(threads);
    EXPECT_GT(ReferenceKernelSeconds(), 0);
  }
  SetNumThreads(before);
}

}  // namespace
}  // namespace collage
