// object_file.cc: five sections: the data, symbols, their names, the sections' names, and a stack that is not
// executable.
#include "emit/object_file.h"

#include <elf.h>

#include <array>
#include <cstring>

namespace collage {
namespace {

constexpr size_t kAlignment = 64;

template <typename Record>
void Append(std::string& file, const Record& record) {
  file.append(reinterpret_cast<const char*>(&record), sizeof record);
}

void AlignTo(std::string& file, size_t alignment) {
  file.resize((file.size() + alignment - 1) / alignment * alignment, '\0');
}

/// Texts that end with a zero, by their offsets.
class Strings {
 public:
  uint32_t Add(const std::string& text) {
    const auto at = static_cast<uint32_t>(bytes_.size());
    bytes_ += text + '\0';
    return at;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_ = std::string(1, '\0');
};

enum Section : uint16_t { kNone, kData, kSymbols, kNames, kSectionNames, kStack, kNumSections };

Elf64_Sym Symbol(uint32_t name, uint64_t value, uint64_t size) {
  Elf64_Sym symbol{};
  symbol.st_name = name;
  symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
  symbol.st_shndx = kData;
  symbol.st_value = value;
  symbol.st_size = size;
  return symbol;
}

/// The table of sections' names, with its own.
void AddSectionNames(Elf64_Shdr& section, Strings& names, std::string& file) {
  section.sh_name = names.Add(".shstrtab");
  section.sh_type = SHT_STRTAB;
  section.sh_offset = file.size();
  section.sh_size = names.bytes().size();
  section.sh_addralign = 1;
  file += names.bytes();
}

}  // namespace

std::string DataObject(std::span<const std::byte> bytes, const std::string& name) {
  Strings names, section_names;
  std::array<Elf64_Shdr, kNumSections> sections{};
  std::string file(sizeof(Elf64_Ehdr), '\0');
  const auto add = [&](Section section, const char* called, uint32_t type, size_t alignment, std::string_view content) {
    AlignTo(file, alignment);
    sections[section].sh_name = section_names.Add(called);
    sections[section].sh_type = type;
    sections[section].sh_offset = file.size();
    sections[section].sh_size = content.size();
    sections[section].sh_addralign = alignment;
    file.append(content);
  };
  add(kData, ".rodata.collage", SHT_PROGBITS, kAlignment, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  sections[kData].sh_flags = SHF_ALLOC;
  std::string symbols(sizeof(Elf64_Sym), '\0');  // the first is none
  Append(symbols, Symbol(names.Add(name + "_begin"), 0, bytes.size()));
  Append(symbols, Symbol(names.Add(name + "_end"), bytes.size(), 0));
  add(kSymbols, ".symtab", SHT_SYMTAB, alignof(Elf64_Sym), symbols);
  sections[kSymbols].sh_link = kNames;
  sections[kSymbols].sh_info = 1;  // those before are local
  sections[kSymbols].sh_entsize = sizeof(Elf64_Sym);
  add(kNames, ".strtab", SHT_STRTAB, 1, names.bytes());
  add(kStack, ".note.GNU-stack", SHT_PROGBITS, 1, "");
  AddSectionNames(sections[kSectionNames], section_names, file);
  AlignTo(file, alignof(Elf64_Shdr));
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_REL;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof header;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = kNumSections;
  header.e_shstrndx = kSectionNames;
  header.e_shoff = file.size();
  for (const Elf64_Shdr& section : sections) Append(file, section);
  std::memcpy(file.data(), &header, sizeof header);
  return file;
}

}  // namespace collage
