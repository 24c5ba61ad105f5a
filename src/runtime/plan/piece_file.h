// piece_file.h: the container of executables and of measuring packs.
//
//   header, 64 bytes: magic, version u32, offset, size and checksum of the index, three zeros, checksum of the header
//                     up to here (u64 each)
//   pieces, each at a multiple of 64 and zeros up to the next
//   the index: JSON, last, so that it can hold the places of everything before it; a piece's is [offset, size,
//   checksum]
//
// Every byte is under a checksum or must be zero. Header and index are checked when a file is read, a piece when its
// reader asks for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "support/file.h"

namespace collage {

/// A format that such files have, and its words in messages.
struct PieceFormat {
  uint32_t magic;
  uint32_t version;
  const char* index;          ///< "plan"
  const char* other_file;     ///< "not a Collage executable"
  const char* damaged;        ///< "the executable is damaged"
  const char* truncated;      ///< "the executable is truncated"
  const char* other_version;  ///< "the executable has format {}, this Collage reads {}"
  const char* remedy;         ///< "compile the model again"

  /// Throw kCorrupt: "the executable is damaged: …".
  [[noreturn]] void Damaged(const std::string& what, const std::filesystem::path& path) const;
  [[noreturn]] void Truncated(const std::filesystem::path& path) const;
};

/// A piece of a file, and its checksum as the index has it.
struct Piece {
  std::span<std::byte> bytes;
  uint64_t checksum;

  /// Whether the bytes have the checksum, and zeros follow up to the next piece.
  bool IsRight() const;
};

/// Pieces of a file that are checked when somebody first uses them, each once for all who share it. Checking is
/// thread-safe once all pieces are noted.
class LazyPieces {
 public:
  void Note(const Piece& piece);
  /// Whether the piece that begins at `begin` is right; true where none was noted.
  bool IsRight(const void* begin) const;
  /// Whether all are.
  bool AreRight() const;

 private:
  std::map<const void*, Piece> pieces_;
  mutable std::mutex mutex_;
  mutable std::set<const void*> right_;
};

/// Takes pieces out of the bytes before the index. Each byte is in one of them at most, so that checking them all takes
/// no longer than reading the file, whatever the index says.
class PieceReader {
 public:
  explicit PieceReader(std::span<std::byte> bytes) : bytes_(bytes) {}

  /// Throws kCorrupt without a place.
  Piece Read(const nlohmann::json& place);

 private:
  using Known = std::map<std::pair<int64_t, int64_t>, uint64_t>;  ///< checksums by begin and end

  void CheckApart(Known::iterator piece) const;

  std::span<std::byte> bytes_;  ///< up to the index
  Known known_;
};

/// A file's index, and the bytes before it.
struct PieceFile {
  nlohmann::json index;
  std::span<std::byte> pieces;
};

/// Reads header and index of `bytes`. Throws kCorrupt, or kUnavailable for a file of another version.
PieceFile ReadPieceFile(std::span<std::byte> bytes, const PieceFormat& format, const std::filesystem::path& path);

/// Adds a piece to the file at `path`, whose index then has its place as `name`; readers of the format do not ask for
/// it. The file must not be in use, and is damaged while this works: it is one that has not its name yet. Throws
/// kCorrupt for a file that is not of `format`, kResource when it cannot be written.
void AddPiece(const std::filesystem::path& path, const PieceFormat& format, const std::string& name,
              std::span<const std::byte> bytes);

/// Returns the piece of the file `bytes` whose place is `name` in its index; nothing if there is none. Throws kCorrupt
/// when it is damaged, and as ReadPieceFile.
std::optional<std::span<const std::byte>> FindPiece(std::span<std::byte> bytes, const PieceFormat& format,
                                                    const std::string& name, const std::filesystem::path& path);

/// Writes each distinct piece of bytes once. The pieces must outlive it.
class PieceWriter {
 public:
  /// Leaves room for the header: `file` is empty.
  explicit PieceWriter(AtomicFile& file);

  /// Returns the place for the index.
  nlohmann::json Write(const void* data, size_t size);
  /// Keeps `piece` as long as the writer, and returns its place.
  nlohmann::json Write(std::vector<std::byte> piece);
  /// Writes index and header. Not to be used afterwards.
  void Finish(const PieceFormat& format, const nlohmann::json& index);

 private:
  struct Written {
    const void* data;
    uint64_t offset;
  };

  AtomicFile& file_;
  std::map<std::pair<size_t, uint64_t>, std::vector<Written>> written_;  ///< by size and checksum
  std::deque<std::vector<std::byte>> kept_;
};

}  // namespace collage
