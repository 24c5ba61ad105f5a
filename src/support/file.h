// file.h: reading, mapping and atomic writing of files; temporary folders.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "support/interruption.h"

namespace collage {

/// The whole file. Throws kInput when it cannot be read.
std::string ReadFile(const std::filesystem::path& path);

/// Writes all of it to an open descriptor. False, with errno set, when it cannot.
bool WriteAll(int fd, const void* data, size_t size);

/// Writes the whole file, for those who read it soon: nothing waits for the disk. Throws kResource when it cannot.
void WriteFile(const std::filesystem::path& path, std::string_view content);

/// Writes the whole file or, when that fails, nothing: an AtomicFile. Throws kResource when it cannot.
void WriteWhole(const std::filesystem::path& path, std::string_view content);

/// Throws kResource when an AtomicFile cannot be begun at `path`: to be asked before long work whose result goes there.
/// Leaves no file.
void CheckCanWrite(const std::filesystem::path& path);

/// A new folder among the system's temporary ones, gone with its contents when this is, or a signal ends the command.
/// Nothing can remove it when the process is killed: the next process that makes one in the same place does.
class TemporaryFolder {
 public:
  /// Throws kResource when none can be made.
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::filesystem::path& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
  int fd_ = -1;  ///< locked for as long as the folder is used; below 0 where the file system has no locks
  std::optional<NotedTemporary> noted_;
};

/// A file mapped read-only (copy on write) for as long as the object lives.
class MappedFile {
 public:
  /// Throws kInput when the file cannot be opened.
  static std::shared_ptr<MappedFile> Open(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<std::byte> bytes() const { return bytes_; }

  /// Tells the system that bytes that nobody has written to are not read again soon: of a file that is mapped, whole
  /// pages among them no longer count as this process's memory, and are mapped anew when they are read all the same.
  /// Does nothing for other memory. Thread-safe.
  static void Release(const void* data, size_t size);

 private:
  MappedFile() = default;
  std::span<std::byte> bytes_;
};

/// Writes a file so that it is there whole or not at all: without a name, then under a temporary one in the same
/// folder, then renamed. A file system that has no files without names sees the temporary name from the beginning.
class AtomicFile {
 public:
  /// Throws kResource when the folder cannot be written, or `path` is there and no regular file.
  explicit AtomicFile(std::filesystem::path path);
  /// Removes the temporary file unless `Commit` was called.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Throws kResource, on a full disk for example.
  void Write(const void* data, size_t size);
  void Write(std::string_view text) { Write(text.data(), text.size()); }
  /// Zeros up to the next multiple of `alignment`.
  void Align(size_t alignment);
  /// Replaces bytes that were written already.
  void Overwrite(size_t offset, const void* data, size_t size);
  size_t position() const { return position_; }
  /// Waits until all of it is on the disk.
  void Flush();
  /// Flushes to disk and renames.
  void Commit();

 private:
  [[noreturn]] void Fail(const char* doing);
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  NotedTemporary noted_;
  int fd_ = -1;
  bool is_named_ = false;  ///< whether `temporary_` is there before `Commit`
  size_t position_ = 0;
};

}  // namespace collage
