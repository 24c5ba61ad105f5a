// data_type_test.cc: names and sizes of element types.
#include "collage/runtime/data_type.h"

#include <gtest/gtest.h>

#include "collage/runtime/tensor.h"
#include "unit/support/throws.h"

namespace collage {
namespace {

TEST(DataType, NamesAndSizes) {
  const std::pair<const char*, size_t> types[] = {
      {"float16", 2}, {"bfloat16", 2}, {"float32", 4}, {"float64", 8}, {"bool", 1},   {"int8", 1},  {"int16", 2},
      {"int32", 4},   {"int64", 8},    {"uint8", 1},   {"uint16", 2},  {"uint32", 4}, {"uint64", 8}};
  for (const auto& [name, bytes] : types) {
    ASSERT_TRUE(DataType::IsName(name)) << name;
    const DataType dtype = DataType::FromString(name);
    EXPECT_EQ(dtype.ToString(), name);
    EXPECT_EQ(dtype.size_bytes(), bytes) << name;
    EXPECT_EQ(dtype.is_floating() + dtype.is_integer() + dtype.is_bool(), 1) << name;
  }
}

TEST(DataType, VectorsHaveLanes) {
  const DataType dtype = DataType::FromString("float16x4");
  EXPECT_EQ(dtype, (DataType{DataType::Code::kFloat, 16, 4}));
  EXPECT_NE(dtype, kFloat16);
  EXPECT_EQ(dtype.ToString(), "float16x4");
  EXPECT_EQ(dtype.size_bytes(), 8u);
  EXPECT_TRUE(dtype.is_vector());
  EXPECT_EQ(DataType::FromString("int8x64").size_bytes(), 64u);
  const Tensor vectors = Tensor::Zeros({3}, dtype);
  EXPECT_EQ(vectors.size_bytes(), 24u);
  ExpectError([&] { vectors.At(0); }, ErrorCategory::kUnsupported, "elements of several lanes: float16x4");
}

TEST(DataType, OtherNamesAreRefused) {
  for (const char* name : {"float32x", "float32x0", "float32x1", "float32x04", "float32x70000", "x4", "float32x4x4"}) {
    EXPECT_FALSE(DataType::IsName(name)) << name;
  }
  EXPECT_FALSE(DataType::IsName("float8"));
  EXPECT_FALSE(DataType::IsName(""));
  ExpectError([] { DataType::FromString("complex64"); }, ErrorCategory::kInput, "unknown dtype 'complex64'");
}

}  // namespace
}  // namespace collage
