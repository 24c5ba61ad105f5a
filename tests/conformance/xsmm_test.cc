// xsmm_test.cc: products of small matrices by libxsmm's generated code.
#include <gtest/gtest.h>

#include "conformance/product_cases.h"

namespace collage {
namespace {

using conformance::BuiltinToolchain;
using conformance::Input;

const Toolchain& Xsmm() { return BuiltinToolchain("xsmm"); }

class XsmmTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!Xsmm().Probe().available) GTEST_SKIP() << Xsmm().Probe().reason;
  }
};

TEST_F(XsmmTest, ComputesSmallProducts) { conformance::ExpectProducts(Xsmm(), 128, 24); }

TEST_F(XsmmTest, DeclinesWithReasons) {
  conformance::ExpectProductRefusals(Xsmm());
  const Var a = Input("a", {4, 129}), b = Input("b", {5, 129});
  EXPECT_EQ(conformance::RefusalOf(Xsmm(), "xsmm.dense", MakeFunction({a, b}, MakeCall("nn.dense", {a, b}))),
            "is for matrices of at most 128 columns and a depth of 128, got 5 and 129");
}

}  // namespace
}  // namespace collage
