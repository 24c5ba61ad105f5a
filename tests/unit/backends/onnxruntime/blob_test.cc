// blob_test.cc: what is written is read again, and what is no blob is refused.
#include "backends/onnxruntime/blob.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "collage/support/error.h"

namespace collage::onnxruntime {
namespace {

const Description kDescription{"/wheel/libonnxruntime.so.9.8.7",
                               "9.8.7",
                               {{"input_0", {2, 3}, 1, 24}, {"input_1", {-1, 3}, 7, 8}},
                               {{"output_0", {}, 9, 1}}};

std::string ErrorOf(const std::vector<std::byte>& blob) {
  try {
    ReadBlob(blob);
  } catch (const Error& error) {
    EXPECT_EQ(error.category(), ErrorCategory::kCorrupt);
    return error.message();
  }
  return "no error";
}

TEST(OnnxRuntimeBlob, IsReadAsItWasWritten) {
  const std::string model("a\0model", 7);
  const std::vector<std::byte> blob = ToBlob(kDescription, model);
  const BlobParts parts = ReadBlob(blob);
  EXPECT_EQ(parts.description, kDescription);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(parts.model.data()), parts.model.size()), model);
  EXPECT_TRUE(parts.description.inputs[1].is_symbolic());
  EXPECT_FALSE(parts.description.inputs[0].is_symbolic());
  EXPECT_FALSE(parts.description.outputs[0].is_symbolic());
}

TEST(OnnxRuntimeBlob, EqualKernelsAreEqualBytes) {
  EXPECT_EQ(ToBlob(kDescription, "model"), ToBlob(kDescription, "model"));
}

TEST(OnnxRuntimeBlob, DamagedOnesAreRefused) {
  const std::vector<std::byte> blob = ToBlob(kDescription, "");
  EXPECT_EQ(ErrorOf({}), "no kernel of ONNX Runtime: too short");
  EXPECT_EQ(ErrorOf({blob.begin(), blob.begin() + 7}), "no kernel of ONNX Runtime: too short");
  EXPECT_EQ(ErrorOf({blob.begin(), blob.end() - 1}), "no kernel of ONNX Runtime: its description is cut off");
  std::vector<std::byte> other = blob;
  other[8] = std::byte{'X'};
  EXPECT_NE(ErrorOf(other).find("no kernel of ONNX Runtime: "), std::string::npos);
  const std::vector<std::byte> ports = ToBlob({"", "", {{"x", {1}, 1, 4}}, {}}, "");
  other = ports;
  const std::string text(reinterpret_cast<const char*>(other.data()), other.size());
  other[text.find("inputs")] = std::byte{'o'};  // "onputs"
  EXPECT_NE(ErrorOf(other).find("inputs"), std::string::npos);
}

}  // namespace
}  // namespace collage::onnxruntime
