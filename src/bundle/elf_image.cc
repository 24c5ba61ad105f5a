// elf_image.cc: every offset is checked against the bytes that are there.
#include "bundle/elf_image.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <fstream>

#include "collage/support/error.h"
#include "support/file.h"

namespace collage {
namespace {

constexpr std::string_view kLibcVersion = "GLIBC_";

/// (2, 36) of "GLIBC_2.36", (0, 0) of another name.
std::pair<int, int> LibcVersion(std::string_view name) {
  if (!name.starts_with(kLibcVersion)) return {};
  name.remove_prefix(kLibcVersion.size());
  std::pair<int, int> version;
  const char* end = name.data() + name.size();
  const auto [point, failed] = std::from_chars(name.data(), end, version.first);
  if (failed != std::errc() || point == end || *point != '.') return {};
  std::from_chars(point + 1, end, version.second);
  return version;
}

}  // namespace

bool ElfImage::IsImage(const std::filesystem::path& path) {
  std::array<char, SELFMAG> magic{};
  std::ifstream file(path, std::ios::binary);
  return file.read(magic.data(), magic.size()) && std::memcmp(magic.data(), ELFMAG, SELFMAG) == 0;
}

ElfImage ElfImage::Read(const std::filesystem::path& path) { return {ReadFile(path), path.string()}; }

void ElfImage::Damaged(const char* what) const {
  throw Error(ErrorCategory::kInput, fmt::format("expected a dynamic ELF-64 file: {}", what), where_);
}

template <typename Record>
std::vector<Record> ElfImage::ReadAt(uint64_t offset, uint64_t count) const {
  if (offset > bytes_.size() || count > (bytes_.size() - offset) / sizeof(Record)) Damaged("it is cut off");
  std::vector<Record> records(count);
  std::memcpy(records.data(), bytes_.data() + offset, count * sizeof(Record));
  return records;
}

void ElfImage::Parse() {
  constexpr auto kOrder = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
  const Elf64_Ehdr header = ReadAt<Elf64_Ehdr>(0, 1).front();
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) Damaged("it is no ELF");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != kOrder) Damaged("it is for other machines");
  if (header.e_phentsize != sizeof(Elf64_Phdr)) Damaged("it has no segments");
  segments_ = ReadAt<Elf64_Phdr>(header.e_phoff, header.e_phnum);
  for (const Elf64_Phdr& segment : segments_) {
    if (segment.p_type == PT_LOAD) ReadAt<char>(segment.p_offset, segment.p_filesz);
    if (segment.p_type != PT_DYNAMIC) continue;
    dynamic_offset_ = segment.p_offset;
    dynamic_ = ReadAt<Elf64_Dyn>(segment.p_offset, segment.p_filesz / sizeof(Elf64_Dyn));
  }
  const auto end = std::ranges::find(dynamic_, DT_NULL, &Elf64_Dyn::d_tag);
  dynamic_.erase(end, dynamic_.end());
  if (dynamic_.empty()) Damaged("it has no dynamic section");
  strings_ = OffsetOf(ValueOf(DT_STRTAB));
  strings_size_ = ValueOf(DT_STRSZ);
  ReadAt<char>(strings_, strings_size_);
}

uint64_t ElfImage::OffsetOf(uint64_t address) const {
  for (const Elf64_Phdr& segment : segments_) {
    const bool is_inside = address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz;
    if (segment.p_type == PT_LOAD && is_inside) return address - segment.p_vaddr + segment.p_offset;
  }
  Damaged("no segment holds what its dynamic section names");
}

uint64_t ElfImage::ValueOf(int64_t tag) const {
  const auto entry = std::ranges::find(dynamic_, tag, &Elf64_Dyn::d_tag);
  return entry == dynamic_.end() ? 0 : entry->d_un.d_val;
}

std::string_view ElfImage::StringAt(uint64_t offset) const {
  if (offset >= strings_size_) Damaged("a name is outside of its strings");
  const std::string_view rest(bytes_.data() + strings_ + offset, strings_size_ - offset);
  const size_t length = rest.find('\0');
  if (length == rest.npos) Damaged("a name has no end");
  return rest.substr(0, length);
}

int ElfImage::SearchEntry() const {
  for (const int64_t tag : {DT_RUNPATH, DT_RPATH}) {  // the dynamic linker's own preference
    const auto entry = std::ranges::find(dynamic_, tag, &Elf64_Dyn::d_tag);
    if (entry != dynamic_.end()) return static_cast<int>(entry - dynamic_.begin());
  }
  return -1;
}

