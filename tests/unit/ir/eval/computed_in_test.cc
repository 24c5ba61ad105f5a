// computed_in_test.cc: which results went through which floats.
#include "ir/eval/computed_in.h"

#include <gtest/gtest.h>

#include "collage/ir/text.h"

namespace collage {
namespace {

using Narrowest = std::vector<std::optional<DataType>>;

Narrowest Of(const std::string& text) { return ComputedIn(ParseModule(text).main()); }

TEST(ComputedInTest, ValuesKeepTheNarrowestTypeThatTheyWereRoundedTo) {
  EXPECT_EQ(Of("def @main(%x: Tensor[(8), float32]) { exp(%x) }"), Narrowest{kFloat32});
  EXPECT_EQ(Of(R"(def @main(%x: Tensor[(8), float32]) {
                    cast(exp(cast(%x, dtype="float16")), dtype="float32")
                  })"),
            Narrowest{kFloat16});
  EXPECT_EQ(Of(R"(def @main(%x: Tensor[(8), float32]) { cast(cast(%x, dtype="bfloat16"), dtype="float32") })"),
            Narrowest{kBFloat16});
  EXPECT_EQ(
      Of(R"(def @main(%x: Tensor[(8), float64]) { sqrt(cast(exp(cast(%x, dtype="float32")), dtype="float64")) })"),
      Narrowest{kFloat32});
}

TEST(ComputedInTest, EachResultGoesByItself) {
  EXPECT_EQ(Of(R"(def @main(%x: Tensor[(8), float32]) {
                    (exp(%x), cast(exp(cast(%x, dtype="float16")), dtype="float32"), transpose(%x))
                  })"),
            (Narrowest{kFloat32, kFloat16, std::nullopt}));
}

TEST(ComputedInTest, ParametersAndConstantsAreExact) {
  EXPECT_EQ(Of(R"(def @main(%x: Tensor[(8), float16]) { cast(transpose(%x), dtype="float32") })"),
            Narrowest{std::nullopt});
  EXPECT_EQ(Of(R"(def @main(%x: Tensor[(8), float32]) {
                    add(%x, cast(exp(cast(1f, dtype="float16")), dtype="float32"))
                  })"),
            Narrowest{kFloat32});
}

TEST(ComputedInTest, CallsAndLetsAreFollowed) {
  EXPECT_EQ(Of(R"(def @main(%x: Tensor[(8), float32]) {
                    let %y = fn (%z: Tensor[(8), float32], Primitive=1) {
                      cast(exp(cast(%z, dtype="float16")), dtype="float32")
                    }(%x);
                    (%y, exp(%x))
                  })"),
            (Narrowest{kFloat16, kFloat32}));
}

}  // namespace
}  // namespace collage
