// registered_rule_test.cc: predicates, base rules and combiners that a program registers.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "collage/ir/visitor.h"
#include "collage/partition_rules.h"
#include "collage/support/error.h"
#include "unit/partition/graphs.h"

namespace collage {
namespace {

using namespace testing_graphs;

/// Calls of operators in a function, operands first.
std::vector<Expr> CallsIn(const Function& function) {
  std::vector<Expr> calls;
  PostOrder(function->body(), [&](const Expr& expr) {
    const CallNode* call = As<CallNode>(expr);
    if (call != nullptr && call->op() != nullptr) calls.push_back(expr);
  });
  return calls;
}

/// The first and the last operator of what option "of" names; both if it is absent.
std::vector<RuleCandidate> Ends(const RuleRequest& request) {
  const std::vector<Expr> calls = CallsIn(request.function);
  const std::string of = nlohmann::json::parse(request.options).value("of", "both");
  std::vector<RuleCandidate> ends;
  if (of != "last") ends.push_back({{calls.front()}, "first"});
  if (of != "first") ends.push_back({{calls.back()}});
  return ends;
}

/// Sub-candidates that come one after the other, joined by twos, and a set that no call could compute.
std::vector<RuleCandidate> Twos(const RuleRequest& request) {
  std::vector<RuleCandidate> twos;
  for (size_t i = 0; i + 1 < request.candidates.size(); i += 2) {
    RuleCandidate both{request.candidates[i].inside, "two", {i, i + 1}};
    std::ranges::copy(request.candidates[i + 1].inside, std::back_inserter(both.inside));
    twos.push_back(both);
  }
  const std::vector<Expr> calls = CallsIn(request.function);
  twos.push_back({{calls.front(), calls.back()}, "apart"});
  return twos;
}

int num_questions = 0;

/// A union of any two that are not one already, of which one is new.
std::vector<RuleCandidate> AnyTwo(const RuleRequest& request) {
  ++num_questions;
  EXPECT_LT(request.first_new, request.candidates.size());
  std::vector<RuleCandidate> unions;
  for (size_t i = request.first_new; i < request.candidates.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      RuleCandidate both{request.candidates[i].inside};
      for (const Expr& expr : request.candidates[j].inside) {
        if (std::ranges::find(both.inside, expr) == both.inside.end()) both.inside.push_back(expr);
      }
      unions.push_back(both);
    }
  }
  return unions;
}

std::vector<RuleCandidate> Foreign(const RuleRequest&) { return {{{MakeCall("abs", {Param("y", {2})})}}}; }

void RegisterOnce() {
  static const bool done = [] {
    RegisterPartitionRules(
        {.rules = {{"test.ends", Ends}, {"test.twos", Twos}, {"test.any_two", AnyTwo}, {"test.foreign", Foreign}},
         .predicates = {{"test.no_square", [](const Function& match) -> Result<void> {
                           const Shape shape = AsTensorType(match->body()->checked_type())->static_shape();
                           if (shape[0] != shape[1]) return {};
                           return Reason{"it is square", "test"};
                         }}}});
    return true;
  }();
  ASSERT_TRUE(done);
}

std::vector<CandidatePartition> FindBy(const std::string& rule, const DataflowGraph& graph, RuleLog log = {}) {
  static const AnyToolchain toolchain;
  const PartitionRulePtr parsed = ParseRule(rule);
  EXPECT_EQ(ParseRule(parsed->ToJson().dump())->ToJson(), parsed->ToJson());
  return parsed->AllCandidates(graph, toolchain, log);
}

std::string MessageOf(const std::string& rule, const DataflowGraph& graph) {
  try {
    FindBy(rule, graph);
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(RegisteredRuleTest, PredicatesChooseAmongMatches) {
  RegisterOnce();
  const Var x = Param("x", {4, 4}), y = Param("y", {4, 6});
  const DataflowGraph graph(Typed({x, y}, MakeTuple({MakeCall("abs", {x}), MakeCall("abs", {y})})));
  std::vector<std::string> reasons;
  const RuleLog log{.on_refusal = [&](const std::string&, const Reason& reason) { reasons.push_back(reason.text); }};
  const auto found =
      FindBy(R"json({"rule": "DFPattern", "pattern": "abs(*)", "predicate": "test.no_square"})json", graph, log);
  EXPECT_EQ(Members(found), (Sets{{4}}));
  EXPECT_EQ(reasons, std::vector<std::string>{"it is square"});
  EXPECT_EQ(MessageOf(R"json({"rule": "DFPattern", "pattern": "abs(*)", "predicate": "test.no_sqare"})json", graph),
            "there is no registered predicate 'test.no_sqare'");
}

TEST(RegisteredRuleTest, BaseRulesFindCandidates) {
  RegisterOnce();
  const DataflowGraph graph(Std());
  const auto found = FindBy(R"({"rule": "Registered", "name": "mine", "function": "test.ends"})", graph);
  ASSERT_EQ(Members(found), (Sets{{3}, {5}}));
  EXPECT_EQ(found[0].rule_name, "mine.first");
  EXPECT_EQ(found[1].rule_name, "mine.nn.relu") << "by its operators where it has no name";
  EXPECT_EQ(Members(FindBy(R"({"rule": "Registered", "function": "test.ends", "options": {"of": "last"}})", graph)),
            (Sets{{5}}));
  EXPECT_EQ(MessageOf(R"({"rule": "Registered", "function": "test.foreign"})", graph),
            "rule 'test.foreign' returned a candidate with an expression that is no node of the function");
  EXPECT_EQ(MessageOf(R"({"rule": "Registered", "function": "test.end"})", graph),
            "there is no registered rule 'test.end'");
  EXPECT_THROW(RegisterPartitionRules({.rules = {{"test.ends", Ends}}}), Error) << "taken";
}

TEST(RegisteredRuleTest, ThoseAroundASubRuleKeepItsComposites) {
  RegisterOnce();
  const DataflowGraph graph(Std());
  std::vector<std::string> refused;
  const RuleLog log{.on_refused_match = [&](const Refusal& refusal) { refused.push_back(refusal.rule_name); }};
  const auto found = FindBy(R"json({"rule": "Registered", "function": "test.twos", "sub_rule": {"rule": "Union",
      "sub_rules": [{"rule": "DFPattern", "pattern": "abs(*)"},
                    {"rule": "Composite", "name": "c", "sub_rule": {"rule": "DFPattern", "pattern": "nn.relu(abs(*))"}},
                    {"rule": "DFPattern", "pattern": "nn.relu(nn.relu(*))"}]}})json",
                            graph, log);
  ASSERT_EQ(Members(found), (Sets{{3, 4}}));
  ASSERT_EQ(found[0].sub_graph.nested.size(), 1U);
  EXPECT_EQ(found[0].sub_graph.nested[0].inside, (std::vector<int>{3, 4}));
  EXPECT_EQ(refused, std::vector<std::string>{"apart"});
}

TEST(RegisteredRuleTest, CombinersAreAskedUntilNothingIsNew) {
  RegisterOnce();
  const Var x = Param("x", {4, 6});
  const Expr a = MakeCall("abs", {x}), b = MakeCall("exp", {x}), c = MakeCall("tanh", {x});
  const DataflowGraph graph(Typed({x}, MakeTuple({a, b, MakeCall("nn.relu", {c})})));
  nlohmann::json rule = nlohmann::json::parse(R"({"rule": "Combine", "sub_rule": {"rule": "OpPredicate"},
      "combiner_rules": [{"combiner": "Registered", "function": "test.any_two"}]})");
  num_questions = 0;
  EXPECT_EQ(FindBy(rule.dump(), graph).size(), 15U) << "every set of the four operators";
  EXPECT_LE(num_questions, 4);
  rule["combiner_rules"].push_back({{"combiner", "JoinAnything"}});
  EXPECT_EQ(FindBy(rule.dump(), graph).size(), 15U);
}

}  // namespace
}  // namespace collage
