// error_test.cc: how errors read.
#include "collage/support/error.h"

#include <gtest/gtest.h>

#include "collage/support/result.h"
#include "unit/support/throws.h"

namespace collage {
namespace {

TEST(Error, FormatsPlaceMessageAndHint) {
  const Error error(ErrorCategory::kInput, "unknown operator 'Foo'", "model.onnx", "update Collage");
  EXPECT_EQ(error.Format(), "model.onnx: error: unknown operator 'Foo'\nhint: update Collage");
  EXPECT_STREQ(error.what(), "model.onnx: unknown operator 'Foo'");
  EXPECT_EQ(Error(ErrorCategory::kResource, "disk full").Format(), "error: disk full");
  EXPECT_EQ(Error(ErrorCategory::kInternal, "oops").Format(), "internal error: oops");
}

TEST(Error, CategoriesHaveNamesAndExitCodes) {
  EXPECT_EQ(ExitCode(ErrorCategory::kInput), 2);
  EXPECT_EQ(ExitCode(ErrorCategory::kUnsupported), 3);
  EXPECT_EQ(ExitCode(ErrorCategory::kUnavailable), 4);
  EXPECT_EQ(ExitCode(ErrorCategory::kCorrupt), 5);
  EXPECT_EQ(ExitCode(ErrorCategory::kResource), 6);
  EXPECT_EQ(ExitCode(ErrorCategory::kInternal), 70);
  EXPECT_EQ(ToString(ErrorCategory::kCorrupt), "corrupt");
}

TEST(Error, FailedCheckSaysWhatAndWhere) {
  const int answer = 41;
  ExpectError([&] { COLLAGE_CHECK(answer == 42) << "got " << answer; }, ErrorCategory::kInternal,
              "check failed: answer == 42: got 41");
  COLLAGE_CHECK(answer == 41) << "not reached";
}

TEST(Result, HoldsAValueOrAReason) {
  const Result<int> yes = 3;
  EXPECT_TRUE(yes.ok());
  EXPECT_EQ(*yes, 3);
  const Result<int> no = Reason{"too wide", "native"};
  EXPECT_FALSE(no.ok());
  EXPECT_EQ(no.reason().text, "too wide");
  ExpectError([&] { static_cast<void>(no.value()); }, ErrorCategory::kInternal, "value asked of a refusal: too wide");
  EXPECT_TRUE(Result<void>().ok());
  EXPECT_EQ(Result<void>(Reason{"no", ""}).reason().text, "no");
}

}  // namespace
}  // namespace collage
