// npy.cc: the .npy header, and as much of the zip format as .npz files use.
#include "runtime/npy.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <vector>

#include "collage/support/error.h"
#include "support/file.h"
#include "support/hash.h"

namespace collage {
namespace {

[[noreturn]] void Malformed(const std::string& what, const std::filesystem::path& path) {
  throw Error(ErrorCategory::kInput, what, path.string());
}

uint64_t LittleEndian(std::string_view bytes, size_t at, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i)
    value |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return value;
}

std::string ToLittleEndian(uint64_t value, size_t count) {
  std::string bytes;
  for (size_t i = 0; i < count; ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

struct Descriptor {
  std::string_view text;
  DataType dtype;
};

constexpr Descriptor kDescriptors[] = {{"<f4", kFloat32},
                                       {"<f8", kFloat64},
                                       {"<f2", kFloat16},
                                       {"|i1", kInt8},
                                       {"<i2", DataType::Int(16)},
                                       {"<i4", kInt32},
                                       {"<i8", kInt64},
                                       {"|u1", kUInt8},
                                       {"<u2", DataType::UInt(16)},
                                       {"<u4", DataType::UInt(32)},
                                       {"<u8", DataType::UInt(64)},
                                       {"|b1", kBool},
                                       // NumPy knows bfloat16 only through ml_dtypes, which writes it as two opaque
                                       // bytes; np.load(…).view(bfloat16) reads it.
                                       {"<V2", kBFloat16},
                                       {"|V2", kBFloat16}};

/// The text between the quotes or brackets behind `'key':`.
std::string_view HeaderField(std::string_view header, std::string_view key, char open, char close,
                             const std::filesystem::path& path) {
  const size_t at = header.find(fmt::format("'{}'", key));
  const size_t begin = at == std::string_view::npos ? at : header.find(open, at + key.size() + 2);
  const size_t end = begin == std::string_view::npos ? begin : header.find(close, begin + 1);
  if (end == std::string_view::npos) Malformed(fmt::format("not a NumPy array: no '{}' in its header", key), path);
  return header.substr(begin + 1, end - begin - 1);
}

/// Elements along one axis; also beside an axis without any.
constexpr int64_t kLargestSize = int64_t{1} << 40;

Shape ParseShape(std::string_view text, const std::filesystem::path& path) {
  Shape shape;
  while (!text.empty()) {
    const size_t digit = text.find_first_of("0123456789");
    if (digit == std::string_view::npos) break;
    text.remove_prefix(digit);
    int64_t size = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (code != std::errc() || size > kLargestSize) Malformed("not a NumPy array: its shape is out of range", path);
    shape.push_back(size);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
  }
  return shape;
}

/// A character of 32 bits as UTF-8.
void AppendUtf8(uint64_t character, std::string& text) {
  const auto add = [&](uint64_t bits) { text += static_cast<char>(bits); };
  const auto add_rest = [&](int parts) {
    while (parts-- > 0) add(0x80 | (character >> (6 * parts) & 0x3f));
  };
  if (character < 0x80) return add(character);
  const int parts = character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
  constexpr uint64_t kFirst[] = {0, 0xc0, 0xe0, 0xf0};
  add(kFirst[parts] | character >> (6 * parts));
  add_rest(parts);
}

/// The characters of UTF-8; bytes that are none stand for themselves.
std::vector<uint64_t> CharactersOf(std::string_view text) {
  std::vector<uint64_t> characters;
  for (size_t at = 0; at < text.size();) {
    const auto first = static_cast<unsigned char>(text[at++]);
    const int parts = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : first >= 0xc0 ? 1 : 0;
    uint64_t character = parts == 0 ? first : first & (0x3f >> parts);
    size_t next = at;
    for (int i = 0; i < parts && next < text.size(); ++i) character = character << 6 | (text[next++] & 0x3f);
    const bool is_whole = next == at + static_cast<size_t>(parts);
    characters.push_back(is_whole ? character : first);
    if (is_whole) at = next;
  }
  return characters;
}

/// Elements of `width` characters of 4 bytes, or of 1, filled up with zeros.
Tensor ParseTexts(std::string_view data, Shape shape, size_t width, size_t bytes, StringNumbers& strings) {
  Tensor numbers = Tensor::Empty(std::move(shape), kInt64);
  for (int64_t i = 0; i < numbers.num_elements(); ++i) {
    std::string text;
    size_t length = 0;
    for (size_t k = 0; k < width; ++k) {
      const uint64_t character = LittleEndian(data, (static_cast<size_t>(i) * width + k) * bytes, bytes);
      bytes == 1 ? text.push_back(static_cast<char>(character)) : AppendUtf8(character, text);
      if (character != 0) length = text.size();
    }
    text.resize(length);
    numbers.data<int64_t>()[i] = strings.Add(text);
  }
  return numbers;
}

constexpr size_t kMostEmptyTexts = 1 << 20;

/// The strings that NumPy's "<U5" and "|S5" are; nothing for other types. `strings` may be null.
std::optional<StoredArray> ParseTextArray(std::string_view descriptor, const Shape& shape, std::string_view data,
                                          StringNumbers* strings, const std::filesystem::path& path) {
  const bool is_wide = descriptor.starts_with("<U");
  if (!is_wide && !descriptor.starts_with("|S")) return std::nullopt;
  if (strings == nullptr) Malformed("an array of strings, where numbers are wanted", path);
  size_t width = 0;
  const auto [end, code] = std::from_chars(descriptor.data() + 2, descriptor.data() + descriptor.size(), width);
  const size_t bytes = is_wide ? 4 : 1;
  const std::optional<size_t> elements = CheckedBytes(shape, kUInt8);
  // Empty strings take no bytes: any number of them would fit into any file.
  const bool is_empty = elements == 0 || (width == 0 && elements && *elements <= kMostEmptyTexts);
  const bool fits =
      code == std::errc() && elements &&
      (is_empty ? data.empty() : width > 0 && width <= data.size() && *elements * width * bytes == data.size());
  if (!fits) Malformed("the NumPy array's shape does not fit its size", path);
  return StoredArray{ParseTexts(data, shape, width, bytes, *strings), true};
}

/// `strings` may be null: then there may be none.
StoredArray ParseNpy(std::string_view bytes, StringNumbers* strings, const std::filesystem::path& path) {
  if (bytes.size() < 10 || bytes.substr(0, 6) != "\x93NUMPY") Malformed("not a NumPy array: wrong magic", path);
  const size_t length_bytes = bytes[6] == 1 ? 2 : 4;
  if (bytes.size() < 8 + length_bytes) Malformed("the NumPy array is truncated", path);
  const size_t length = LittleEndian(bytes, 8, length_bytes);
  if (length > bytes.size() - 8 - length_bytes) Malformed("the NumPy array is truncated", path);
  const std::string_view header = bytes.substr(8 + length_bytes, length);
  if (header.find("'fortran_order': True") != std::string_view::npos) {
    Malformed("the NumPy array is in Fortran order; save it with numpy.ascontiguousarray", path);
  }
  std::optional<DataType> dtype;
  const std::string_view descriptor = HeaderField(header, "descr", '\'', '\'', path);
  for (const Descriptor& known : kDescriptors) {
    if (known.text == descriptor) dtype = known.dtype;
  }
  Shape shape = ParseShape(HeaderField(header, "shape", '(', ')', path), path);
  const std::string_view data = bytes.substr(8 + length_bytes + length);
  if (const auto texts = ParseTextArray(descriptor, shape, data, strings, path)) return *texts;
  if (!dtype) Malformed(fmt::format("NumPy dtype '{}' is not supported", descriptor), path);
  if (CheckedBytes(shape, *dtype) != data.size()) Malformed("the NumPy array's shape does not fit its size", path);
  Tensor tensor = Tensor::Empty(std::move(shape), *dtype);
  std::memcpy(tensor.raw(), data.data(), data.size());
  return {tensor};
}

/// A .npy of `data`.
std::string WithHeader(std::string_view descriptor, const Shape& shape, std::string_view data) {
  std::string dims;
  for (int64_t size : shape) dims += fmt::format("{}, ", size);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descriptor, dims);
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += ToLittleEndian(header.size(), 2) + header;
  return bytes.append(data);
}

std::string ToNpy(const Tensor& tensor) {
  std::string_view descriptor;
  for (const Descriptor& known : kDescriptors) {
    if (descriptor.empty() && known.dtype == tensor.dtype()) descriptor = known.text;
  }
  COLLAGE_CHECK(!descriptor.empty()) << "no NumPy dtype for " << tensor.dtype().ToString();
  return WithHeader(descriptor, tensor.shape(), {tensor.data<char>(), tensor.size_bytes()});
}

/// The strings whose numbers a tensor holds.
std::string ToNpy(const Tensor& numbers, const StringNumbers& strings) {
  std::vector<std::vector<uint64_t>> texts;
  size_t width = 1;  // as NumPy has it for empty strings
  for (int64_t i = 0; i < numbers.num_elements(); ++i) {
    texts.push_back(CharactersOf(strings.TextOf(numbers.data<int64_t>()[i])));
    width = std::max(width, texts.back().size());
  }
  std::string data;
  for (std::vector<uint64_t>& text : texts) {
    text.resize(width);
    for (uint64_t character : text) data += ToLittleEndian(character, 4);
  }
  return WithHeader(fmt::format("<U{}", width), numbers.shape(), data);
}

constexpr size_t kLargestRatio = 1032;  // of deflate: 258 bytes from two bits

std::string Inflate(std::string_view compressed, size_t size, const std::filesystem::path& path) {
  if (size / kLargestRatio > compressed.size()) Malformed("the archive is damaged: an impossible size", path);
  std::string result(size, '\0');
  z_stream stream{};
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(compressed.data()));
  stream.avail_in = static_cast<uInt>(compressed.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(size);
  const bool begun = inflateInit2(&stream, -MAX_WBITS) == Z_OK;
  const int code = begun ? inflate(&stream, Z_FINISH) : Z_ERRNO;
  if (begun) inflateEnd(&stream);
  if (code != Z_STREAM_END || stream.total_out != size) Malformed("the archive is damaged", path);
  return result;
}

// ---- ONNX TensorProto, by hand: three fields are enough, and the runtime must not need protobuf ----

/// Reads a protobuf varint at `at`, moving it; nothing when the text ends.
std::optional<uint64_t> ReadVarint(std::string_view bytes, size_t& at) {
  uint64_t value = 0;
  for (int shift = 0; at < bytes.size() && shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes[at++]);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  return std::nullopt;
}

/// A tensor of strings, one for each element. `strings` may be null: then there may be none.
StoredArray TextTensor(const Shape& shape, const std::vector<std::string_view>& texts, StringNumbers* strings,
                       const std::filesystem::path& path) {
  if (strings == nullptr) Malformed("a tensor of strings, where numbers are wanted", path);
  if (CheckedBytes(shape, kUInt8) != texts.size()) Malformed("an ONNX tensor without a string for each element", path);
  const Tensor numbers = Tensor::Empty(shape, kInt64);
  for (size_t i = 0; i < texts.size(); ++i) numbers.data<int64_t>()[i] = strings->Add(texts[i]);
  return {numbers, true};
}

/// A tensor of the type that has this number of ONNX.
Tensor NumberTensor(const Shape& shape, uint64_t type, std::string_view raw, const std::filesystem::path& path) {
  constexpr std::pair<uint64_t, DataType> kTypes[] = {{1, kFloat32},
                                                      {2, kUInt8},
                                                      {3, kInt8},
                                                      {4, DataType::UInt(16)},
                                                      {5, DataType::Int(16)},
                                                      {6, kInt32},
                                                      {7, kInt64},
                                                      {9, kBool},
                                                      {10, kFloat16},
                                                      {11, kFloat64},
                                                      {12, DataType::UInt(32)},
                                                      {13, DataType::UInt(64)},
                                                      {16, kBFloat16}};
  for (const auto& [number, dtype] : kTypes) {
    if (number != type) continue;
    if (CheckedBytes(shape, dtype) != raw.size()) Malformed("an ONNX tensor without raw data of its size", path);
    const Tensor tensor = Tensor::Empty(shape, dtype);
    std::ranges::copy(raw, tensor.data<char>());  // no raw data at all is a null pointer
    return tensor;
  }
  Malformed(fmt::format("not an ONNX tensor of a supported type ({})", type), path);
}

/// `strings` may be null: then there may be none.
StoredArray ParseTensorProto(std::string_view bytes, StringNumbers* strings, const std::filesystem::path& path) {
  constexpr uint64_t kTexts = 8;
  Shape shape;
  std::vector<std::string_view> texts;
  uint64_t type = 0;
  std::string_view raw;
  const auto add_size = [&](uint64_t size) {
    if (size > uint64_t{kLargestSize}) Malformed("not an ONNX tensor: its shape is out of range", path);
    shape.push_back(static_cast<int64_t>(size));
  };
  for (size_t at = 0; at < bytes.size();) {
    const std::optional<uint64_t> tag = ReadVarint(bytes, at);
    if (!tag) Malformed("not an ONNX tensor", path);
    const uint64_t field = *tag >> 3;
    if ((*tag & 7) == 0) {
      const std::optional<uint64_t> value = ReadVarint(bytes, at);
      if (!value) Malformed("not an ONNX tensor", path);
      if (field == 1) add_size(*value);
      if (field == 2) type = *value;
    } else if ((*tag & 7) == 2) {
      const std::optional<uint64_t> size = ReadVarint(bytes, at);
      if (!size || *size > bytes.size() - at) Malformed("not an ONNX tensor", path);
      const std::string_view content = bytes.substr(at, *size);
      at += *size;
      if (field == 9) raw = content;
      if (field == 6) texts.push_back(content);
      for (size_t i = 0; field == 1 && i < content.size();) {  // packed dims
        const std::optional<uint64_t> value = ReadVarint(content, i);
        if (!value) Malformed("not an ONNX tensor", path);
        add_size(*value);
      }
    } else {
      Malformed("not an ONNX tensor", path);
    }
  }
  return type == kTexts ? TextTensor(shape, texts, strings, path) : StoredArray{NumberTensor(shape, type, raw, path)};
}

StoredArray ParseArray(const std::filesystem::path& path, StringNumbers* strings) {
  const std::string bytes = ReadFile(path);
  return path.extension() == ".pb" ? ParseTensorProto(bytes, strings, path) : ParseNpy(bytes, strings, path);
}

}  // namespace

Tensor ReadArray(const std::filesystem::path& path) { return ParseArray(path, nullptr).tensor; }

StoredArray ReadArray(const std::filesystem::path& path, StringNumbers& strings) { return ParseArray(path, &strings); }

namespace {

constexpr uint64_t kZipLimit =
    0xffffffff;  // sizes and places are 32 bits wide; all ones stand for "see the zip64 record"

/// Without this flag a name is in code page 437.
constexpr uint64_t kZipNameIsUtf8 = 1 << 11;

/// An entry of the archive's directory.
struct ZipEntry {
  std::string name;
  uint64_t method;
  uint64_t crc;
  uint64_t size;
  std::string_view content;
};

/// Reads the directory's entry at `at` and moves it to the next.
ZipEntry ReadEntry(std::string_view bytes, size_t& at, const std::filesystem::path& path) {
  if (at > bytes.size() || bytes.size() - at < 46 || bytes.substr(at, 4) != std::string_view("PK\x01\x02", 4)) {
    Malformed("the archive is damaged", path);
  }
  const uint64_t compressed = LittleEndian(bytes, at + 20, 4);
  const uint64_t name_length = LittleEndian(bytes, at + 28, 2);
  const uint64_t local = LittleEndian(bytes, at + 42, 4);
  ZipEntry entry{
      {}, LittleEndian(bytes, at + 10, 2), LittleEndian(bytes, at + 16, 4), LittleEndian(bytes, at + 24, 4), {}};
  if (compressed == kZipLimit || entry.size == kZipLimit)
    Malformed("arrays above 4 GB in an archive are not supported", path);
  if (bytes.size() - at - 46 < name_length || local > bytes.size() || bytes.size() - local < 30) {
    Malformed("the archive is damaged", path);
  }
  entry.name = bytes.substr(at + 46, name_length);
  const uint64_t begin = local + 30 + LittleEndian(bytes, local + 26, 2) + LittleEndian(bytes, local + 28, 2);
  if (begin > bytes.size() || compressed > bytes.size() - begin) Malformed("the archive is truncated", path);
  entry.content = bytes.substr(begin, compressed);
  at += 46 + name_length + LittleEndian(bytes, at + 30, 2) + LittleEndian(bytes, at + 32, 2);
  return entry;
}

StoredArrays ParseNpz(const std::filesystem::path& path, StringNumbers* strings) {
  const std::string file = ReadFile(path);
  const std::string_view bytes = file;
  // The end-of-central-directory record is the last thing in the file, behind it at most a comment.
  const size_t end = bytes.rfind(std::string_view("PK\x05\x06", 4));
  if (end == std::string_view::npos || bytes.size() - end < 22) Malformed("not an .npz archive", path);
  const size_t count = LittleEndian(bytes, end + 10, 2);
  size_t at = LittleEndian(bytes, end + 16, 4);
  StoredArrays arrays;
  size_t left = bytes.size();  // entries that overlap would hold more than the file
  for (size_t i = 0; i < count; ++i) {
    ZipEntry entry = ReadEntry(bytes, at, path);
    if (entry.content.size() > left) Malformed("the archive is damaged: its entries overlap", path);
    left -= entry.content.size();
    if (entry.method != 0 && entry.method != 8) {
      Malformed(fmt::format("compression method {} is not supported", entry.method), path);
    }
    const std::string inflated = entry.method == 8 ? Inflate(entry.content, entry.size, path) : std::string();
    const std::string_view content = entry.method == 8 ? std::string_view(inflated) : entry.content;
    if (Crc32(content.data(), content.size()) != entry.crc) {
      Malformed(fmt::format("the archive is damaged: '{}' has a wrong checksum", entry.name), path);
    }
    if (entry.name.ends_with(".npy")) entry.name.resize(entry.name.size() - 4);
    arrays[entry.name] = ParseNpy(content, strings, path);
  }
  return arrays;
}

void WriteArchive(const std::filesystem::path& path, const StoredArrays& arrays, const StringNumbers& strings) {
  AtomicFile file(path);
  std::string directory;
  for (const auto& [name, array] : arrays) {
    const std::string content = array.is_text ? ToNpy(array.tensor, strings) : ToNpy(array.tensor);
    const std::string entry_name = name + ".npy";
    const size_t place = file.position();
    if (place + content.size() + directory.size() >= kZipLimit) {
      throw Error(ErrorCategory::kUnsupported, "arrays above 4 GB do not fit in an archive", path.string(),
                  "write fewer outputs");
    }
    // Fields that local header and directory entry share: version, flags, method, time, date, checksum, sizes.
    const std::string common = ToLittleEndian(20, 2) + ToLittleEndian(kZipNameIsUtf8, 2) + ToLittleEndian(0, 2) +
                               ToLittleEndian(0, 2) + ToLittleEndian(0x21, 2) +
                               ToLittleEndian(Crc32(content.data(), content.size()), 4) +
                               ToLittleEndian(content.size(), 4) + ToLittleEndian(content.size(), 4) +
                               ToLittleEndian(entry_name.size(), 2) + ToLittleEndian(0, 2);
    directory += std::string("PK\x01\x02", 4) + ToLittleEndian(20, 2) + common + std::string(2 + 2 + 2 + 4, '\0') +
                 ToLittleEndian(place, 4) + entry_name;
    file.Write(std::string("PK\x03\x04", 4) + common + entry_name);
    file.Write(content);
  }
  const size_t begin = file.position();
  file.Write(directory);
  file.Write(std::string("PK\x05\x06", 4) + std::string(4, '\0') + ToLittleEndian(arrays.size(), 2) +
             ToLittleEndian(arrays.size(), 2) + ToLittleEndian(directory.size(), 4) + ToLittleEndian(begin, 4) +
             std::string(2, '\0'));
  file.Commit();
}

}  // namespace

std::map<std::string, Tensor> ReadNpz(const std::filesystem::path& path) {
  std::map<std::string, Tensor> arrays;
  for (const auto& [name, array] : ParseNpz(path, nullptr)) arrays.emplace(name, array.tensor);
  return arrays;
}

StoredArrays ReadNpz(const std::filesystem::path& path, StringNumbers& strings) { return ParseNpz(path, &strings); }

void WriteArray(const std::filesystem::path& path, const Tensor& array) { WriteWhole(path, ToNpy(array)); }

void WriteNpz(const std::filesystem::path& path, const std::map<std::string, Tensor>& arrays) {
  StoredArrays all;
  for (const auto& [name, tensor] : arrays) all.emplace(name, StoredArray{tensor});
  WriteArchive(path, all, {});
}

void WriteNpz(const std::filesystem::path& path, const StoredArrays& arrays, const StringNumbers& strings) {
  WriteArchive(path, arrays, strings);
}

}  // namespace collage
