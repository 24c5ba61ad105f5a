// file.cc: files through the system's own calls, so that every failure is noticed.
#include "support/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>

#include "collage/support/error.h"
#include "support/environment.h"

namespace collage {
namespace {

int OpenForReading(const std::filesystem::path& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status {};
  if (fd >= 0 && fstat(fd, &status) == 0 && S_ISDIR(status.st_mode)) {
    close(fd);
    throw Error(ErrorCategory::kInput, "expected a file, found a folder", path.string());
  }
  if (fd < 0) throw Error(ErrorCategory::kInput, fmt::format("cannot open: {}", std::strerror(errno)), path.string());
  return fd;
}

}  // namespace

std::string ReadFile(const std::filesystem::path& path) {
  const int fd = OpenForReading(path);
  std::string content;
  std::array<char, 1 << 16> buffer;
  for (;;) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      const int code = errno;
      close(fd);
      throw Error(ErrorCategory::kInput, fmt::format("cannot read: {}", std::strerror(code)), path.string());
    }
    if (got == 0) break;
    content.append(buffer.data(), static_cast<size_t>(got));
  }
  close(fd);
  return content;
}

bool WriteAll(int fd, const void* data, size_t size) {
  const char* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = write(fd, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes += written;
    size -= static_cast<size_t>(written);
  }
  return true;
}

void WriteFile(const std::filesystem::path& path, std::string_view content) {
  const auto fail = [&path](int code) {
    throw Error(ErrorCategory::kResource, fmt::format("cannot write: {}", std::strerror(code)), path.string());
  };
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) fail(errno);
  const int code = WriteAll(fd, content.data(), content.size()) ? 0 : errno;
  const bool is_closed = close(fd) == 0;
  if (code != 0) fail(code);
  if (!is_closed) fail(errno);
}

namespace {

constexpr std::string_view kTemporaryPrefix = "collage-work-";
constexpr std::string_view kRandomLetters = "XXXXXX";  // for mkdtemp to replace
constexpr int kNotFree = -2;

/// Opens a folder and locks it for this process and those that it forks, until all of them have closed it or ended. -1
/// where it cannot be opened or locked at all, kNotFree where it is locked, or was removed meanwhile.
int HoldFolder(const std::filesystem::path& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT ? kNotFree : -1;
  struct stat status {};
  const bool is_locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
  const bool is_taken = !is_locked && errno == EWOULDBLOCK;
  if (is_locked && fstat(fd, &status) == 0 && status.st_nlink > 0) return fd;
  close(fd);
  return is_locked || is_taken ? kNotFree : -1;
}

/// Whether it is a folder as TemporaryFolder makes them, of this user.
bool IsTemporaryFolder(const std::filesystem::path& path) {
  const std::string name = path.filename();
  if (!name.starts_with(kTemporaryPrefix)) return false;
  if (name.size() != kTemporaryPrefix.size() + kRandomLetters.size()) return false;
  struct stat status {};
  return lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
         (status.st_mode & 0777) == 0700;
}

/// Removes the folders in `parent` whose processes were killed before they could: nobody holds them. Once for each
/// parent in a process.
void RemoveAbandonedFolders(const std::filesystem::path& parent) {
  static std::mutex mutex;
  static std::set<std::filesystem::path> seen;
  const std::lock_guard lock(mutex);
  if (!seen.insert(parent).second) return;
  std::error_code ignored;
  for (std::filesystem::directory_iterator at(parent, ignored), end; !ignored && at != end; at.increment(ignored)) {
    if (!IsTemporaryFolder(at->path())) continue;
    const int fd = HoldFolder(at->path());
    if (fd < 0) continue;
    std::error_code unremoved;
    std::filesystem::remove_all(at->path(), unremoved);
    close(fd);
  }
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::error_code failed;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(failed);
  if (failed) {
    throw Error(ErrorCategory::kResource, "the folder of temporary files is not there",
                GetEnvironment("TMPDIR").value_or("/tmp"), "set TMPDIR to a folder that is");
  }
  fd_ = kNotFree;
  RemoveAbandonedFolders(parent);
  // Another process may take the folder for abandoned before it is locked.
  for (int tries = 0; tries < 8 && fd_ == kNotFree; ++tries) {
    std::string name = parent / fmt::format("{}{}", kTemporaryPrefix, kRandomLetters);
    const bool is_made = mkdtemp(name.data()) != nullptr;
    path_ = name;
    if (!is_made) break;
    fd_ = HoldFolder(path_);
  }
  if (fd_ == kNotFree) {
    throw Error(ErrorCategory::kResource, fmt::format("cannot make a temporary folder: {}", std::strerror(errno)),
                path_.string());
  }
  noted_.emplace(path_);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  if (fd_ >= 0) close(fd_);
}

namespace {

/// The mapped files of the process, by where they begin.
class Mappings {
 public:
  void Add(std::span<std::byte> bytes) {
    const std::lock_guard lock(mutex_);
    sizes_[bytes.data()] = bytes.size();
  }
  void Remove(const std::byte* begin) {
    const std::lock_guard lock(mutex_);
    sizes_.erase(begin);
  }
  /// Calls `body`, while they stay mapped, if the bytes from `data` on are of one of them.
  template <typename Body>
  void IfMapped(const std::byte* data, size_t size, const Body& body) {
    const std::lock_guard lock(mutex_);
    auto file = sizes_.upper_bound(data);
    if (file == sizes_.begin()) return;
    --file;
    if (data + size <= file->first + file->second) body();
  }

