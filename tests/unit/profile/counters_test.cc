#include "profile/counters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <thread>

namespace collage {
namespace {

TEST(CountersTest, ReasonsNameWhatMayBeDone) {
  EXPECT_EQ(WhyNoCounter(EACCES, "3"),
            "not permitted: kernel.perf_event_paranoid is 3; `sysctl kernel.perf_event_paranoid=2`, CAP_PERFMON or the "
            "container's seccomp profile allows it");
  EXPECT_THAT(WhyNoCounter(EPERM, ""), testing::StartsWith("not permitted; `sysctl"));
  EXPECT_EQ(WhyNoCounter(ENOENT, "2"), "the processor, or the virtual machine, has no such counter");
  EXPECT_EQ(WhyNoCounter(ENOSYS, ""), "this system has no perf_event_open");
  EXPECT_THAT(WhyNoCounter(EINVAL, "2"), testing::HasSubstr("Invalid argument"));
}

TEST(CountersTest, EachIsCountedOrSaysWhyNot) {
  const Counters counters;
  std::vector<std::string> names;
  for (const Counters::Row& row : counters.rows()) names.push_back(row.name);
  EXPECT_THAT(names, testing::ElementsAre("cycles", "instructions", "cache_misses", "branch_misses", "page_faults",
                                          "context_switches", "cpu_seconds"));
  std::vector<double> before(names.size()), after(names.size());
  counters.Read(before);
  // Each page that is touched for the first time is a fault.
  constexpr size_t kPages = 300, kPage = 4096;
  auto* memory = static_cast<volatile char*>(
      mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  madvise(const_cast<char*>(memory), kPages * kPage, MADV_NOHUGEPAGE);
  for (size_t page = 0; page < kPages; ++page) memory[page * kPage] = 1;
  counters.Read(after);
  munmap(const_cast<char*>(memory), kPages * kPage);
  for (size_t i = 0; i < names.size(); ++i) {
    const bool is_available = counters.rows()[i].reason.empty();
    if (names[i] == "page_faults") {
      EXPECT_GE(after[i] - before[i], kPages);
    }
    if (names[i] == "cycles" || names[i] == "instructions") {
      EXPECT_EQ(after[i] > before[i], is_available) << names[i] << ": " << counters.rows()[i].reason;
    }
    if (names[i] == "cpu_seconds") {
      EXPECT_GT(after[i], before[i]);
    }
    if (!is_available) {
      EXPECT_EQ(after[i], 0) << names[i];
    }
  }
}

TEST(CountersTest, ThreadsAreCountedTogether) {
  // Counters of the kernel, which virtual machines have, too; read like those of the processor.
  constexpr std::array kEvents{CounterEvent{"nothing", PERF_TYPE_HARDWARE, 12345},
                               CounterEvent{"nanoseconds", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
                               CounterEvent{"faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS}};
  std::atomic<int> state = 0;
  std::atomic<int64_t> sum = 0;
  const auto work = [&] {
    for (int64_t i = 0; i < 20'000'000; ++i) sum.fetch_add(i, std::memory_order_relaxed);
  };
  std::thread other([&] {
    state = 1;
    while (state != 2) std::this_thread::yield();
    work();
  });
  while (state != 1) std::this_thread::yield();
  const Counters counters(kEvents);
  EXPECT_NE(counters.rows().at(0).reason, "");
  std::vector<double> before(counters.rows().size()), after(before);
  counters.Read(before);
  state = 2;
  other.join();
  counters.Read(after);
  if (!counters.rows().at(1).reason.empty()) GTEST_SKIP() << counters.rows().at(1).reason;
  EXPECT_EQ(after[0], 0);
  EXPECT_GT(after[1] - before[1], 10e6) << "nanoseconds of a thread that this one only waited for";
  EXPECT_GT(after[5] - before[5], 0.01) << "seconds of all threads";
}

}  // namespace
}  // namespace collage
