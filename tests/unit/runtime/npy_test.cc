// npy_test.cc: arrays come back as they were written, also from and to NumPy itself; garbage is refused.
#include "runtime/npy.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <random>

#include "runtime/random_inputs.h"
#include "support/file.h"
#include "test_paths.h"
#include "unit/support/throws.h"

namespace collage {
namespace {

constexpr std::array kDtypes{"float16", "bfloat16", "float32", "float64", "int8",   "int16", "int32",
                             "int64",   "uint8",    "uint16",  "uint32",  "uint64", "bool"};

Tensor Example(const std::string& dtype, Shape shape = {2, 3, 5}) {
  const Tensor tensor = Tensor::Empty(std::move(shape), DataType::FromString(dtype));
  FillRandom(tensor, 11, 0, 100);
  return tensor;
}

/// Runs Python code in the environment that `setup` made; "" when it works, else what it printed.
std::string RunPython(const TemporaryFolder& folder, const std::string& code) {
  WriteFile(folder / "code.py", code);
  const std::string command = std::string(kTestPython) + " " + (folder / "code.py").string() + " " +
                              folder.path().string() + " > " + (folder / "log").string() + " 2>&1";
  return std::system(command.c_str()) == 0 ? "" : "failed: " + ReadFile(folder / "log");
}

bool HasPython() { return std::filesystem::exists(kTestPython); }

TEST(Npy, EveryDtypeComesBack) {
  const TemporaryFolder folder;
  for (const char* dtype : kDtypes) {
    for (const Shape& shape : {Shape{}, Shape{7}, Shape{2, 3, 5}, Shape{2, 0, 4}}) {
      const Tensor tensor = Example(dtype, shape);
      WriteArray(folder / "a.npy", tensor);
      EXPECT_TRUE(BitEqual(ReadArray(folder / "a.npy"), tensor)) << dtype << ToString(shape);
    }
  }
}

TEST(Npz, ArraysComeBackByName) {
  const TemporaryFolder folder;
  std::map<std::string, Tensor> arrays;
  for (const char* dtype : kDtypes) arrays[std::string("name/of ") + dtype] = Example(dtype);
  WriteNpz(folder / "a.npz", arrays);
  const std::map<std::string, Tensor> read = ReadNpz(folder / "a.npz");
  ASSERT_EQ(read.size(), arrays.size());
  for (const auto& [name, tensor] : arrays) EXPECT_TRUE(BitEqual(read.at(name), tensor)) << name;
  WriteNpz(folder / "empty.npz", {});
  EXPECT_TRUE(ReadNpz(folder / "empty.npz").empty());
}

TEST(Npz, StringsComeBackByTheirNumbers) {
  const TemporaryFolder folder;
  StringNumbers strings;
  const std::array<int64_t, 4> places{strings.Add(""), strings.Add("cat"), strings.Add("Käse"), 1};
  const Tensor numbers = Tensor::Of<int64_t>({2, 2}, kInt64, places);
  const Tensor none = Tensor::Empty({0, 3}, kInt64);
  WriteNpz(folder / "a.npz", {{"texts", {numbers, true}}, {"none", {none, true}}, {"x", {Example("float32"), false}}},
           strings);
  const StoredArrays read = ReadNpz(folder / "a.npz", strings);
  EXPECT_TRUE(read.at("texts").is_text && read.at("none").is_text && !read.at("x").is_text);
  EXPECT_TRUE(BitEqual(read.at("texts").tensor, numbers));
  EXPECT_EQ(read.at("none").tensor.shape(), (Shape{0, 3}));
  ExpectError([&] { ReadNpz(folder / "a.npz"); }, ErrorCategory::kInput,
              "an array of strings, where numbers are wanted");
  if (!HasPython()) return;
  EXPECT_EQ(RunPython(folder, R"(
import sys, numpy
texts = numpy.load(sys.argv[1] + "/a.npz")["texts"]
assert texts.tolist() == [["", "cat"], ["K\u00e4se", "cat"]], texts
numpy.save(sys.argv[1] + "/wide.npy", numpy.array(["\U0001f600 \u20ac", "b"]))
numpy.save(sys.argv[1] + "/bytes.npy", numpy.array([b"cat", b"x"]))
)"),
            "");
  const auto texts_of = [&](const char* file) {
    const StoredArray array = ReadArray(folder / file, strings);
    return std::vector<std::string>{strings.TextOf(array.tensor.data<int64_t>()[0]),
                                    strings.TextOf(array.tensor.data<int64_t>()[1])};
  };
  EXPECT_EQ(texts_of("wide.npy"), (std::vector<std::string>{"\xf0\x9f\x98\x80 \xe2\x82\xac", "b"}));
  EXPECT_EQ(texts_of("bytes.npy"), (std::vector<std::string>{"cat", "x"}));
}

TEST(Npz, NamesAreUtf8) {
  const TemporaryFolder folder;
  WriteNpz(folder / "a.npz", {{"größe.1", Example("float32")}});
  const std::string bytes = ReadFile(folder / "a.npz");
  // Bit 11 of the flags, in the local header and in the directory's entry: without it readers take code page 437.
  EXPECT_EQ(bytes[7] & 8, 8);
  const size_t entry = bytes.find(std::string("PK\x01\x02", 4));
  ASSERT_NE(entry, std::string::npos);
  EXPECT_EQ(bytes[entry + 9] & 8, 8);
  EXPECT_TRUE(ReadNpz(folder / "a.npz").contains("größe.1"));
}

TEST(Npz, NumPyReadsWhatWeWriteAndWeReadWhatNumPyWrites) {
  if (!HasPython()) GTEST_SKIP() << "no Python environment";
  const TemporaryFolder folder;
  std::map<std::string, Tensor> arrays;
  for (const char* dtype : kDtypes) arrays[dtype] = Example(dtype);
  WriteNpz(folder / "ours.npz", arrays);
  EXPECT_EQ(RunPython(folder, R"(
import sys, numpy as np, ml_dtypes
ours = np.load(sys.argv[1] + "/ours.npz")
arrays = {}
for name in ours.files:
    array = ours[name]
    if name == "bfloat16":
        array = array.view(ml_dtypes.bfloat16)
    assert array.dtype.name == name and array.shape == (2, 3, 5), (name, array.dtype)
    assert name != "float32" or (np.abs(array) <= 1).all()
    arrays[name] = array
np.savez(sys.argv[1] + "/stored.npz", **arrays)
np.savez_compressed(sys.argv[1] + "/deflated.npz", **arrays)
np.save(sys.argv[1] + "/fortran.npy", np.asfortranarray(arrays["float32"]))
np.save(sys.argv[1] + "/object.npy", np.array(["text"]))
with open(sys.argv[1] + "/version2.npy", "wb") as file:
    np.lib.format.write_array(file, arrays["int32"], version=(2, 0))
)"),
            "");
  for (const char* file : {"stored.npz", "deflated.npz"}) {
    const std::map<std::string, Tensor> read = ReadNpz(folder / file);
    ASSERT_EQ(read.size(), arrays.size());
    for (const auto& [name, tensor] : arrays) EXPECT_TRUE(BitEqual(read.at(name), tensor)) << file << " " << name;
  }
  EXPECT_TRUE(BitEqual(ReadArray(folder / "version2.npy"), arrays["int32"]));
  ExpectError([&] { ReadArray(folder / "fortran.npy"); }, ErrorCategory::kInput, "Fortran order");
  ExpectError([&] { ReadArray(folder / "object.npy"); }, ErrorCategory::kInput,
              "an array of strings, where numbers are wanted");
}

TEST(Npy, OnnxTensorsAreRead) {
  if (!HasPython()) GTEST_SKIP() << "no Python environment";
  const TemporaryFolder folder;
  EXPECT_EQ(RunPython(folder, R"(
import sys, numpy as np, onnx.numpy_helper
for name in ["float32", "float16", "int64", "bool", "uint16"]:
    array = np.arange(6).reshape(2, 3).astype(name)
    with open(f"{sys.argv[1]}/{name}.pb", "wb") as file:
        file.write(onnx.numpy_helper.from_array(array, "x").SerializeToString())
)"),
            "");
  for (const char* name : {"float32", "float16", "int64", "bool", "uint16"}) {
    const Tensor tensor = ReadArray(folder / (std::string(name) + ".pb"));
    EXPECT_EQ(tensor.dtype().ToString(), name);
    EXPECT_EQ(tensor.shape(), (Shape{2, 3}));
    EXPECT_EQ(tensor.At(5), std::string(name) == "bool" ? 1 : 5) << name;
  }
}

TEST(Npy, TruncatedFilesAreRefused) {
  const TemporaryFolder folder;
  WriteArray(folder / "a.npy", Example("int16"));
  WriteNpz(folder / "a.npz", {{"x", Example("int16")}, {"y", Example("bool")}});
  const std::string npy = ReadFile(folder / "a.npy");
  const std::string npz = ReadFile(folder / "a.npz");
  for (size_t length = 0; length < npy.size(); ++length) {
    WriteFile(folder / "cut.npy", npy.substr(0, length));
    ExpectError([&] { ReadArray(folder / "cut.npy"); }, ErrorCategory::kInput, "cut.npy");
  }
  for (size_t length = 0; length < npz.size(); ++length) {
    WriteFile(folder / "cut.npz", npz.substr(0, length));
    ExpectError([&] { ReadNpz(folder / "cut.npz"); }, ErrorCategory::kInput, "cut.npz");
  }
}

TEST(Npy, ImpossibleHeadersAreRefused) {
  const TemporaryFolder folder;
  const auto read = [&](const std::string& header) {
    std::string bytes("\x93NUMPY\x01\x00", 8);
    bytes += static_cast<char>(header.size());
    bytes += '\0';
    WriteFile(folder / "a.npy", bytes + header);
    ReadArray(folder / "a.npy");
  };
  ExpectError([&] { read("{'descr': '<f4', 'shape': (1099511627776, 1099511627776, 1099511627776, 0, 1), }x"); },
              ErrorCategory::kInput, "shape does not fit");
  ExpectError([&] { read("{'descr': '<f4', 'shape': (4294967296, 4294967296), }"); }, ErrorCategory::kInput,
              "shape does not fit");
  ExpectError([&] { read("{'descr': '<f4', 'shape': (99999999999999999999,), }"); }, ErrorCategory::kInput,
              "out of range");
  ExpectError([&] { read("{'descr': '<f4', }"); }, ErrorCategory::kInput, "no 'shape'");
  ExpectError([&] { read("{'shape': (1,), }"); }, ErrorCategory::kInput, "no 'descr'");
  ExpectError([&] { read("{'descr': '>f4', 'shape': (1,), }"); }, ErrorCategory::kInput, "'>f4' is not supported");
}

TEST(Npy, ManyStringsWithoutCharactersAreRefused) {
  const TemporaryFolder folder;
  StringNumbers strings;
  const auto read = [&](const std::string& header) {
    std::string bytes("\x93NUMPY\x01\x00", 8);
    WriteFile(folder / "a.npy", bytes + static_cast<char>(header.size()) + '\0' + header);
    return ReadArray(folder / "a.npy", strings);
  };
  EXPECT_EQ(read("{'descr': '<U0', 'shape': (3,), }").tensor.num_elements(), 3);
  ExpectError([&] { read("{'descr': '<U0', 'shape': (1099511627776,), }"); }, ErrorCategory::kInput,
              "shape does not fit");
}

TEST(Npz, EntriesThatOverlapAreRefused) {
  const TemporaryFolder folder;
  WriteNpz(folder / "a.npz", {{"x", Tensor::Zeros({1000}, kFloat32)}});
  const std::string bytes = ReadFile(folder / "a.npz");
  const size_t begin = bytes.find("PK\x01\x02"), end = bytes.find("PK\x05\x06");
  std::string tail = bytes.substr(end);
  tail[8] = tail[10] = 2;  // entries
  WriteFile(folder / "b.npz", bytes.substr(0, end) + bytes.substr(begin, end - begin) + tail);
  ExpectError([&] { ReadNpz(folder / "b.npz"); }, ErrorCategory::kInput, "its entries overlap");
}

TEST(Npy, AnEmptyTensorOfOnnxHasNoData) {
  const TemporaryFolder folder;
  WriteFile(folder / "a.pb", std::string("\x08\x00\x10\x01", 4));
  EXPECT_EQ(ReadArray(folder / "a.pb").shape(), Shape({0}));
  WriteFile(folder / "a.pb", std::string("\x08\x00\x08\xff\xff\xff\xff\xff\xff\x7f\x10\x01", 12));
  ExpectError([&] { ReadArray(folder / "a.pb"); }, ErrorCategory::kInput, "its shape is out of range");
}

TEST(Npy, DamagedFilesGiveErrorsOrArrays) {
  const TemporaryFolder folder;
  WriteArray(folder / "a.npy", Example("int16"));
  WriteNpz(folder / "a.npz", {{"x", Example("float32")}, {"y", Example("bool")}});
  const std::string npy = ReadFile(folder / "a.npy");
  const std::string npz = ReadFile(folder / "a.npz");
  std::mt19937 random(3);
  int refused = 0;
  for (int i = 0; i < 1500; ++i) {
    const bool is_npz = i % 2 == 1;
    std::string bytes = is_npz ? npz : npy;
    for (int flips = 1 + static_cast<int>(random() % 3); flips > 0; --flips) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    WriteFile(folder / "b", bytes);
    try {
      if (is_npz) {
        ReadNpz(folder / "b");
      } else {
        ReadArray(folder / "b");
      }
    } catch (const Error& error) {
      ++refused;
      ASSERT_EQ(error.category(), ErrorCategory::kInput) << error.Format();
    }
  }
  EXPECT_GT(refused, 400);
}

TEST(Npz, ChangedContentHasAWrongChecksum) {
  const TemporaryFolder folder;
  WriteNpz(folder / "a.npz", {{"x", Example("float32")}});
  std::string bytes = ReadFile(folder / "a.npz");
  bytes[30 + 5 + 128 + 10] =
      static_cast<char>(bytes[30 + 5 + 128 + 10] ^ 1);  // behind local header, name, array header
  WriteFile(folder / "a.npz", bytes);
  ExpectError([&] { ReadNpz(folder / "a.npz"); }, ErrorCategory::kInput, "'x.npy' has a wrong checksum");
}

}  // namespace
}  // namespace collage
