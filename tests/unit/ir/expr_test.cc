// expr_test.cc: how expressions and values end.
#include "collage/ir/expr.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "collage/ir/value.h"
#include "unit/ir/deep.h"

namespace collage {
namespace {

constexpr int kDepth = 2 * kDeep;

TEST(ExprTest, ANodeThatIsBothOperandsOfTheNextIsFreedWithoutRecursion) {
  Expr sum = MakeVar("x", TensorType(Shape{1}, kFloat32));
  std::weak_ptr<const ExprNode> first = sum;
  for (int i = 0; i < kDepth; ++i) sum = MakeCall("add", {sum, sum});
  sum.reset();
  EXPECT_TRUE(first.expired());
}

TEST(ExprTest, ExpressionsInStaticStorageEndAfterTheThreadDoes) {
  EXPECT_EXIT(
      {
        static const Function chain = DeepChain();
        std::exit(chain == nullptr ? 1 : 0);
      },
      testing::ExitedWithCode(0), "");
}

TEST(ValueTest, ATupleOfOneValueTwiceIsFreedWithoutRecursion) {
  Value value = Value::Tuple({});
  for (int i = 0; i < kDepth; ++i) value = Value::Tuple({value, value});
  value = Value();
  EXPECT_FALSE(value.defined());
}

TEST(ValueTest, ValuesInStaticStorageEndAfterTheThreadDoes) {
  EXPECT_EXIT(
      {
        static const Value kept = Value::Tuple({Value::Tuple({Value::Tuple({})})});
        std::exit(kept.defined() ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace collage
