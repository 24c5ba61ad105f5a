#include "worker/worker.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cfenv>
#include <chrono>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <thread>
#include <vector>

#include "support/file.h"

namespace collage {
namespace {

std::string Misbehave(const std::string& request, const SendProgress& progress) {
  if (request == "crash") std::raise(SIGSEGV);
  if (request == "exit") _exit(3);
  if (request == "hang") pause();
  if (request == "throw") throw std::runtime_error("thrown on purpose");
  if (request == "garbage") std::puts("garbage on standard output");
  if (request == "memory") {
    std::vector<std::vector<char>> blocks;
    for (;;) blocks.emplace_back(size_t{64} << 20, 'x');
  }
  if (request == "progress") progress("half way");
  return "answer to " + request;
}

TEST(WorkerTest, SurvivesWhateverACallDoes) {
  Worker worker(Misbehave, {std::chrono::milliseconds(500), int64_t{1} << 30});
  EXPECT_EQ(*worker.Call("a"), "answer to a");
  EXPECT_NE(worker.Call("crash").reason().text.find("signal 11"), std::string::npos);
  EXPECT_NE(worker.Call("exit").reason().text.find("exit code 3"), std::string::npos);
  EXPECT_NE(worker.Call("hang").reason().text.find("did not answer"), std::string::npos);
  EXPECT_EQ(worker.Call("throw").reason().text, "thrown on purpose");
  EXPECT_FALSE(worker.Call("memory").ok());
  EXPECT_EQ(*worker.Call("garbage"), "answer to garbage");
  EXPECT_EQ(*worker.Call("b"), "answer to b");
}

TEST(WorkerTest, ProgressReachesTheCaller) {
  Worker worker(Misbehave, {});
  std::string seen;
  EXPECT_TRUE(worker.Call("progress", [&](const std::string& text) { seen = text; }).ok());
  EXPECT_EQ(seen, "half way");
}

/// The same for what outlasts the call that did it.
std::string MisbehaveLater(const std::string& request, const SendProgress&) {
  static int num_calls = 0;
  ++num_calls;
  if (request == "exit later") {
    std::thread([] {
      usleep(20'000);
      exit(0);
    }).detach();
  }
  if (request == "hold") {
    static std::vector<char> held;
    held.resize(size_t{200} << 20);
  }
  if (request == "doubt") AskForFreshWorker();
  if (request == "crash but in a fresh worker" && num_calls > 1) std::raise(SIGSEGV);
  if (request == "close all descriptors" || request == "close all descriptors and hang") {
    for (int fd = 3; fd < 1000; ++fd) close(fd);
    if (request != "close all descriptors") pause();
  }
  if (request == "scribble") {
    const std::string garbage(100, 'x');
    for (int fd = 3; fd < 100; ++fd) (void)!write(fd, garbage.data(), garbage.size());
  }
  if (request == "stop") std::raise(SIGSTOP);
  if (request == "read standard input") (void)std::getchar();
  if (request == "print for ever") {
    for (;;) std::puts("and again the same");
  }
  if (request == "leave processes and crash") {
    if (fork() == 0) {
      if (fork() == 0) pause();
      pause();
    }
    std::puts("famous last words");
    std::raise(SIGSEGV);
  }
  return std::to_string(num_calls);
}

class LateWorkerTest : public testing::Test {
 protected:
  std::string ReasonOf(const std::string& request) {
    const Result<std::string> answer = worker_.Call(request);
    return answer.ok() ? "answered" : answer.reason().text;
  }

  Worker worker_{MisbehaveLater, {std::chrono::milliseconds(400), int64_t{300} << 20}};
};

TEST_F(LateWorkerTest, WhatDiesBetweenCallsHarmsNoCall) {
  EXPECT_EQ(*worker_.Call("exit later"), "1");
  while (worker_.num_starts() == 1) EXPECT_TRUE(worker_.Call("good").ok());
  EXPECT_TRUE(worker_.Call("good").ok());
}

TEST_F(LateWorkerTest, AFailureInAUsedWorkerIsTriedInAFreshOne) {
  EXPECT_EQ(*worker_.Call("good"), "1");
  EXPECT_EQ(*worker_.Call("crash but in a fresh worker"), "1");
  EXPECT_EQ(worker_.num_starts(), 2);
  EXPECT_EQ(*worker_.Call("doubt"), "1");  // asked twice, the second time in the third worker
  EXPECT_EQ(worker_.num_starts(), 3);
  EXPECT_EQ(*worker_.Call("doubt"), "1");  // a fresh one's answer counts at once
  EXPECT_EQ(worker_.num_starts(), 4);
  EXPECT_EQ(*worker_.Call("good"), "1");
  EXPECT_EQ(worker_.num_starts(), 5);
}

TEST_F(LateWorkerTest, AWorkerThatHasGrownMuchIsReplaced) {
  Worker patient(MisbehaveLater,
                 {std::chrono::minutes(1), int64_t{300} << 20});  // a busy machine takes long to give memory
  EXPECT_EQ(*patient.Call("hold"), "1");
  EXPECT_EQ(*patient.Call("hold"), "1");
  EXPECT_EQ(patient.num_starts(), 2);
}

TEST_F(LateWorkerTest, PipesAreNotTrusted) {
  EXPECT_EQ(ReasonOf("close all descriptors"), "ended the worker with exit code 0");
  EXPECT_EQ(ReasonOf("close all descriptors and hang"), "closed its pipe to the compiler");
  EXPECT_TRUE(ReasonOf("scribble").starts_with("sent a malformed answer"));
  EXPECT_EQ(*worker_.Call("good"), "1");
}

TEST_F(LateWorkerTest, StoppedAndTalkativeOnesTimeOut) {
  EXPECT_EQ(ReasonOf("stop"), "did not answer within 0.4 s");
  const std::string reason = ReasonOf("print for ever");
  EXPECT_TRUE(reason.starts_with("did not answer within 0.4 s: ")) << reason;
  EXPECT_TRUE(reason.find("and again the same") != std::string::npos) << reason;
  EXPECT_LT(reason.size(), 500u);
  EXPECT_EQ(*worker_.Call("read standard input"), "1");
}

TEST_F(LateWorkerTest, ADeathIsSeenAlthoughChildrenHoldThePipes) {
  Worker patient(MisbehaveLater, {std::chrono::minutes(10), 0});
  const Result<std::string> answer = patient.Call("leave processes and crash");
  ASSERT_FALSE(answer.ok());
  EXPECT_TRUE(answer.reason().text.starts_with("crashed with signal 11")) << answer.reason().text;
  EXPECT_TRUE(answer.reason().text.ends_with("famous last words")) << answer.reason().text;
}

/// Changes everything that can be changed, or says what is changed.
void ChangeEverything() {
  std::fesetround(FE_UPWARD);
  std::signal(SIGFPE, SIG_IGN);
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  cpu_set_t one;
  sched_getaffinity(0, sizeof one, &one);
  for (int cpu = CPU_SETSIZE - 1; cpu >= 0 && CPU_COUNT(&one) > 1; --cpu) CPU_CLR(static_cast<size_t>(cpu), &one);
  sched_setaffinity(0, sizeof one, &one);
  setlocale(LC_ALL, "C.UTF-8");
  std::filesystem::current_path("/");
  setenv("OMP_NUM_THREADS", "7", 1);
  unsetenv("HOME");
  umask(0777);
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = 64;
  setrlimit(RLIMIT_NOFILE, &files);
  alarm(1000);
}

/// Starts a process that outlives the call, in a session of its own.
pid_t LeaveAProcess() {
  const pid_t left_running = fork();
  if (left_running == 0) {
    setsid();
    for (;;) pause();
  }
  return left_running;
}

std::string StateOfTheProcess() {
  const mode_t mask = umask(0);
  umask(mask);
  struct sigaction floating {};
  sigaction(SIGFPE, nullptr, &floating);
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  cpu_set_t processors;
  sched_getaffinity(0, sizeof processors, &processors);
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  std::string state;
  for (const std::string& part :
       {std::to_string(std::fegetround()), std::string(floating.sa_handler == SIG_IGN ? "ignored" : "not ignored"),
        std::to_string(sigismember(&blocked, SIGUSR1)), std::to_string(CPU_COUNT(&processors)),
        std::string(setlocale(LC_ALL, nullptr)), std::filesystem::current_path().string(),
        std::string(getenv("OMP_NUM_THREADS") == nullptr ? "none" : getenv("OMP_NUM_THREADS")),
        std::string(getenv("HOME") == nullptr ? "no home" : getenv("HOME")), std::to_string(mask),
        std::to_string(files.rlim_cur), std::to_string(alarm(0))}) {
    state += part + "; ";
  }
  return state;
}

std::string ChangeState(const std::string& request, const SendProgress&) {
  if (request == "leave a process") return std::to_string(LeaveAProcess());
  if (request != "change") return StateOfTheProcess();
  ChangeEverything();
  return "changed";
}

TEST(WorkerStateTest, WhatACallChangesIsPutBack) {
  Worker worker(ChangeState, {});
  const std::string before = *worker.Call("state");
  EXPECT_EQ(*worker.Call("change"), "changed");
  EXPECT_EQ(*worker.Call("state"), before);
  EXPECT_EQ(worker.num_starts(), 1);
}

TEST(WorkerStateTest, ProcessesLeftRunningAreEnded) {
  Worker worker(ChangeState, {});
  const pid_t left = std::stoi(*worker.Call("leave a process"));
  EXPECT_EQ(kill(left, 0), -1);
  EXPECT_TRUE(worker.Call("state").ok());
  EXPECT_EQ(worker.num_starts(), 2);
}

int num_before_forks = 0;
int num_parents_told = 0;
bool is_child_told = false;

TEST(WorkerTest, ForkHooksRunOnBothSides) {
  SetForkHooks({[] { ++num_before_forks; }, [] { ++num_parents_told; }, [] { is_child_told = true; }});
  {
    Worker worker(
        [](const std::string&, const SendProgress&) { return std::string(is_child_told ? "told" : "not told"); }, {});
    const Result<std::string> answer = worker.Call("");
    SetForkHooks({});
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ(*answer, "told");
  }
  EXPECT_EQ(num_before_forks, 1);
  EXPECT_EQ(num_parents_told, 1);
  EXPECT_FALSE(is_child_told);
}

TEST(WorkerTest, WorksWithoutBeingWaitedForAndEndsWithItsObject) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "done";
  const auto wait_for = [](const auto& condition) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!condition() && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return condition();
  };
  pid_t child = 0;
  {
    Worker worker(
        [&](const std::string& request, const SendProgress&) -> std::string {
          WriteFile(file, request + std::to_string(getpid()));
          for (;;) pause();
        },
        {});
    worker.Begin("by ");
    ASSERT_TRUE(wait_for([&] { return std::filesystem::exists(file) && ReadFile(file).size() > 3; }));
    child = std::stoi(ReadFile(file).substr(3));
    EXPECT_EQ(kill(child, 0), 0);
  }
  EXPECT_NE(kill(child, 0), 0);
}

}  // namespace
}  // namespace collage
