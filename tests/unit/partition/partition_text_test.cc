// partition_text_test.cc: given nodes made into a partition of toolchain "foo", as Relay text before and behind.
#include <gtest/gtest.h>

#include <map>

#include "collage/ir/structural.h"
#include "collage/ir/text.h"
#include "partition/rewrite.h"
#include "unit/partition/graphs.h"

namespace collage {
namespace {

using namespace testing_graphs;

Function Parse(const std::string& params, const std::string& body) {
  return ParseModule("def @main(" + params + ") {\n" + body + "\n}\n").main();
}

/// `function` with nodes `inside` as one partition in which those with a label are Composites; itself when that is not
/// valid.
Function Partition(const Function& function, const SubGraphConfig& config, const std::vector<int>& inside,
                   const std::map<int, std::string>& labels = {}) {
  static const AnyToolchain toolchain("foo");
  const DataflowGraph graph(function, Boundaries::kExact);
  std::map<std::string, std::vector<int>> by_label;
  for (int index : inside) {
    const auto label = labels.find(index);
    by_label[label == labels.end() ? "" : label->second].push_back(index);
  }
  std::optional<SubGraph> whole;
  for (const auto& [label, members] : by_label) {
    SubGraph part(graph, members);
    if (!label.empty()) part = part.Wrapped({{"Composite", label}});
    whole = whole ? DisjointUnion(graph, *whole, part) : part;
  }
  if (!whole->CheckValid(graph, config).ok()) return function;
  const CandidatePartition candidate{"p", whole->Wrapped({{"Primitive", 1}, {"Compiler", "foo"}}), &toolchain};
  return RewriteNested(graph, {candidate}).value();
}

const std::string kTensor = "Tensor[(2), float32]";
const std::string kFour =
    "%a: Tensor[(2), float32], %b: Tensor[(2), float32], %c: Tensor[(2), float32], %d: Tensor[(2), float32]";
const std::string kTwo = "%a: Tensor[(2), float32], %b: Tensor[(2), float32]";
const std::string kImages = "%a: Tensor[(5, 3, 32, 32), float32], %b: Tensor[(2, 3, 5, 5), float32]";
const std::string kOut = "Tensor[(5, 2, 28, 28), float32]";
const std::string kFoo = "Primitive=1, Compiler=\"foo\"";
const std::string kWeights = "%p: Tensor[(5, 3, 32, 32), float32], %q: Tensor[(2, 3, 5, 5), float32]";

void ExpectEqual(const Function& found, const Function& expected) {
  EXPECT_TRUE(StructuralEqual(found, expected)) << PrintExpr(found) << "\nwanted\n" << PrintExpr(expected);
}

// a b c d 0..3, operators 4 and 5, adds 6 and 7
const char* kTwoAdds = "%0 = add(%a, %b); %1 = add(%c, %d); subtract(%0, %1)";

TEST(PartitionTextTest, OneOperator) {
  ExpectEqual(Partition(Parse(kFour, kTwoAdds), {.max_exits = 1}, {7}), Parse(kFour, R"(
    %0 = add(%a, %b);
    %2 = fn (%p: Tensor[(2), float32], %q: Tensor[(2), float32], Primitive=1, Compiler="foo") { add(%p, %q) };
    %1 = %2(%c, %d);
    subtract(%0, %1))"));
}

TEST(PartitionTextTest, TwoResultsAreATuple) {
  const Function function = Parse(kFour, kTwoAdds);
  ExpectEqual(Partition(function, {.max_exits = 1}, {6, 7}), function);
  ExpectEqual(Partition(function, {.max_exits = 2}, {6, 7}), Parse(kFour, R"(
    %2 = fn (%w: Tensor[(2), float32], %x: Tensor[(2), float32], %y: Tensor[(2), float32], %z: Tensor[(2), float32],
             Primitive=1, Compiler="foo") {
      %0 = add(%y, %z); %1 = add(%w, %x); (%0, %1)
    };
    %3 = %2(%c, %d, %a, %b);
    subtract(%3.0, %3.1))"));
}

TEST(PartitionTextTest, ConvolutionAddRelu) {
  const std::string params = kImages + ", %c: " + kOut + ", %d: " + kOut;
  // operators 4 to 7, calls 8 to 11
  const Function function =
      Parse(params, "%0 = nn.conv2d(%a, %b); %1 = add(%0, %c); %2 = nn.relu(%1); subtract(%2, %d)");
  ExpectEqual(Partition(function, {.max_exits = 1}, {8, 9, 10}),
              Parse(params, "%3 = fn (" + kWeights + ", %r: " + kOut + ", " + kFoo +
                                ") { %0 = nn.conv2d(%p, %q); %1 = add(%0, %r); nn.relu(%1) };"
                                "%4 = %3(%a, %b, %c); subtract(%4, %d)"));
}

TEST(PartitionTextTest, DiamondsKeepScalarAttributes) {
  // operators 2, 3, 4 and 8; conv2d 5, relus 6 and 7, leaky_relu 9, add 10
  const std::string body =
      "%0 = nn.conv2d(%a, %b); %1 = nn.relu(%0); %2 = nn.relu(%1); "
      "%3 = nn.leaky_relu(%0, alpha=0.25f); ";
  const Function function = Parse(kImages, body + "add(%2, %3)");
  const std::string inner =
      "%0 = nn.conv2d(%p, %q); %1 = nn.relu(%0); %2 = nn.relu(%1); "
      "%3 = nn.leaky_relu(%0, alpha=0.25f); ";
  ExpectEqual(Partition(function, {.max_exits = 1}, {5, 6, 7, 9, 10}),
              Parse(kImages, "%4 = fn (" + kWeights + ", " + kFoo + ") {" + inner + "add(%2, %3) }; %4(%a, %b)"));
  ExpectEqual(Partition(function, {.max_exits = 1}, {5, 6, 7, 9}), function);
  ExpectEqual(Partition(function, {.max_exits = 2}, {5, 6, 7, 9}),
              Parse(kImages, "%4 = fn (" + kWeights + ", " + kFoo + ") {" + inner +
                                 "(%2, %3) }; %5 = %4(%a, %b); add(%5.0, %5.1)"));
}

TEST(PartitionTextTest, TapsAreReturnedWhereTheyAreAllowed) {
  // operators 2 to 4, conv2d 5, relu 6, add 7
  const Function function = Parse(kImages, "%0 = nn.conv2d(%a, %b); %1 = nn.relu(%0); add(%1, %0)");
  ExpectEqual(Partition(function, {.max_exits = 2}, {5, 6}), function);
  ExpectEqual(Partition(function, {.max_exits = 2, .allow_taps = true}, {5, 6}),
              Parse(kImages, "%2 = fn (" + kWeights + ", " + kFoo +
                                 ") { %0 = nn.conv2d(%p, %q); %1 = nn.relu(%0); (%0, %1) };"
                                 "%3 = %2(%a, %b); add(%3.1, %3.0)"));
}

TEST(PartitionTextTest, NothingLeavesAndComesBack) {
  // operator 2, adds 3 to 5
  const Function function = Parse(kTwo, "%0 = add(%a, %b); %1 = add(%0, %b); add(%1, %b)");
  ExpectEqual(Partition(function, {.max_exits = 2, .allow_taps = true}, {3, 5}), function);
  ExpectEqual(Partition(function, {.max_exits = 1}, {3, 4, 5}),
              Parse(kTwo, "%3 = fn (%p: " + kTensor + ", %q: " + kTensor + ", " + kFoo +
                              ") { %0 = add(%p, %q); %1 = add(%0, %q); add(%1, %q) }; %3(%a, %b)"));
}

TEST(PartitionTextTest, LabelsAreCompositesWithin) {
  // operator 2, adds 3 to 11
  std::string chain = "%0 = add(%a, %b); ";
  for (int i = 1; i < 8; ++i) chain += "%" + std::to_string(i) + " = add(%" + std::to_string(i - 1) + ", %b); ";
  const Function function = Parse(kTwo, chain + "add(%7, %b)");
  const std::map<int, std::string> labels{{4, "a"}, {5, "a"}, {6, "a"}, {7, "a"}, {8, "b"}, {9, "b"}, {10, "b"}};
  const std::string pair = "(%p: " + kTensor + ", %q: " + kTensor + ", ";
  ExpectEqual(
      Partition(function, {.max_exits = 1}, {3, 4, 5, 6, 7, 8, 9, 10, 11}, labels), Parse(kTwo, "%9 = fn " + pair +
                                                                                                    kFoo + R"() {
                %0 = add(%p, %q);
                %4 = fn )" + pair + R"(Composite="a") {
                  %1 = add(%p, %q); %2 = add(%1, %q); %3 = add(%2, %q); add(%3, %q)
                };
                %5 = %4(%0, %q);
                %7 = fn )" + pair + R"(Composite="b") { %10 = add(%p, %q); %6 = add(%10, %q); add(%6, %q) };
                %8 = %7(%5, %q);
                add(%8, %q)
              };
              %9(%a, %b))"));
}

TEST(PartitionTextTest, TapsOfCompositesWithin) {
  const std::string one = "%a: " + kTensor;
  // operators 1 to 4, exp 5, abs 6, relu 7, add 8
  const Function function = Parse(one, "%0 = exp(%a); %1 = abs(%0); %2 = nn.relu(%1); add(%2, %1)");
  ASSERT_EQ(DataflowGraph(function, Boundaries::kExact).LabelAt(6), "abs");
  const std::map<int, std::string> labels{{6, "a"}, {7, "a"}};
  ExpectEqual(Partition(function, {.max_exits = 1, .allow_taps = true}, {5, 6, 7}, labels), function);
  ExpectEqual(Partition(function, {.max_exits = 2, .allow_taps = true}, {5, 6, 7}, labels),
              Parse(one, "%6 = fn (%p: " + kTensor + ", " + kFoo + R"() {
                %0 = exp(%p);
                %3 = fn (%q: Tensor[(2), float32], Composite="a") { %1 = abs(%q); %2 = nn.relu(%1); (%1, %2) };
                %4 = %3(%0); (%4.0, %4.1)
              };
              %7 = %6(%a); add(%7.1, %7.0))"));
}

}  // namespace
}  // namespace collage
