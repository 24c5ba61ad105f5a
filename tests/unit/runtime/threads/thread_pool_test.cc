// thread_pool_test.cc: every index once, whatever the number of threads, callers, processes.
#include "collage/runtime/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "runtime/threads/team.h"
#include "runtime/threads/team_watch.h"

namespace collage {
namespace {

/// Sets the number of threads for one test.
class Threads {
 public:
  explicit Threads(int count) { SetNumThreads(count); }
  ~Threads() { SetNumThreads(1); }
};

std::vector<int> CountVisits(int64_t count) {
  std::vector<int> visits(static_cast<size_t>(count));
  ParallelFor(
      count,
      [](void* context, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++(*static_cast<std::vector<int>*>(context))[static_cast<size_t>(i)];
      },
      &visits);
  return visits;
}

TEST(ThreadPool, EveryIndexIsVisitedOnce) {
  for (int threads : {1, 2, 3, 5, 8}) {
    const Threads scope(threads);
    for (int64_t count : {0, 1, 2, 3, 7, 100, 10'007}) {
      EXPECT_EQ(CountVisits(count), std::vector<int>(static_cast<size_t>(count), 1)) << threads << " threads";
    }
  }
}

TEST(ThreadPool, ManySmallRegionsInARow) {
  const Threads scope(3);
  for (int i = 0; i < 2000; ++i) ASSERT_EQ(CountVisits(5), std::vector<int>(5, 1)) << i;
}

TEST(ThreadPool, RegionsAfterWorkersWentToSleep) {
  const Threads scope(2);
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(CountVisits(2), std::vector<int>(2, 1));
    usleep(200);  // longer than workers spin; the result must not depend on it
  }
}

TEST(ThreadPool, RangesAreContiguousAndCoverHugeCounts) {
  const Threads scope(4);
  struct Ranges {
    std::mutex mutex;
    std::set<std::pair<int64_t, int64_t>> seen;
  } ranges;
  constexpr int64_t kCount = std::numeric_limits<int64_t>::max();
  ParallelFor(
      kCount,
      [](void* context, int64_t begin, int64_t end) {
        auto& all = *static_cast<Ranges*>(context);
        const std::lock_guard lock(all.mutex);
        all.seen.emplace(begin, end);
      },
      &ranges);
  EXPECT_EQ(ranges.seen.size(), 4u);
  int64_t next = 0;
  for (const auto& [begin, end] : ranges.seen) {
    EXPECT_EQ(begin, next);
    EXPECT_LE(end - begin, kCount / 4 + 1);
    next = end;
  }
  EXPECT_EQ(next, kCount);
}

TEST(ThreadPool, NestedCallsRunOnTheirThread) {
  const Threads scope(3);
  struct Outer {
    std::atomic<int> inner_ranges{0};
    std::atomic<int> strays{0};
    std::atomic<int> outer_ranges{0};
  } outer;
  ParallelFor(
      3,
      [](void* context, int64_t, int64_t) {
        auto& all = *static_cast<Outer*>(context);
        ++all.outer_ranges;
        std::pair<Outer*, std::thread::id> inner{&all, std::this_thread::get_id()};
        ParallelFor(
            100,
            [](void* inner_context, int64_t begin, int64_t end) {
              auto& [shared, thread] = *static_cast<std::pair<Outer*, std::thread::id>*>(inner_context);
              ++shared->inner_ranges;
              if (std::this_thread::get_id() != thread || begin != 0 || end != 100) ++shared->strays;
            },
            &inner);
      },
      &outer);
  EXPECT_EQ(outer.outer_ranges, 3);
  EXPECT_EQ(outer.inner_ranges, 3);
  EXPECT_EQ(outer.strays, 0);
}

TEST(ThreadPool, SeveralCallersTakeTurns) {
  const Threads scope(2);
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        if (CountVisits(9) != std::vector<int>(9, 1)) ++wrong;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST(ThreadPool, ForkedChildHasAPoolOfItsOwn) {
  const Threads scope(3);
  ASSERT_EQ(CountVisits(100), std::vector<int>(100, 1));  // the parent's pool has threads
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // a hang ends the child
    const bool right = CountVisits(100) == std::vector<int>(100, 1) && CountVisits(7) == std::vector<int>(7, 1);
    _exit(right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(CountVisits(100), std::vector<int>(100, 1));
}

TEST(ThreadPool, NumberOfThreadsIsAtLeastOne) {
  const Threads scope(1);
  SetNumThreads(0);
  EXPECT_EQ(NumThreads(), 1);
  SetNumThreads(-5);
  EXPECT_EQ(NumThreads(), 1);
  SetNumThreads(6);
  EXPECT_EQ(NumThreads(), 6);
  EXPECT_EQ(collage_num_threads(), 6);
  EXPECT_GE(AvailableProcessors(), 1);
}

TEST(Team, MembersRunAtTheSameTimeAndMeetAtBarriers) {
  struct Phases {
    std::atomic<int> arrived{0};
    std::atomic<int> early{0};
    std::atomic<int> indices{0};
  } phases;
  const auto member = [](void* context, int index, int size) {
    auto& all = *static_cast<Phases*>(context);
    all.indices.fetch_or(1 << index);
    if (index != collage_team_index() || size != 4 || collage_team_size() != 4) ++all.early;
    for (int phase = 1; phase <= 50; ++phase) {
      ++all.arrived;
      collage_team_barrier();
      if (all.arrived.load() < 4 * phase) ++all.early;
      collage_team_barrier();
    }
  };
  collage_team_begin(4, member, &phases);
  member(&phases, collage_team_index(), collage_team_size());
  collage_team_end();
  EXPECT_EQ(phases.indices, 0b1111);
  EXPECT_EQ(phases.early, 0);
  EXPECT_EQ(phases.arrived, 200);
  EXPECT_EQ(collage_in_team(), 0);
  EXPECT_EQ(collage_team_size(), 1);
}

TEST(Team, WithinATeamATeamHasOneMember) {
  collage_team_begin(
      2, [](void*, int, int) {}, nullptr);
  EXPECT_EQ(collage_team_size(), 2);
  collage_team_begin(
      2, [](void*, int, int) { ADD_FAILURE() << "started another thread"; }, nullptr);
  EXPECT_EQ(collage_team_size(), 1);
  EXPECT_EQ(collage_in_team(), 1);
  collage_team_barrier();
  collage_team_end();
  EXPECT_EQ(collage_team_size(), 2);
  collage_team_end();
  EXPECT_EQ(collage_in_team(), 0);
}

TEST(TeamWatch, TellsWhenEachThreadWorked) {
  const Threads threads(3);
  std::vector<TeamShare> shares;
  const auto before = std::chrono::steady_clock::now();
  WatchTeams(&shares);
  CountVisits(30);
  CountVisits(1);  // a region of one thread is none
  WatchTeams(nullptr);
  const auto after = std::chrono::steady_clock::now();
  CountVisits(30);
  ASSERT_EQ(shares.size(), 3u) << "one region was watched";
  for (int thread = 0; thread < 3; ++thread) {
    const TeamShare& share = shares[static_cast<size_t>(thread)];
    EXPECT_EQ(share.thread, thread);
    EXPECT_LE(before, share.begin);
    EXPECT_LE(share.begin, share.end);
    EXPECT_LE(share.end, after);
  }
}

TEST(TeamWatch, RegionsOfOtherThreadsAreTheirOwn) {
  const Threads threads(2);
  std::vector<TeamShare> shares;
  WatchTeams(&shares);
  std::thread([] { EXPECT_EQ(CountVisits(10), std::vector<int>(10, 1)); }).join();
  WatchTeams(nullptr);
  EXPECT_EQ(shares.size(), 0u);
}

}  // namespace
}  // namespace collage
