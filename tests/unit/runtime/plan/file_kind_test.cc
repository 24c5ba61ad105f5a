// file_kind_test.cc: files are known by their first bytes.
#include "runtime/plan/file_kind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "support/file.h"

namespace collage {
namespace {

using namespace std::string_view_literals;

std::string NameOf(std::string_view begin) {
  const std::optional<FileKind> kind = KindOf(std::as_bytes(std::span(begin.data(), begin.size())));
  return kind ? kind->name : "";
}

TEST(FileKind, MagicNumbersAreKnown) {
  EXPECT_EQ(NameOf("CLGE\2\0\0\0"sv), "an executable of Collage");
  EXPECT_EQ(NameOf("\x08\x08\x12\x07pytorch"sv), "an ONNX model");
  EXPECT_EQ(NameOf("\x08\x0a:\x80"sv), "an ONNX model");
  EXPECT_EQ(NameOf("\x1c\0\0\0TFL3"sv), "a TensorFlow Lite model");
  EXPECT_EQ(NameOf("\x89HDF\r\n"sv), "an HDF5 file, as Keras writes them");
  EXPECT_EQ(NameOf("\x80\x02}q"sv), "a Python pickle, as PyTorch writes them");
  EXPECT_EQ(NameOf("GGUF\3"sv), "a GGUF model");
  EXPECT_EQ(NameOf("\x10\0\0\0\0\0\0\0{\"a\":"sv), "weights without a model (safetensors)");
  EXPECT_EQ(NameOf("#[version = \"0.0.5\"]\ndef @main() { 1 }"sv), "Relay text");
}

TEST(FileKind, ArchivesAreToldApartByTheirFirstEntry) {
  const auto archive = [](const std::string& name) { return "PK\x03\x04" + std::string(26, '\0') + name; };
  EXPECT_EQ(NameOf(archive("model/data.pkl")), "a PyTorch file");
  EXPECT_EQ(NameOf(archive("in.x.npy")), "NumPy arrays (.npz)");
  EXPECT_EQ(NameOf(archive("metadata.json")), "a Keras model");
  EXPECT_EQ(NameOf(archive("x")), "a zip archive");
}

TEST(FileKind, OthersAreNot) {
  EXPECT_EQ(NameOf(""), "");
  EXPECT_EQ(NameOf("x"), "");
  EXPECT_EQ(NameOf(std::string(1000, 'x')), "");
  EXPECT_EQ(NameOf(std::string(100, '\0')), "");
}

TEST(RelayTextFile, IsKnownBySuffixOrText) {
  const TemporaryFolder folder;
  const auto write = [&](const char* name, const std::string& text) {
    WriteFile(folder.path() / name, text);
    return IsRelayText(folder.path() / name);
  };
  EXPECT_TRUE(write("a.relay", ""));
  EXPECT_FALSE(write("a.onnx", "def @main() { 1 }"));
  EXPECT_TRUE(write("program", "// a comment\ndef @main() { 1 }"));
  EXPECT_FALSE(write("other", "some text"));
  EXPECT_FALSE(IsRelayText(folder.path() / "absent"));
}

}  // namespace
}  // namespace collage