std::string ElfImage::SearchPath() const {
  const int entry = SearchEntry();
  return entry < 0 ? "" : std::string(StringAt(dynamic_[static_cast<size_t>(entry)].d_un.d_val));
}

std::string ElfImage::Interpreter() const {
  for (const Elf64_Phdr& segment : segments_) {
    if (segment.p_type != PT_INTERP) continue;
    const std::vector<char> name = ReadAt<char>(segment.p_offset, segment.p_filesz);
    return {name.begin(), std::ranges::find(name, '\0')};
  }
  return "";
}

template <typename Visit>
void ElfImage::ForEachVersioned(Visit visit) const {
  const uint64_t address = ValueOf(DT_VERNEED);
  uint64_t offset = address == 0 ? 0 : OffsetOf(address);
  for (uint64_t libraries = ValueOf(DT_VERNEEDNUM); address != 0 && libraries > 0; --libraries) {
    const Elf64_Verneed library = ReadAt<Elf64_Verneed>(offset, 1).front();
    visit(offset, library);
    if (library.vn_next == 0) break;
    offset += library.vn_next;
  }
}

std::pair<int, int> ElfImage::NeededLibc() const {
  std::pair<int, int> newest;
  ForEachVersioned([&](uint64_t at, const Elf64_Verneed& library) {
    uint64_t offset = at + library.vn_aux;
    for (int i = 0; i < library.vn_cnt; ++i) {
      const Elf64_Vernaux version = ReadAt<Elf64_Vernaux>(offset, 1).front();
      newest = std::max(newest, LibcVersion(StringAt(version.vna_name)));
      offset += version.vna_next;
    }
  });
  return newest;
}

void ElfImage::RenameAt(uint64_t offset, const std::map<std::string, std::string>& names) {
  const auto name = names.find(std::string(StringAt(offset)));
  if (name == names.end()) return;
  char* place = bytes_.data() + strings_ + offset;
  if (name->second.size() != name->first.size() || offset == 0 || place[-1] != '\0') {
    throw Error(ErrorCategory::kUnsupported,
                fmt::format("cannot write '{}' in the place of '{}'", name->second, name->first), where_);
  }
  std::ranges::copy(name->second, place);
}

void ElfImage::RenameLibraries(const std::map<std::string, std::string>& names) {
  std::vector<uint64_t> places;  // entries may share a string: what was renamed is in no `names`
  for (const Elf64_Dyn& entry : dynamic_) {
    if (entry.d_tag == DT_NEEDED || entry.d_tag == DT_SONAME) places.push_back(entry.d_un.d_val);
  }
  ForEachVersioned([&](uint64_t, const Elf64_Verneed& library) { places.push_back(library.vn_file); });
  for (const uint64_t offset : places) RenameAt(offset, names);
}

void ElfImage::SetSearchPath(std::string_view folders, bool is_inherited) {
  const int index = SearchEntry();
  if (index < 0) return;
  const std::string old = SearchPath();
  if (old.size() < folders.size()) {
    throw Error(ErrorCategory::kUnsupported,
                fmt::format("cannot have its libraries looked for in '{}': the file has room for '{}'", folders, old),
                where_);
  }
  Elf64_Dyn& entry = dynamic_[static_cast<size_t>(index)];
  char* place = bytes_.data() + strings_ + entry.d_un.d_val;
  std::fill_n(std::ranges::copy(folders, place).out, old.size() - folders.size(), '\0');
  entry.d_tag = is_inherited ? DT_RPATH : DT_RUNPATH;
  std::memcpy(bytes_.data() + dynamic_offset_ + static_cast<size_t>(index) * sizeof entry, &entry, sizeof entry);
}

void ElfImage::Strip() {
  auto header = ReadAt<Elf64_Ehdr>(0, 1).front();
  uint64_t end = std::max<uint64_t>(sizeof header, header.e_phoff + segments_.size() * sizeof(Elf64_Phdr));
  for (const Elf64_Phdr& segment : segments_) {
    if (segment.p_type == PT_LOAD) end = std::max(end, segment.p_offset + segment.p_filesz);
  }
  header.e_shoff = 0;
  header.e_shnum = 0;
  header.e_shstrndx = SHN_UNDEF;
  std::memcpy(bytes_.data(), &header, sizeof header);
  bytes_.resize(end);
}

}  // namespace collage
