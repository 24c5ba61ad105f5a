// embedded_file.cc: pages, since kernels and constants are read where they lie in the mapped file.
#include "runtime/plan/embedded_file.h"

#include <array>
#include <cstdint>
#include <cstring>

#include "collage/support/error.h"
#include "support/file.h"

namespace collage {
namespace {

constexpr size_t kPage = 4096;
constexpr std::array<char, 8> kMagic{'C', 'L', 'G', 'E', 'M', 'B', 'E', 'D'};

struct Trailer {
  uint64_t offset;
  uint64_t size;
  std::array<char, 8> magic;
};

}  // namespace

std::string WithEmbedded(std::string program, std::span<const std::byte> executable) {
  program.resize((program.size() + kPage - 1) / kPage * kPage, '\0');
  const Trailer trailer{program.size(), executable.size(), kMagic};
  program.append(reinterpret_cast<const char*>(executable.data()), executable.size());
  program.append(reinterpret_cast<const char*>(&trailer), sizeof trailer);
  return program;
}

std::optional<Executable> LoadEmbedded(const std::filesystem::path& file) {
  const std::shared_ptr<MappedFile> mapped = MappedFile::Open(file);
  const std::span<std::byte> bytes = mapped->bytes();
  Trailer trailer{};
  if (bytes.size() < sizeof trailer) return std::nullopt;
  std::memcpy(&trailer, bytes.data() + bytes.size() - sizeof trailer, sizeof trailer);
  if (trailer.magic != kMagic) return std::nullopt;
  const size_t room = bytes.size() - sizeof trailer;
  if (trailer.offset % kPage != 0 || trailer.offset > room || trailer.size != room - trailer.offset) {
    throw Error(ErrorCategory::kCorrupt, "the model behind the program is damaged", file.string());
  }
  return Executable::FromMemory(bytes.subspan(trailer.offset, trailer.size), mapped, file.string());
}

}  // namespace collage
