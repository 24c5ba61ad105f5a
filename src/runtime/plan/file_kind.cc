// file_kind.cc: files that people take for models or executables, by their magic numbers.
#include "runtime/plan/file_kind.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

namespace collage {
namespace {

using namespace std::string_view_literals;

constexpr const char* kExport = "export it: torch.onnx.export(model, inputs, \"model.onnx\")";
constexpr const char* kConvert = "convert it to ONNX, by tf2onnx for example";

struct Magic {
  size_t at;
  std::string_view bytes;
  FileKind kind;
};

constexpr Magic kMagics[] = {
    {0, "CLGE"sv, {"an executable of Collage", "it is compiled already: collage run FILE"}},
    {0, "CLGP"sv, {"an executable of Collage", "it is compiled already: collage run FILE"}},
    {0, "\x80\x02"sv, {"a Python pickle, as PyTorch writes them", kExport}},
    {4, "TFL3"sv, {"a TensorFlow Lite model", kConvert}},
    {0, "\x89HDF"sv, {"an HDF5 file, as Keras writes them", kConvert}},
    {0, "\x93NUMPY"sv, {"a NumPy array", "give the model"}},
    {0, "GGUF"sv, {"a GGUF model", "export the original to ONNX, by optimum for example"}},
    {0, "SQLite format 3"sv, {"a tuning database, or another one of SQLite", "collage db --database FILE"}},
    {0, "<?xml"sv, {"XML, as models of some engines are", "give the ONNX model that it was converted from"}},
    {0, "\x1f\x8b"sv, {"a compressed file", "unpack it: gunzip FILE"}},
    {0,
     "\x7f"
     "ELF"sv,
     {"machine code (ELF)", "give the executable, or the ONNX model"}},
};

/// A zip archive by the name of its first entry.
FileKind ArchiveKind(std::string_view text) {
  constexpr size_t kName = 30, kMost = 200;  // APPNOTE.TXT of PKWARE, 4.3.7
  const std::string_view name = text.substr(std::min(kName, text.size()), kMost);
  if (name.find("data.pkl") != std::string_view::npos || name.find(".format_version") != std::string_view::npos) {
    return {"a PyTorch file", kExport};
  }
  if (name.find(".npy") != std::string_view::npos) return {"NumPy arrays (.npz)", "give it to --inputs"};
  if (name.find("metadata.json") != std::string_view::npos) return {"a Keras model", kConvert};
  return {"a zip archive", "unpack it"};
}

/// Protobuf of onnx.ModelProto: field 1, the version of the format, then a known field, with a tag of one byte.
bool LooksLikeOnnx(std::string_view text) {
  constexpr char kVersion = 0x08, kMostVersion = 0x20;
  constexpr std::string_view kNext = "\x12\x1a\x22\x28\x32\x3a\x42\x72";  // producer … metadata_props
  return text.size() > 3 && text[0] == kVersion && text[1] > 0 && text[1] < kMostVersion &&
         kNext.find(text[2]) != std::string_view::npos;
}

/// Eight bytes of a size, then JSON.
bool LooksLikeSafetensors(std::string_view text) {
  return text.size() > 10 && text.substr(4, 4) == "\0\0\0\0"sv && text.substr(8, 2) == "{\"";
}

bool HoldsRelay(std::string_view text) {
  return !text.empty() && text.find('\0') == std::string_view::npos &&
         (text.find("def @") != std::string_view::npos || text.find("#[version") != std::string_view::npos);
}

}  // namespace

std::optional<FileKind> KindOf(std::span<const std::byte> begin) {
  constexpr size_t kEnough = size_t{1} << 16;  // of a text, whose comments may come first
  const std::string_view text(reinterpret_cast<const char*>(begin.data()), std::min(begin.size(), kEnough));
  for (const Magic& magic : kMagics) {
    if (text.size() > magic.at && text.substr(magic.at).starts_with(magic.bytes)) return magic.kind;
  }
  if (text.starts_with("PK\x03\x04")) return ArchiveKind(text);
  if (LooksLikeOnnx(text)) return FileKind{"an ONNX model", "compile it first: collage compile FILE -o FILE.clg"};
  if (LooksLikeSafetensors(text)) return FileKind{"weights without a model (safetensors)", kExport};
  if (HoldsRelay(text)) return FileKind{"Relay text", "name it FILE.relay, or compile it: collage compile FILE"};
  return std::nullopt;
}

bool IsRelayText(const std::filesystem::path& file) {
  const std::string suffix = file.extension();
  if (suffix == ".relay" || suffix == ".clg" || suffix == ".onnx") return suffix == ".relay";
  std::ifstream stream(file, std::ios::binary);
  std::string begin(size_t{1} << 16, '\0');
  stream.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  return HoldsRelay(std::string_view(begin.data(), static_cast<size_t>(stream.gcount())));
}

}  // namespace collage
