// file_test.cc: reading, mapping, and writing whole or not at all.
#include "support/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <thread>
#include <vector>

#include "support/environment.h"
#include "unit/support/throws.h"

namespace collage {
namespace {

/// Files and folders in it.
int64_t NumFiles(const TemporaryFolder& folder) {
  return std::distance(std::filesystem::directory_iterator(folder.path()), {});
}

TEST(File, ReadsWhatWasWritten) {
  const TemporaryFolder folder;
  std::string content(300'000, 'x');
  content[70'000] = '\0';
  WriteFile(folder / "a", content);
  EXPECT_EQ(ReadFile(folder / "a"), content);
  WriteFile(folder / "empty", "");
  EXPECT_EQ(ReadFile(folder / "empty"), "");
}

TEST(File, SaysWhyItCannotBeWritten) {
  const TemporaryFolder folder;
  ExpectError([&] { WriteFile(folder / "none/a", "text"); }, ErrorCategory::kResource, "cannot write: No such file");
  ExpectError([] { WriteFile("/dev/full", "text"); }, ErrorCategory::kResource, "/dev/full: error: cannot write");
}

/// Temporary files go to `folder` for as long as this lives.
class TemporaryFilesIn {
 public:
  explicit TemporaryFilesIn(const std::filesystem::path& folder) : old_(GetEnvironment("TMPDIR")) {
    setenv("TMPDIR", folder.c_str(), 1);
  }
  ~TemporaryFilesIn() { old_ ? setenv("TMPDIR", old_->c_str(), 1) : unsetenv("TMPDIR"); }
  TemporaryFilesIn(const TemporaryFilesIn&) = delete;
  TemporaryFilesIn& operator=(const TemporaryFilesIn&) = delete;

 private:
  std::optional<std::string> old_;
};

TEST(File, SaysWhichFolderOfTemporaryFilesIsMissing) {
  const TemporaryFolder folder;
  const std::filesystem::path missing = folder / "none";
  const TemporaryFilesIn there(missing);
  ExpectError([] { const TemporaryFolder none; }, ErrorCategory::kResource,
              missing.string() + ": error: the folder of temporary files is not there");
}

TEST(File, TemporaryFoldersAreSeveralAndGoWithTheirContents) {
  std::filesystem::path path;
  {
    const TemporaryFolder folder;
    const TemporaryFolder other;
    path = folder.path();
    EXPECT_NE(path, other.path());
    std::filesystem::create_directory(folder / "inner");
    WriteFile(folder / "inner/a", "text");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

/// Makes a folder with a file in it, in a process that then is killed, or waits until the descriptor that is returned
/// is closed.
int FolderOfAnotherProcess(bool is_killed, pid_t& process) {
  std::array<int, 2> made{}, until{};
  EXPECT_EQ(pipe(made.data()), 0);
  EXPECT_EQ(pipe(until.data()), 0);
  process = fork();
  if (process == 0) {
    close(until[1]);
    const TemporaryFolder folder;
    WriteFile(folder / "a", "text");
    EXPECT_TRUE(WriteAll(made[1], "!", 1));
    char end = 0;
    if (!is_killed && read(until[0], &end, 1) >= 0) _exit(0);
    raise(SIGKILL);
  }
  char begin = 0;
  EXPECT_EQ(read(made[0], &begin, 1), 1);
  if (is_killed) waitpid(process, nullptr, 0);
  for (const int fd : {made[0], made[1], until[0]}) close(fd);
  return until[1];
}

TEST(File, TemporaryFoldersOfKilledProcessesGoWithTheNextOne) {
  const TemporaryFolder parent;
  const TemporaryFilesIn there(parent.path());
  std::filesystem::create_directory(parent / "collage-work-notmine");  // of another length
  pid_t killed = 0, alive = 0;
  close(FolderOfAnotherProcess(true, killed));
  EXPECT_EQ(NumFiles(parent), 2);
  const int until = FolderOfAnotherProcess(false, alive);
  EXPECT_EQ(NumFiles(parent), 2) << "the one of the killed process is gone, the other one is there";
  const TemporaryFolder mine;
  EXPECT_EQ(NumFiles(parent), 3) << "the one of the process that lives stays";
  close(until);
  waitpid(alive, nullptr, 0);
}

TEST(File, SaysWhyItCannotBeRead) {
  const TemporaryFolder folder;
  ExpectError([&] { ReadFile(folder / "none"); }, ErrorCategory::kInput, "none: error: cannot open: No such file");
  ExpectError([&] { ReadFile(folder.path()); }, ErrorCategory::kInput, "expected a file, found a folder");
  ExpectError([&] { MappedFile::Open(folder / "none"); }, ErrorCategory::kInput, "cannot open");
}

TEST(File, MappingHoldsTheContentAndIsPrivate) {
  const TemporaryFolder folder;
  WriteFile(folder / "a", "hello");
  const auto file = MappedFile::Open(folder / "a");
  ASSERT_EQ(file->bytes().size(), 5u);
  EXPECT_EQ(std::memcmp(file->bytes().data(), "hello", 5), 0);
  file->bytes()[0] = std::byte{'j'};
  EXPECT_EQ(ReadFile(folder / "a"), "hello");
  WriteFile(folder / "empty", "");
  EXPECT_TRUE(MappedFile::Open(folder / "empty")->bytes().empty());
}

TEST(AtomicFile, AppearsOnCommitOnly) {
  const TemporaryFolder folder;
  AtomicFile file(folder / "a");
  file.Write("12345");
  file.Align(8);
  EXPECT_EQ(file.position(), 8u);
  file.Write("678");
  file.Overwrite(1, "BC", 2);
  EXPECT_FALSE(std::filesystem::exists(folder / "a"));
  file.Commit();
  EXPECT_EQ(ReadFile(folder / "a"), std::string("1BC45\0\0\0"
                                                "678",
                                                11));
  EXPECT_EQ(NumFiles(folder), 1);
}

TEST(AtomicFile, LeavesNothingWithoutCommit) {
  const TemporaryFolder folder;
  WriteFile(folder / "a", "old");
  { AtomicFile(folder / "a").Write("new"); }
  EXPECT_EQ(ReadFile(folder / "a"), "old");
  EXPECT_EQ(NumFiles(folder), 1);
}

TEST(AtomicFile, KilledWritersLeaveNothing) {
  const TemporaryFolder folder;
  const int unnamed = open(folder.path().c_str(), O_TMPFILE | O_WRONLY, 0600);
  if (unnamed < 0) GTEST_SKIP() << "the file system has no files without names";
  close(unnamed);
  const pid_t writer = fork();
  if (writer == 0) {
    AtomicFile file(folder / "a");
    file.Write("half");
    file.Flush();
    raise(SIGKILL);
  }
  int status = 0;
  waitpid(writer, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(NumFiles(folder), 0);
}

TEST(AtomicFile, TwoWritersOfOneFileDoNotMix) {
  const TemporaryFolder folder;
  const auto write = [&](char letter) {
    AtomicFile file(folder / "a");
    for (int i = 0; i < 100; ++i) file.Write(std::string(1000, letter));
    file.Commit();
  };
  std::thread other(write, 'x');
  write('y');
  other.join();
  const std::string content = ReadFile(folder / "a");
  EXPECT_EQ(content, std::string(100'000, content[0]));
  EXPECT_EQ(NumFiles(folder), 1);
}

TEST(AtomicFile, FailsInAFolderThatIsNotThere) {
  const TemporaryFolder folder;
  ExpectError([&] { AtomicFile(folder / "none/a"); }, ErrorCategory::kResource, "cannot create: No such file");
  AtomicFile file(folder / "taken");
  file.Write("x");
  std::filesystem::create_directory(folder / "taken");
  ExpectError([&] { file.Commit(); }, ErrorCategory::kResource, "cannot rename");
  EXPECT_EQ(NumFiles(folder), 1);
}

TEST(AtomicFile, ReplacesRegularFilesOnly) {
  const TemporaryFolder folder;
  ExpectError([&] { AtomicFile(folder.path()); }, ErrorCategory::kResource, "cannot write: it is a folder");
  ExpectError([&] { AtomicFile("/dev/null"); }, ErrorCategory::kResource, "cannot write: it is no regular file");
  WriteFile(folder / "a", "before");
  CheckCanWrite(folder / "a");
  CheckCanWrite(folder / "b");
  EXPECT_EQ(ReadFile(folder / "a"), "before");
  EXPECT_EQ(NumFiles(folder), 1);
  ExpectError([&] { CheckCanWrite(folder / "none/a"); }, ErrorCategory::kResource, "cannot create: No such file");
}

/// Files may not grow beyond `bytes` while it lives: what a full disk looks like.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

TEST(AtomicFile, FailedWriteLeavesTheOldFileAndNoOther) {
  const TemporaryFolder folder;
  WriteFile(folder / "a", "old");
  AtomicFile file(folder / "a");
  {
    const FileSizeLimit limit(4096);
    ExpectError([&] { file.Write(std::string(10'000, 'x')); }, ErrorCategory::kResource,
                "cannot write: File too large");
  }
  EXPECT_EQ(ReadFile(folder / "a"), "old");
  EXPECT_EQ(NumFiles(folder), 1);
}

/// Bytes of the process that are in memory.
size_t ResidentBytes() {
  std::ifstream statistics("/proc/self/statm");
  size_t all = 0, resident = 0;
  statistics >> all >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

TEST(MappedFileTest, ReleasedPagesAreNoLongerTheProcessesAndKeepTheirContent) {
  const TemporaryFolder folder;
  std::string content(size_t{32} << 20, ' ');
  for (size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i % 251);
  WriteFile(folder / "weights", content);
  const std::shared_ptr<MappedFile> file = MappedFile::Open(folder / "weights");
  const auto text = [&] {
    return std::string_view(reinterpret_cast<const char*>(file->bytes().data()), content.size());
  };
  EXPECT_EQ(text(), content);
  const size_t before = ResidentBytes();
  constexpr size_t kFirst = 100, kLeftAtEnds = size_t{1} << 20;
  MappedFile::Release(file->bytes().data() + kFirst, content.size() - kFirst);
  EXPECT_LT(ResidentBytes() + content.size() - kLeftAtEnds, before);
  EXPECT_EQ(text(), content);
}

TEST(MappedFileTest, OtherMemoryIsNotReleased) {
  const std::string content(size_t{1} << 20, 'x');
  MappedFile::Release(content.data(), content.size());
  EXPECT_EQ(content.find_first_not_of('x'), std::string::npos);
}

}  // namespace
}  // namespace collage
