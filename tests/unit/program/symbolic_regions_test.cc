// The largest sub-graphs that a toolchain for symbolic sizes takes, and what is left between them.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "collage/ir/text.h"
#include "collage/ir/visitor.h"
#include "collage/transform/passes.h"
#include "program/regions.h"
#include "target/annotations.h"

namespace collage {
namespace {

/// Operators of each part, "acme: tanh exp" or "native: add", sorted.
std::vector<std::string> PartsOf(const std::string& text, const std::set<std::string>& taken, bool with_sizes = false) {
  DynamicShapes dynamic;
  const std::set<std::string> native{"add", "exp", "nn.relu", "nn.softmax", "split", "sqrt", "tanh"};
  dynamic.takes = [&](const CallNode& call) { return native.contains(call.op()->name); };
  dynamic.symbolic = {"acme", [&](const CallNode& call) { return taken.contains(call.op()->name); }};
  if (with_sizes) dynamic.symbolic.takes_static = [](const CallNode&) { return true; };
  const IRModule module = PrepareForPartitioning(ParseModule("#[version = \"0.0.5\"]\n" + text, "t.relay"));
  std::vector<std::string> parts;
  PostOrder(FindRegions(module, /*few_elements=*/16, dynamic).module.main(), [&](const Expr& expr) {
    const FunctionNode* inner = As<FunctionNode>(expr);
    if (inner == nullptr || !IsDynamicFusion(*inner)) return;
    std::string part = inner->attrs().StringOr(kAttrCompiler, "native") + ":";
    PostOrder(inner->body(), [&](const Expr& within) {
      const CallNode* call = As<CallNode>(within);
      if (call != nullptr && call->op() != nullptr) part += " " + call->op()->name;
    });
    parts.push_back(part);
  });
  std::ranges::sort(parts);
  return parts;
}

using Parts = std::vector<std::string>;

TEST(SymbolicRegions, AreAsLargeAsTheyCanBe) {
  const char* const text = "def @main(%x: Tensor[(?, 4), float32]) { nn.softmax(tanh(nn.relu(exp(sqrt(%x))))) }";
  EXPECT_EQ(PartsOf(text, {"exp", "nn.relu", "tanh"}),
            (Parts{"acme: exp nn.relu tanh", "native: nn.softmax", "native: sqrt"}));
  EXPECT_EQ(PartsOf(text, {"sqrt", "exp", "tanh", "nn.softmax"}),
            (Parts{"acme: sqrt exp", "acme: tanh nn.softmax", "native: nn.relu"}));
}

TEST(SymbolicRegions, ReshapesAloneAreNone) {
  EXPECT_EQ(PartsOf("def @main(%x: Tensor[(?, 4), float32]) { tanh(reshape(%x, newshape=[-1])) }", {"reshape"}),
            (Parts{"native: tanh"}));
}

// The fields of a split would be made with the sum, which waits for one softmax while the other waits for it.
TEST(SymbolicRegions, FusionsThatWouldWaitForEachOtherAreTakenApart) {
  const Parts parts = PartsOf(R"(def @main(%p: Tensor[(?, 8), float32], %q: Tensor[(?, 4), float32]) {
    let %s = split(%p, indices_or_sections=2, axis=1);
    let %r = add(%s.0, exp(nn.softmax(%q)));
    (%r, nn.softmax(%s.1)) })",
                              {"nn.softmax"});
  EXPECT_EQ(std::ranges::count(parts, "acme: nn.softmax nn.softmax"), 1) << ::testing::PrintToString(parts);
}

TEST(SymbolicRegions, SizesAreComputedInsideIfTheyMay) {
  const char* const program = R"(def @main(%x: Tensor[(?, ?, 8), float32]) {
    let %s = shape_of(%x, dtype="int64");
    let %y = tanh(reshape(%x, newshape=[-3, 8]));
    exp(dyn.reshape(%y, %s)) })";
  const std::set<std::string> taken{"shape_of", "tanh", "reshape", "dyn.reshape", "exp"};
  EXPECT_EQ(PartsOf(program, taken, /*with_sizes=*/true).size(), 1U);
  EXPECT_EQ(PartsOf(program, taken).size(), 2U);
}

}  // namespace
}  // namespace collage
