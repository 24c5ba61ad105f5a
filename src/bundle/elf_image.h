// elf_image.h: a program or shared library in memory, as the dynamic linker sees it: ELF-64, System V ABI (gABI 4.1,
// chapters 4 and 5).
#pragma once

#include <elf.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace collage {

/// A copy of a file's bytes, of which it changes only what the dynamic linker's search depends on.
class ElfImage {
 public:
  /// Throws kInput for a file that is no dynamic ELF-64 of this byte order, or is damaged.
  static ElfImage Read(const std::filesystem::path& path);
  /// Whether the file begins as one.
  static bool IsImage(const std::filesystem::path& path);

  const std::string& bytes() const { return bytes_; }
  /// The folders in which its libraries are looked for, separated by colons; empty: none of its own.
  std::string SearchPath() const;
  /// The program that loads it, "/lib64/ld-linux-x86-64.so.2"; empty for a library.
  std::string Interpreter() const;
  /// Returns the newest version that it asks of the C library, (2, 36) for GLIBC_2.36; (0, 0) if it asks for none.
  std::pair<int, int> NeededLibc() const;

  /// Has libraries looked for in `folders`. `is_inherited`: also those that they need in turn, and those that are
  /// opened later (DT_RPATH instead of DT_RUNPATH). Nothing changes in an image without a search path. Throws
  /// kUnsupported where the old path is shorter than the new one.
  void SetSearchPath(std::string_view folders, bool is_inherited);
  /// Exchanges names of libraries: those that it needs, and its own. Names are as long as those that they replace.
  /// Throws kUnsupported where a name is part of another string of the file.
  void RenameLibraries(const std::map<std::string, std::string>& names);
  /// Drops what no segment holds: symbols for debuggers, the table of sections.
  void Strip();

 private:
  ElfImage(std::string bytes, std::string where) : bytes_(std::move(bytes)), where_(std::move(where)) { Parse(); }

  void Parse();
  [[noreturn]] void Damaged(const char* what) const;
  /// `count` records from `offset` on; throws where the file ends before.
  template <typename Record>
  std::vector<Record> ReadAt(uint64_t offset, uint64_t count) const;
  /// The place in the file of an address.
  uint64_t OffsetOf(uint64_t address) const;
  /// The string at `offset` of the dynamic string table.
  std::string_view StringAt(uint64_t offset) const;
  /// Writes what `names` has for the string at `offset` in its place.
  void RenameAt(uint64_t offset, const std::map<std::string, std::string>& names);
  /// Calls `visit(offset of the record, record)` for each library of which it needs versions of symbols.
  template <typename Visit>
  void ForEachVersioned(Visit visit) const;
  /// The entry of the dynamic section with the path, or -1.
  int SearchEntry() const;
  /// The value of the first entry with `tag`; 0 when there is none.
  uint64_t ValueOf(int64_t tag) const;

  std::string bytes_;
  std::string where_;  ///< for messages
  std::vector<Elf64_Phdr> segments_;
  std::vector<Elf64_Dyn> dynamic_;
  uint64_t dynamic_offset_ = 0;
  uint64_t strings_ = 0;  ///< offset of the dynamic string table
  uint64_t strings_size_ = 0;
};

}  // namespace collage
