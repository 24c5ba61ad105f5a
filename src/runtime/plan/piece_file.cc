// piece_file.cc: headers, indices and the places of pieces.
#include "runtime/plan/piece_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>

#include "collage/support/error.h"
#include "runtime/plan/file_kind.h"
#include "runtime/plan/plan_json.h"
#include "support/checksum.h"

namespace collage {
namespace {

using Json = nlohmann::json;

constexpr size_t kAlignment = 64;

struct FileHeader {
  uint32_t magic;
  uint32_t version;
  uint64_t index_offset;
  uint64_t index_size;
  uint64_t index_checksum;
  uint64_t reserved[3];
  uint64_t own_checksum;

  uint64_t ExpectedChecksum() const { return Checksum(this, offsetof(FileHeader, own_checksum)); }
};
static_assert(sizeof(FileHeader) == kAlignment);

size_t Aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

[[noreturn]] void NotOfFormat(const PieceFormat& format, const std::string& why, const std::filesystem::path& path) {
  throw Error(ErrorCategory::kCorrupt, fmt::format("{}: {}", format.other_file, why), path.string(), format.remedy);
}

/// Says what the file is, if that shows.
[[noreturn]] void OfAnotherKind(std::span<const std::byte> bytes, const PieceFormat& format,
                                const std::filesystem::path& path) {
  const std::optional<FileKind> kind = KindOf(bytes);
  if (!kind) NotOfFormat(format, "wrong magic number", path);
  throw Error(ErrorCategory::kInput, fmt::format("{}, but {}", format.other_file, kind->name), path.string(),
              kind->hint);
}

/// Throws kUnavailable for a file of another version; a damaged version is no other version.
void CheckVersion(const FileHeader& header, const PieceFormat& format, const std::filesystem::path& path) {
  if (header.version == format.version) return;
  FileHeader ours = header;
  ours.version = format.version;
  if (ours.ExpectedChecksum() == header.own_checksum) format.Damaged("its header has a wrong checksum", path);
  throw Error(ErrorCategory::kUnavailable,
              fmt::format(fmt::runtime(format.other_version), header.version, format.version), path.string(),
              fmt::format("{} with this version", format.remedy));
}

FileHeader ReadHeader(std::span<const std::byte> bytes, const PieceFormat& format, const std::filesystem::path& path) {
  FileHeader header{};
  if (bytes.size() < offsetof(FileHeader, index_offset)) NotOfFormat(format, "too short", path);
  std::memcpy(&header, bytes.data(), std::min(sizeof header, bytes.size()));
  if (header.magic != format.magic) OfAnotherKind(bytes, format, path);
  CheckVersion(header, format, path);
  if (bytes.size() < sizeof header) format.Truncated(path);
  if (header.ExpectedChecksum() != header.own_checksum) format.Damaged("its header has a wrong checksum", path);
  const bool fits = header.index_offset <= bytes.size() && header.index_size <= bytes.size() - header.index_offset;
  if (!fits) format.Truncated(path);
  const bool is_last = header.index_offset + header.index_size == bytes.size();
  if (!is_last || header.index_offset < sizeof header || header.index_offset % kAlignment != 0) {
    format.Damaged("its header does not fit the file", path);
  }
  if (Checksum(bytes.data() + header.index_offset, header.index_size) != header.index_checksum) {
    format.Damaged(fmt::format("its {} has a wrong checksum", format.index), path);
  }
  return header;
}

[[noreturn]] void Fail(const char* what) { throw Error(ErrorCategory::kCorrupt, what); }

}  // namespace

void PieceFormat::Damaged(const std::string& what, const std::filesystem::path& path) const {
  throw Error(ErrorCategory::kCorrupt, fmt::format("{}: {}", damaged, what), path.string(), remedy);
}

void PieceFormat::Truncated(const std::filesystem::path& path) const {
  throw Error(ErrorCategory::kCorrupt, truncated, path.string(), remedy);
}

bool Piece::IsRight() const {
  const std::byte* end = bytes.data() + bytes.size();
  const std::byte* next = bytes.data() + Aligned(bytes.size());
  return Checksum(bytes.data(), bytes.size()) == checksum &&
         std::all_of(end, next, [](std::byte one) { return one == std::byte{0}; });
}

void LazyPieces::Note(const Piece& piece) {
  if (!piece.bytes.empty()) pieces_.emplace(piece.bytes.data(), piece);  // an empty one has its address from another
}

bool LazyPieces::IsRight(const void* begin) const {
  const auto piece = pieces_.find(begin);
  if (piece == pieces_.end()) return true;
  const std::lock_guard lock(mutex_);
  if (right_.contains(begin)) return true;
  if (!piece->second.IsRight()) return false;
  right_.insert(begin);
  return true;
}

bool LazyPieces::AreRight() const {
  return std::ranges::all_of(pieces_, [&](const auto& piece) { return IsRight(piece.first); });
}

Piece PieceReader::Read(const Json& place) {
  const auto end = static_cast<int64_t>(bytes_.size());
  const int64_t offset = IntegerFrom(place.at(0), sizeof(FileHeader), end, "the place of a piece");
  const int64_t size = IntegerFrom(place.at(1), 0, end - offset, "the size of a piece");
  const uint64_t checksum = ChecksumFrom(place.at(2));
  if (offset % static_cast<int64_t>(kAlignment) != 0) Fail("a piece is not aligned");
  if (size > 0) {
    const auto [known, is_new] = known_.emplace(std::pair(offset, offset + size), checksum);
    if (known->second != checksum) Fail("a piece has two checksums");
    if (is_new) CheckApart(known);
  }
  return {bytes_.subspan(static_cast<size_t>(offset), static_cast<size_t>(size)), checksum};
}

void PieceReader::CheckApart(Known::iterator piece) const {
  const auto overlaps = [&](Known::const_iterator other) {
    return other->first.first < piece->first.second && piece->first.first < other->first.second;
  };
  const bool is_apart = (piece == known_.begin() || !overlaps(std::prev(piece))) &&
                        (std::next(piece) == known_.end() || !overlaps(std::next(piece)));
  if (!is_apart) Fail("pieces overlap");
}

PieceFile ReadPieceFile(std::span<std::byte> bytes, const PieceFormat& format, const std::filesystem::path& path) {
  const FileHeader header = ReadHeader(bytes, format, path);
  const auto* text = reinterpret_cast<const char*>(bytes.data() + header.index_offset);
  Json index = Json::parse(text, text + header.index_size, nullptr, /*allow_exceptions=*/false);
  if (index.is_discarded()) format.Damaged(fmt::format("its {} cannot be read", format.index), path);
  return {std::move(index), bytes.first(header.index_offset)};
}

void AddPiece(const std::filesystem::path& path, const PieceFormat& format, const std::string& name,
              std::span<const std::byte> bytes) {
  FileHeader header{};
  Json index;
  {
    const std::shared_ptr<MappedFile> file = MappedFile::Open(path);
    header = ReadHeader(file->bytes(), format, path);
    index = ReadPieceFile(file->bytes(), format, path).index;
  }
  const size_t begin = header.index_offset;  // where the index was
  index[name] = {begin, bytes.size(), Checksum(bytes.data(), bytes.size())};
  std::string end(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  end.resize(Aligned(bytes.size()), '\0');
  header.index_offset = begin + end.size();
  const std::string text = index.dump(-1, ' ', false, Json::error_handler_t::replace);
  header.index_size = text.size();
  header.index_checksum = Checksum(text.data(), text.size());
  header.own_checksum = header.ExpectedChecksum();
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(begin));
  file << end << text;
  file.seekp(0);
  file.write(reinterpret_cast<const char*>(&header), sizeof header);
  file.close();
  std::error_code failed;
  if (file) std::filesystem::resize_file(path, header.index_offset + header.index_size, failed);
  if (!file || failed) throw Error(ErrorCategory::kResource, "cannot add to the file", path.string());
}

std::optional<std::span<const std::byte>> FindPiece(std::span<std::byte> bytes, const PieceFormat& format,
                                                    const std::string& name, const std::filesystem::path& path) {
  const PieceFile file = ReadPieceFile(bytes, format, path);
  if (!file.index.is_object() || !file.index.contains(name)) return std::nullopt;
  try {
    const Piece piece = PieceReader(file.pieces).Read(file.index.at(name));
    if (piece.IsRight()) return piece.bytes;
  } catch (const Json::exception&) {
  } catch (const Error& error) {
    format.Damaged(fmt::format("its {}: {}", name, error.message()), path);
  }
  format.Damaged(fmt::format("its {} has a wrong checksum", name), path);
}

PieceWriter::PieceWriter(AtomicFile& file) : file_(file) { file_.Write(std::string(sizeof(FileHeader), '\0')); }

Json PieceWriter::Write(const void* data, size_t size) {
  const uint64_t checksum = Checksum(data, size);
  std::vector<Written>& alike = written_[{size, checksum}];
  auto found = std::find_if(alike.begin(), alike.end(),
                            [&](const Written& one) { return size == 0 || std::memcmp(one.data, data, size) == 0; });
  if (found == alike.end()) {
    file_.Align(kAlignment);
    found = alike.insert(found, {data, file_.position()});
    file_.Write(data, size);
  }
  return {found->offset, size, checksum};
}

Json PieceWriter::Write(std::vector<std::byte> piece) {
  const std::vector<std::byte>& kept = kept_.emplace_back(std::move(piece));
  return Write(kept.data(), kept.size());
}

void PieceWriter::Finish(const PieceFormat& format, const Json& index) {
  file_.Align(kAlignment);
  const std::string text = index.dump(-1, ' ', false, Json::error_handler_t::replace);
  FileHeader header{};
  header.magic = format.magic;
  header.version = format.version;
  header.index_offset = file_.position();
  header.index_size = text.size();
  header.index_checksum = Checksum(text.data(), text.size());
  header.own_checksum = header.ExpectedChecksum();
  file_.Write(text);
  file_.Overwrite(0, &header, sizeof header);
}

}  // namespace collage
