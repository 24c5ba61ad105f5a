#include "viewers/onnx_outline.h"

#include <gtest/gtest.h>

#include "collage/frontend/onnx.h"
#include "collage/frontend/onnx_export.h"
#include "collage/ir/text.h"
#include "support/file.h"
#include "unit/support/throws.h"

namespace collage {
namespace {

class OnnxOutlineTest : public testing::Test {
 protected:
  OnnxOutlineTest() : model_(folder_ / "m.onnx") {
    WriteOnnx(ParseModule("def @main(%x: Tensor[(2, 4), float32]) { nn.softmax(exp(%x)) }", "m.relay"), model_);
  }
  TemporaryFolder folder_;
  std::filesystem::path model_;
};

TEST_F(OnnxOutlineTest, HasNodesAndTheTensorsBetweenThem) {
  const OnnxOutline outline = ReadOutline(model_);
  ASSERT_EQ(outline.nodes.size(), 3u) << "the export gives the result a name by an Identity";
  EXPECT_EQ(outline.nodes[0].op_type, "Exp");
  EXPECT_EQ(outline.nodes[0].inputs, outline.inputs);
  EXPECT_EQ(outline.nodes[1].inputs, outline.nodes[0].outputs);
  EXPECT_EQ(outline.nodes[2].outputs, outline.outputs);
  EXPECT_NE(outline.nodes[0].name, outline.nodes[1].name);
}

TEST_F(OnnxOutlineTest, MetadataGoToNodesByName) {
  const std::string node = ReadOutline(model_).nodes[1].name;
  const std::filesystem::path copy = folder_ / "copy.onnx";
  EXPECT_EQ(WriteWithMetadata(model_, copy, {{"nobody", {{"k", "v"}}}}), 0u);
  EXPECT_FALSE(std::filesystem::exists(copy)) << "nothing to say";
  EXPECT_EQ(WriteWithMetadata(model_, copy, {{node, {{"collage.toolchain", "native"}}}, {"nobody", {}}}), 1u);
  EXPECT_NE(ReadFile(copy).find("collage.toolchain"), std::string::npos);
  EXPECT_EQ(ReadOutline(copy).nodes.size(), 3u);
  EXPECT_NO_THROW(ImportOnnx(copy, {})) << "it is the model that it was";
}

TEST_F(OnnxOutlineTest, WhatIsNoModelIsRefused) {
  WriteFile(folder_ / "no.onnx", "no model");
  ExpectError([&] { ReadOutline(folder_ / "no.onnx"); }, ErrorCategory::kInput, "not an ONNX model");
}

}  // namespace
}  // namespace collage
