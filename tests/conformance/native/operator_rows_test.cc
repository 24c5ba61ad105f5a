// The rows of native operators name operators of the op table, each once.
#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <string>

#include "collage/ir/op.h"

namespace collage {
namespace {

TEST(NativeOperatorRowsTest, NameOperatorsOnce) {
  std::map<std::string, int> rows;
  const auto add = [&](const std::string& names) {
    std::istringstream words(names);
    for (std::string name; words >> name;) ++rows[name];
  };
#define NATIVE_OPERATOR(names, ...) add(names);
#include "backends/native/operator_rows.inc"
#undef NATIVE_OPERATOR
  EXPECT_GT(rows.size(), 150u);
  for (const auto& [name, count] : rows) {
    EXPECT_EQ(count, 1) << name;
    EXPECT_NE(FindOp(name), nullptr) << name;
  }
}

}  // namespace
}  // namespace collage
