// tensor_test.cc: allocation, access, conversion.
#include "collage/runtime/tensor.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "unit/support/throws.h"

namespace collage {
namespace {

TEST(Tensor, EmptyHandleIsUndefined) {
  EXPECT_FALSE(Tensor().defined());
  EXPECT_TRUE(Tensor::Empty({0}, kFloat32).defined());
}

TEST(Tensor, MemoryIsAligned) {
  for (int64_t size : {0, 1, 17, 1000}) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(Tensor::Empty({size}, kInt8).raw()) % 64, 0u);
  }
}

TEST(Tensor, CopiesShareClonesDoNot) {
  const std::array<int32_t, 3> values{1, 2, 3};
  const Tensor tensor = Tensor::Of<int32_t>({3}, kInt32, values);
  const Tensor shared = tensor;
  const Tensor clone = tensor.Clone();
  tensor.Set(0, 9);
  EXPECT_EQ(shared.At(0), 9);
  EXPECT_EQ(clone.At(0), 1);
  EXPECT_EQ(tensor.Reshaped({1, 3}).At(0), 9);
  EXPECT_EQ(ToString(tensor.Reshaped({1, 3}).shape()), "(1, 3)");
  EXPECT_EQ(ToString(Shape{}), "()");
}

TEST(Tensor, EveryDtypeStoresAndReadsValues) {
  for (const char* name : {"float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8",
                           "uint16", "uint32", "uint64"}) {
    const Tensor tensor = Tensor::Zeros({2}, DataType::FromString(name));
    tensor.Set(1, 97);
    EXPECT_EQ(tensor.At(0), 0) << name;
    EXPECT_EQ(tensor.At(1), 97) << name;
  }
  const Tensor flag = Tensor::Zeros({1}, kBool);
  flag.Set(0, 97);
  EXPECT_EQ(flag.At(0), 1);
}

TEST(Tensor, SetSaturatesIntegers) {
  const Tensor tensor = Tensor::Zeros({1}, kInt8);
  for (const auto& [given, wanted] :
       {std::pair(300.0, 127.0), {-300.0, -128.0}, {2.9, 2.0}, {-2.9, -2.0}, {NAN, 0.0}}) {
    tensor.Set(0, given);
    EXPECT_EQ(tensor.At(0), wanted) << given;
  }
}

TEST(Tensor, CastConvertsElements) {
  const std::array<float, 4> values{-1.5f, 0.0f, 2.5f, 300.0f};
  const Tensor tensor = Tensor::Of<float>({2, 2}, kFloat32, values);
  EXPECT_EQ(tensor.Cast(kInt32).ToInts(), (std::vector<int64_t>{-1, 0, 2, 300}));
  EXPECT_EQ(tensor.Cast(kBool).ToInts(), (std::vector<int64_t>{1, 0, 1, 1}));
  EXPECT_EQ(tensor.Cast(kFloat16).Cast(kFloat32).At(3), 300.0);
  EXPECT_EQ(tensor.Cast(kFloat32).raw(), tensor.raw());
}

TEST(Tensor, CastKeepsLargeIntegers) {
  const std::array<int64_t, 2> values{(int64_t{1} << 62) + 1, -1};
  const Tensor tensor = Tensor::Of<int64_t>({2}, kInt64, values);
  EXPECT_EQ(tensor.Cast(DataType::UInt(64)).data<uint64_t>()[0], (uint64_t{1} << 62) + 1);
  EXPECT_EQ(tensor.ToInts()[0], values[0]);
}

TEST(Tensor, MistakesAreCaught) {
  const std::array<float, 2> values{1, 2};
  ExpectError([&] { Tensor::Of<float>({3}, kFloat32, values); }, ErrorCategory::kInternal, "2 values for (3)");
  ExpectError([&] { Tensor::Of<float>({2}, kFloat64, values); }, ErrorCategory::kInternal, "not of dtype float64");
  ExpectError([&] { Tensor::Zeros({2}, kInt8).Reshaped({3}); }, ErrorCategory::kInternal, "cannot view (2) as (3)");
  ExpectError([&] { Tensor::Zeros({2}, kFloat32).ToInts(); }, ErrorCategory::kInput, "expected integers");
}

TEST(Tensor, CheckedBytesRefusesImpossibleShapes) {
  constexpr int64_t kHuge = int64_t{1} << 40;
  EXPECT_EQ(CheckedBytes(Shape{2, 3}, kFloat32), 24u);
  EXPECT_EQ(CheckedBytes(Shape{}, kInt8), 1u);
  EXPECT_EQ(CheckedBytes(Shape{0, kHuge, kHuge}, kFloat32), 0u);
  EXPECT_EQ(CheckedBytes(Shape{-1, -1}, kFloat32), std::nullopt);
  EXPECT_EQ(CheckedBytes(Shape{kHuge, kHuge, 0}, kFloat32), std::nullopt);
}

TEST(Tensor, BitEqualComparesTypeAndBytes) {
  const Tensor zeros = Tensor::Zeros({2}, kFloat32);
  EXPECT_TRUE(BitEqual(zeros, Tensor::Zeros({2}, kFloat32)));
  EXPECT_FALSE(BitEqual(zeros, Tensor::Zeros({2}, kInt32)));
  EXPECT_FALSE(BitEqual(zeros, Tensor::Zeros({1, 2}, kFloat32)));
  const Tensor negative = Tensor::Zeros({2}, kFloat32);
  negative.data<float>()[1] = -0.0f;
  EXPECT_FALSE(BitEqual(zeros, negative));
  EXPECT_TRUE(BitEqual(Tensor(), Tensor()));
  EXPECT_FALSE(BitEqual(Tensor(), Tensor::Zeros({}, kFloat32)));
}

}  // namespace
}  // namespace collage
