// library_calls.cc: see library_calls.h.
#include "runtime/library_calls.h"

#include <elf.h>
#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <sstream>

#include "collage/runtime/micro_kernels.h"
#include "collage/support/error.h"
#include "runtime/native_loader.h"
#include "support/dynamic_library.h"
#include "support/machine.h"

namespace collage {
namespace {

constexpr std::string_view kFile = "file:";

void* ResolveRequest(const LibraryCall& call) {
  void* address = nullptr;
  try {
    address = FindMicroKernel(call.library, call.function);
  } catch (const Error& error) {
    throw Error(ErrorCategory::kUnavailable,
                fmt::format("a kernel calls '{}', which is not here: {}", call.library, error.message()), "",
                call.hint);
  }
  if (address != nullptr) return address;
  throw Error(ErrorCategory::kUnavailable,
              fmt::format("a kernel calls '{}' for '{}', which it does not have on this processor ({})", call.library,
                          call.function, ThisMachine().cpu),
              "", "compile the model on this machine");
}

/// An ELF object whose headers may say anything: what lies outside of it is not there.
class ElfObject {
 public:
  explicit ElfObject(std::span<const std::byte> bytes) : bytes_(bytes) {}

  /// The text that symbol `name` stands for, up to its end; empty where there is no such symbol.
  std::string TextOf(std::string_view name) const {
    const auto header = Read<Elf64_Ehdr>(0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64) {
      return "";
    }
    for (uint64_t i = 0; i < header->e_shnum; ++i) {
      const auto table = Read<Elf64_Shdr>(header->e_shoff + i * sizeof(Elf64_Shdr));
      if (!table || table->sh_type != SHT_DYNSYM) continue;
      const auto names = Read<Elf64_Shdr>(header->e_shoff + table->sh_link * sizeof(Elf64_Shdr));
      if (!names) continue;
      for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table->sh_size; at += sizeof(Elf64_Sym)) {
        const auto symbol = Read<Elf64_Sym>(table->sh_offset + at);
        if (!symbol) break;
        if (Text(names->sh_offset + symbol->st_name) == name) return Text(OffsetOf(*header, symbol->st_value));
      }
    }
    return "";
  }

 private:
  template <typename T>
  std::optional<T> Read(uint64_t offset) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }

  std::string Text(uint64_t offset) const {
    if (offset >= bytes_.size()) return "";
    const std::string_view rest(reinterpret_cast<const char*>(bytes_.data()) + offset, bytes_.size() - offset);
    return std::string(rest.substr(0, rest.find('\0')));
  }

  /// The offset in the file of what is loaded to `address`; the end of the file where nothing is.
  uint64_t OffsetOf(const Elf64_Ehdr& header, uint64_t address) const {
    for (uint64_t i = 0; i < header.e_phnum; ++i) {
      const auto segment = Read<Elf64_Phdr>(header.e_phoff + i * sizeof(Elf64_Phdr));
      if (!segment || segment->p_type != PT_LOAD || address < segment->p_vaddr) continue;
      if (address - segment->p_vaddr < segment->p_filesz) return segment->p_offset + (address - segment->p_vaddr);
    }
    return bytes_.size();
  }

  std::span<const std::byte> bytes_;
};

}  // namespace

std::string LibraryCall::ToString() const {
  return fmt::format("{}{}|{}|{}", kind == Kind::kSymbol ? kFile : "", library, function, hint);
}

LibraryCall LibraryCall::Parse(std::string_view line) {
  LibraryCall call;
  const std::string whole(line);
  if (line.starts_with(kFile)) {
    call.kind = Kind::kSymbol;
    line.remove_prefix(kFile.size());
  }
  const size_t function_at = line.find('|');
  const size_t hint_at = function_at == line.npos ? line.npos : line.find('|', function_at + 1);
  if (hint_at == line.npos || function_at == 0 || line.substr(0, function_at).find('/') != line.npos) {
    throw Error(ErrorCategory::kCorrupt, fmt::format("a kernel's code calls '{}', which is no function", whole));
  }
  call.library = line.substr(0, function_at);
  call.function = line.substr(function_at + 1, hint_at - function_at - 1);
  call.hint = line.substr(hint_at + 1);
  return call;
}

void* Resolve(const LibraryCall& call) {
  if (call.kind == LibraryCall::Kind::kRequest) return ResolveRequest(call);
  try {
    return FindLibrarySymbol(call.library, call.function);
  } catch (const Error& error) {
    throw Error(ErrorCategory::kUnavailable,
                fmt::format("a kernel calls '{}' of '{}': {}", call.function, call.library, error.message()), "",
                call.hint.empty() ? error.hint() : call.hint + "; " + error.hint());
  }
}

std::vector<LibraryCall> CallsOf(std::span<const std::byte> object) {
  std::vector<LibraryCall> calls;
  std::istringstream lines(ElfObject(object).TextOf(kObjectCalls));
  for (std::string line; std::getline(lines, line);) calls.push_back(LibraryCall::Parse(line));
  return calls;
}

}  // namespace collage
