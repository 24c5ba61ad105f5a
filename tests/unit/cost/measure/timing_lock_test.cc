#include "cost/measure/timing_lock.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <optional>

#include "support/file.h"

namespace collage {
namespace {

using Mode = TimingLock::Mode;
constexpr std::chrono::milliseconds kNoWait{0};
constexpr std::chrono::minutes kLong{5};

/// A process that holds the lock until it is killed.
class Holder {
 public:
  explicit Holder(Mode mode) {
    int ends[2];
    if (pipe(ends) != 0) abort();
    process_ = fork();
    if (process_ == 0) {
      const TimingLock lock(mode, kLong);
      (void)!write(ends[1], "x", 1);
      for (;;) pause();
    }
    char byte = 0;
    (void)!read(ends[0], &byte, 1);
    close(ends[0]);
    close(ends[1]);
  }
  ~Holder() { Kill(); }
  void Kill() {
    if (process_ <= 0) return;
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    process_ = -1;
  }

 private:
  pid_t process_ = -1;
};

/// Each test's locks are its own, and this process's: what it opened in another folder is forgotten in a child.
class TimingLockTest : public testing::Test {
 protected:
  void SetUp() override { setenv("XDG_RUNTIME_DIR", folder_.path().c_str(), 1); }
  void TearDown() override { unsetenv("XDG_RUNTIME_DIR"); }

  /// Whether another process could have the lock at once.
  static bool IsFree(Mode mode) {
    const pid_t child = fork();
    if (child == 0) _exit(TimingLock(mode, kNoWait).is_held() ? 0 : 1);
    int status = 0;
    waitpid(child, &status, 0);
    return status == 0;
  }

  TemporaryFolder folder_;
};

TEST_F(TimingLockTest, ManyShareItOneHasItAlone) {
  EXPECT_TRUE(IsFree(Mode::kAlone));
  {
    const Holder one(Mode::kShared);
    EXPECT_TRUE(IsFree(Mode::kShared));
    EXPECT_FALSE(IsFree(Mode::kAlone));
  }
  const Holder alone(Mode::kAlone);
  EXPECT_FALSE(IsFree(Mode::kShared));
  EXPECT_FALSE(IsFree(Mode::kAlone));
}

TEST_F(TimingLockTest, AKillFreesIt) {
  Holder alone(Mode::kAlone);
  EXPECT_FALSE(IsFree(Mode::kShared));
  alone.Kill();
  EXPECT_TRUE(IsFree(Mode::kAlone));
}

TEST_F(TimingLockTest, WhoWaitsToBeAloneIsNotOvertaken) {
  std::optional<Holder> shared(Mode::kShared);
  const pid_t waiting = fork();
  if (waiting == 0) _exit(TimingLock(Mode::kAlone, kLong).is_held() ? 0 : 1);
  while (IsFree(Mode::kShared)) usleep(1000);  // until it stands at the gate
  shared.reset();
  int status = 1;
  waitpid(waiting, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(IsFree(Mode::kShared));
}

TEST_F(TimingLockTest, AFolderThatCannotBeHadIsDoneWithout) {
  setenv("XDG_RUNTIME_DIR", "/proc/nowhere", 1);
  EXPECT_FALSE(IsFree(Mode::kShared));
  EXPECT_FALSE(IsFree(Mode::kAlone));
}

}  // namespace
}  // namespace collage