 private:
  std::mutex mutex_;
  std::map<const std::byte*, size_t> sizes_;
};

Mappings& AllMappings() {
  static auto* mappings = new Mappings;  // files may be closed when the process ends
  return *mappings;
}

}  // namespace

std::shared_ptr<MappedFile> MappedFile::Open(const std::filesystem::path& path) {
  const int fd = OpenForReading(path);
  struct stat status {};
  fstat(fd, &status);
  std::shared_ptr<MappedFile> file(new MappedFile);
  const auto size = static_cast<size_t>(status.st_size);
  if (size > 0) {
    void* address = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    if (address == MAP_FAILED) {
      const int code = errno;
      close(fd);
      throw Error(ErrorCategory::kResource, fmt::format("cannot map: {}", std::strerror(code)), path.string());
    }
    file->bytes_ = {static_cast<std::byte*>(address), size};
    AllMappings().Add(file->bytes_);
  }
  close(fd);
  return file;
}

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  AllMappings().Remove(bytes_.data());
  munmap(bytes_.data(), bytes_.size());
}

void MappedFile::Release(const void* data, size_t size) {
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<uintptr_t>(data) + page - 1) / page * page;
  const auto end = (reinterpret_cast<uintptr_t>(data) + size) / page * page;
  if (begin >= end) return;
  AllMappings().IfMapped(static_cast<const std::byte*>(data), size,
                         [&] { madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED); });
}

namespace {

/// Two threads may write the same file: the last to commit wins.
std::string PartOf(const std::filesystem::path& path) {
  static std::atomic<int> counter{0};
  return path.string() + fmt::format(".{}.{}.part", getpid(), ++counter);
}

/// A new file in the folder of `path` that has no name yet, and so is gone with its process, even a killed one.
/// Negative where the file system has no such files, or no /proc is there to name them by.
int OpenWithoutName(const std::filesystem::path& path) {
  if (access("/proc/self/fd", X_OK) != 0) return -1;
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  return open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
}

/// Gives `name` to the file `fd`, which has none.
bool NameFile(int fd, const std::filesystem::path& name) {
  const std::string known_as = fmt::format("/proc/self/fd/{}", fd);
  return linkat(AT_FDCWD, known_as.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

}  // namespace

void WriteWhole(const std::filesystem::path& path, std::string_view content) {
  AtomicFile file(path);
  file.Write(content);
  file.Commit();
}

void CheckCanWrite(const std::filesystem::path& path) { const AtomicFile attempt(path); }

AtomicFile::AtomicFile(std::filesystem::path path)
    : path_(std::move(path)), temporary_(PartOf(path_)), noted_(temporary_) {
  // A rename would put a file in the place of a device.
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(path_, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    const bool is_folder = std::filesystem::is_directory(status);
    throw Error(ErrorCategory::kResource,
                fmt::format("cannot write: it is {}", is_folder ? "a folder" : "no regular file"), path_.string());
  }
  fd_ = OpenWithoutName(path_);
  is_named_ = fd_ < 0;
  if (is_named_) fd_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd_ < 0) Fail("create");
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  close(fd_);
  unlink(temporary_.c_str());
}

void AtomicFile::Fail(const char* doing) {
  const int code = errno;
  if (fd_ >= 0) {
    close(fd_);
    unlink(temporary_.c_str());
    fd_ = -1;
  }
  throw Error(ErrorCategory::kResource, fmt::format("cannot {}: {}", doing, std::strerror(code)), path_.string());
}

void AtomicFile::Write(const void* data, size_t size) {
  if (!WriteAll(fd_, data, size)) Fail("write");
  position_ += size;
}

void AtomicFile::Overwrite(size_t offset, const void* data, size_t size) {
  if (pwrite(fd_, data, size, static_cast<off_t>(offset)) != static_cast<ssize_t>(size)) Fail("write");
}

void AtomicFile::Align(size_t alignment) {
  static constexpr std::array<char, 4096> kZeros{};
  size_t missing = (alignment - position_ % alignment) % alignment;
  while (missing > 0) {
    const size_t count = std::min(missing, kZeros.size());
    Write(kZeros.data(), count);
    missing -= count;
  }
}

void AtomicFile::Flush() {
  if (fsync(fd_) != 0) Fail("write");
}

void AtomicFile::Commit() {
  Flush();
  if (!is_named_ && !NameFile(fd_, temporary_)) Fail("create");
  if (close(fd_) != 0) {
    fd_ = -1;
    Fail("write");
  }
  fd_ = -1;
  if (rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int code = errno;
    unlink(temporary_.c_str());
    errno = code;
    Fail("rename");
  }
}

}  // namespace collage
