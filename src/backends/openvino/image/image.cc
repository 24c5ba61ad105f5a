// image.cc: writing and reading the blobs of kernels; where weights occur in what the plugin exported.
#include "backends/openvino/image/image.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <charconv>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "collage/support/error.h"

namespace collage::openvino {
namespace {

constexpr std::array<char, 8> kMagic{'C', 'L', 'G', 'O', 'V', 'I', 'N', '1'};

struct Header {
  std::array<char, 8> magic = kMagic;
  uint64_t exported = 0, version = 0, precision = 0, model = 0, chunks = 0, weights = 0;  // bytes
  uint64_t reserved = 0;
};
static_assert(sizeof(Header) == 64);

/// `size` bytes at `from` in the blob are those at `to` in the weights.
struct Chunk {
  uint64_t to, from, size;
};

/// Constants below this size are kept apart: looking for them costs more than they do.
constexpr uint64_t kSmallestShared = 256;

/// The (offset, size) of every constant of an IR, from its XML: `offset="64" size="1024"`, in this order.
std::vector<std::pair<uint64_t, uint64_t>> ConstantsOf(std::string_view xml) {
  std::vector<std::pair<uint64_t, uint64_t>> constants;
  const auto number = [&](size_t at) {
    uint64_t value = 0;
    std::from_chars(xml.data() + at, xml.data() + xml.size(), value);
    return value;
  };
  constexpr std::string_view kOffset = " offset=\"";
  constexpr std::string_view kSize = " size=\"";
  for (size_t at = xml.find(kOffset); at != xml.npos; at = xml.find(kOffset, at + 1)) {
    const size_t size = xml.find(kSize, at);
    if (size == xml.npos || size > xml.find('>', at)) continue;
    constants.emplace_back(number(at + kOffset.size()), number(size + kSize.size()));
  }
  return constants;
}

uint64_t WordAt(const char* bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

uint64_t Mixed(uint64_t word) { return (word * 0x9e3779b97f4a7c15ULL) >> 48; }

/// Finds byte strings within a long one in a single pass over it: each is looked for by eight of its bytes.
class ManyStrings {
 public:
  /// Words of few different bytes, zeros above all, occur everywhere: a text of nothing else is not looked for.
  void Add(std::string_view text, size_t id) {
    size_t best = 0;
    int most = -1;
    for (size_t at = 0; at + 8 <= std::min<size_t>(text.size(), kSmallestShared); at += 8) {
      std::bitset<256> bytes;
      for (size_t i = 0; i < 8; ++i) bytes.set(static_cast<unsigned char>(text[at + i]));
      const auto distinct = static_cast<int>(bytes.count());
      if (distinct > most) std::tie(most, best) = std::pair(distinct, at);
    }
    if (most < 3) return;
    const uint64_t word = WordAt(text.data() + best);
    filter_.set(Mixed(word));
    wanted_.emplace(word, Wanted{text, best, id});
  }

  /// Calls `found(id, position)` for the first occurrence of each.
  template <typename Found>
  void FindIn(std::string_view all, Found found) {
    for (size_t at = 0; at + 8 <= all.size() && !wanted_.empty(); ++at) {
      const uint64_t word = WordAt(all.data() + at);
      if (!filter_.test(Mixed(word))) continue;
      auto [it, end] = wanted_.equal_range(word);
      while (it != end) {
        const auto& [text, key, id] = it->second;
        if (at < key || text.size() > all.size() - (at - key) || all.substr(at - key, text.size()) != text) {
          ++it;
          continue;
        }
        found(id, at - key);
        it = wanted_.erase(it);
      }
    }
  }

 private:
  struct Wanted {
    std::string_view text;
    size_t key;  ///< where in `text` the eight bytes are
    size_t id;
  };
  std::unordered_multimap<uint64_t, Wanted> wanted_;
  std::bitset<size_t{1} << 16> filter_;
};

[[noreturn]] void Fail(const std::string& what) {
  throw Error(ErrorCategory::kCorrupt, "a kernel of OpenVINO is damaged: " + what);
}

}  // namespace

std::vector<std::byte> WriteImage(const ImageParts& parts) {
  ManyStrings strings;
  std::vector<Chunk> chunks;
  const std::string_view weights = parts.weights;
  for (const auto& [offset, size] : ConstantsOf(parts.model)) {
    if (size < kSmallestShared || offset > weights.size() || size > weights.size() - offset) continue;
    strings.Add(weights.substr(offset, size), chunks.size());
    chunks.push_back({offset, 0, size});
  }
  std::vector<Chunk> shared;
  strings.FindIn(parts.exported, [&](size_t id, size_t position) {
    shared.push_back({chunks[id].to, sizeof(Header) + position, chunks[id].size});
  });
  std::ranges::sort(shared, {}, &Chunk::to);
  // Bytes between the shared constants are stored behind everything else.
  std::string own;
  std::vector<Chunk> all;
  uint64_t done = 0;
  const auto keep_until = [&](uint64_t end) {
    if (end <= done) return;
    all.push_back({done, own.size(), end - done});
    own.append(weights.substr(done, end - done));
    done = end;
  };
  std::vector<bool> is_own;
  for (const Chunk& chunk : shared) {
    if (chunk.to < done) continue;  // constants of equal values share their place
    keep_until(chunk.to);
    is_own.resize(all.size(), true);
    all.push_back(chunk);
    is_own.push_back(false);
    done = chunk.to + chunk.size;
  }
  keep_until(weights.size());
  is_own.resize(all.size(), true);

  Header header{.exported = parts.exported.size(),
                .version = parts.version.size(),
                .precision = parts.precision.size(),
                .model = parts.model.size(),
                .chunks = all.size() * sizeof(Chunk),
                .weights = weights.size()};
  const uint64_t own_begin =
      sizeof(Header) + header.exported + header.version + header.precision + header.model + header.chunks;
  for (size_t i = 0; i < all.size(); ++i) {
    if (is_own[i]) all[i].from += own_begin;
  }
  std::vector<std::byte> blob;
  blob.reserve(own_begin + own.size());
  const auto append = [&](const void* bytes, size_t size) {
    const auto* begin = static_cast<const std::byte*>(bytes);
    blob.insert(blob.end(), begin, begin + size);
  };
  append(&header, sizeof(header));
  for (const std::string* text : {&parts.exported, &parts.version, &parts.precision, &parts.model}) {
    append(text->data(), text->size());
  }
  append(all.data(), header.chunks);
  append(own.data(), own.size());
  return blob;
}

Image::Image(std::span<const std::byte> blob) : blob_(blob) {
  Header header;
  if (blob.size() < sizeof(header)) Fail("it is too short");
  std::memcpy(&header, blob.data(), sizeof(header));
  if (header.magic != kMagic) Fail("it is of another format");
  size_t at = sizeof(header);
  const auto next = [&](uint64_t size) {
    if (size > blob.size() - at) Fail("it ends early");
    at += size;
    return blob.subspan(at - size, size);
  };
  const auto text = [&](uint64_t size) {
    const std::span<const std::byte> bytes = next(size);
    return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  exported_ = next(header.exported);
  version_ = text(header.version);
  precision_ = text(header.precision);
  model_ = text(header.model);
  chunks_ = next(header.chunks);
  weights_bytes_ = header.weights;
  // Nothing is allocated for them that is not in the blob: chunks follow each other.
  uint64_t end = 0;
  for (at = 0; at + sizeof(Chunk) <= chunks_.size(); at += sizeof(Chunk)) {
    Chunk chunk;
    std::memcpy(&chunk, chunks_.data() + at, sizeof(chunk));
    if (chunk.to != end || chunk.size > blob.size()) Fail("its weights are not where it says");
    end += chunk.size;
  }
  if (end != weights_bytes_) Fail("it lacks weights");
}

void Image::CopyWeights(std::byte* to) const {
  for (size_t at = 0; at + sizeof(Chunk) <= chunks_.size(); at += sizeof(Chunk)) {
    Chunk chunk;
    std::memcpy(&chunk, chunks_.data() + at, sizeof(chunk));
    if (chunk.from > blob_.size() || chunk.size > blob_.size() - chunk.from || chunk.to > weights_bytes_ ||
        chunk.size > weights_bytes_ - chunk.to) {
      Fail("its weights are not where it says");
    }
    std::memcpy(to + chunk.to, blob_.data() + chunk.from, chunk.size);
  }
}

}  // namespace collage::openvino
