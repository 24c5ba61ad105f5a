// The table of settings: each row can be written, read back and refused; what follows from rows agrees with them.
#include "collage/settings.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "support/file.h"
#include "unit/support/throws.h"

namespace collage {
namespace {

using Json = nlohmann::json;
using Names = std::vector<std::string>;

/// The options after one flag.
CompileOptions With(const std::string& name, const Names& texts) {
  CompileOptions options;
  SetSettingFromText(options, FindSetting(name), texts);
  return options;
}

/// Where an error is, and its message.
std::string Refusal(const std::string& name, const std::string& text) {
  try {
    With(name, {text});
  } catch (const Error& error) {
    EXPECT_EQ(error.category(), ErrorCategory::kInput);
    return error.where() + ": " + error.message();
  }
  return "nothing was thrown";
}

TEST(Settings, NamesAndFlagsAreOfOneSettingEach) {
  std::set<std::string> names, flags;
  for (const Setting& setting : Settings()) {
    EXPECT_TRUE(names.insert(setting.name).second) << setting.name;
    EXPECT_TRUE(flags.insert(setting.flag).second) << setting.flag;
    EXPECT_TRUE(setting.flag.starts_with("--")) << setting.flag;
    EXPECT_EQ(&FindSetting(setting.name), &setting);
  }
}

TEST(Settings, TextsAreSentences) {
  for (const Setting& setting : Settings()) {
    EXPECT_TRUE(setting.doc.ends_with('.')) << setting.name;
    EXPECT_FALSE(DefaultText(setting).empty()) << setting.name;
    EXPECT_FALSE(setting.unset.ends_with('.')) << setting.name;
  }
}

TEST(Settings, DefaultsAreThoseOfCompileOptions) {
  const CompileOptions options;
  CheckSettings(options);
  for (const Setting& setting : Settings()) {
    EXPECT_TRUE(IsDefault(options, setting)) << setting.name;
    if (setting.unset.empty()) {
      EXPECT_TRUE(IsDefault(With(setting.name, {DefaultText(setting)}), setting)) << setting.name;
    }
  }
  EXPECT_EQ(DefaultText(FindSetting("evolution_budget")), "30m");
  EXPECT_EQ(DefaultText(FindSetting("covers")), "2");
}

TEST(Settings, TextReachesFields) {
  EXPECT_EQ(With("threads", {"3"}).num_threads, 3);
  EXPECT_EQ(With("budget", {"10m"}).budget_seconds, 600);
  EXPECT_EQ(With("max_error", {"0.25"}).max_error, 0.25);
  EXPECT_EQ(With("max_measurements", {"0"}).max_measurements, 0);
  EXPECT_EQ(With("evolution_seed", {"7"}).evolution_seed, 7u);
  EXPECT_EQ(With("toolchains", {"native,dnnl"}).toolchains, (Names{"native", "dnnl"}));
  EXPECT_EQ(With("target", {"llvm", "llvm -compiler=dnnl"}).targets, (Names{"llvm", "llvm -compiler=dnnl"}));
  EXPECT_EQ(With("shapes", {"x=1x2", "y="}).shapes, (std::map<std::string, Shape>{{"x", {1, 2}}, {"y", {}}}));
  EXPECT_EQ(With("partition_rules", {"dnnl={}"}).partition_rules.at("dnnl"), "{}");
  EXPECT_EQ(With("dump", {"folder"}).dump, "folder");
  EXPECT_EQ(With("opt_level", {"1"}).pass_context.opt_level, 1);
  EXPECT_EQ(With("required_pass", {"FuseOps"}).pass_context.required_pass, Names{"FuseOps"});
  EXPECT_EQ(With("disabled_pass", {"FoldConstant,FuseOps"}).pass_context.disabled_pass,
            (Names{"FoldConstant", "FuseOps"}));
  const CompileOptions deep = With("config", {"relay.FuseOps.max_depth=2", "relay.PartitionGraph.bind_constants=0"});
  EXPECT_EQ(deep.pass_context.ConfigInt("relay.FuseOps.max_depth"), 2);
  EXPECT_FALSE(deep.pass_context.ConfigBool("relay.PartitionGraph.bind_constants"));
  CheckSettings(deep);
  EXPECT_EQ(With("tuning_budget", {"30s"}).tuning_seconds, 30);
  const CompileOptions both = With("tuning_budget", {"1m,200trials"});
  EXPECT_EQ(both.tuning_seconds, 60);
  EXPECT_EQ(both.tuning_trials, 200);
}

TEST(Settings, ErrorsNameFlagAndValue) {
  EXPECT_EQ(Refusal("threads", "abc"), "--threads: 'abc' is not an integer");
  EXPECT_EQ(Refusal("threads", "0"), "--threads: expected a value from 1 to 1024, got 0");
  EXPECT_EQ(Refusal("budget", "soon"), "--budget: malformed duration 'soon'");
  EXPECT_EQ(Refusal("disabled_pass", "FoldConstant,Fuse"), "--disable-pass: unknown pass 'Fuse'");
  EXPECT_EQ(Refusal("config", "relay.FuseOps.max_depth"), "--config: malformed option 'relay.FuseOps.max_depth'");
  EXPECT_EQ(Refusal("config", "relay.FuseOps.depth=1"), "--config: unknown pass option 'relay.FuseOps.depth'");
  EXPECT_EQ(Refusal("max_error", "2"), "--max-error: expected a value from 0 to 1, got 2");
  EXPECT_EQ(Refusal("max_error", "nan"), "--max-error: expected a value from 0 to 1, got nan");
  EXPECT_EQ(Refusal("accuracy", "exakt"), "--accuracy: 'exakt' is not one of exact, standard");
  EXPECT_EQ(Refusal("tuning_budget", "xtrials"), "--tuning-budget: malformed tuning budget 'xtrials'");
  EXPECT_EQ(Refusal("tuning_budget", ""), "--tuning-budget: malformed tuning budget ''");
  EXPECT_EQ(Refusal("shapes", "x=1xabc"), "--shape: malformed shape 'x=1xabc'");
  EXPECT_EQ(Refusal("partition_rules", "native"), "--partition-rule: malformed rule 'native'");
  EXPECT_EQ(Refusal("partitioning", "no/such.json"), "--partitioning: there is no file 'no/such.json'");
}

TEST(Settings, ANameThatIsNoneHasNearMisses) {
  try {
    FindSetting("thread");
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "there is no setting 'thread'");
    EXPECT_EQ(error.hint(), "did you mean 'threads'?");
  }
}

TEST(Settings, ValuesOfAnotherKindAreRefused) {
  CompileOptions options;
  ExpectError([&] { SetSetting(options, FindSetting("threads"), std::string("1"), "threads"); }, ErrorCategory::kInput,
              "expected an integer from 1 to 1024, got the text '1'");
  ExpectError([&] { SetSetting(options, FindSetting("search"), int64_t{1}, "search"); }, ErrorCategory::kInput,
              "got 1");
  ExpectError([&] { SetSetting(options, FindSetting("budget"), -1.0, "budget"); }, ErrorCategory::kInput,
              "a duration is not below 0 seconds, got -1");
}

TEST(Settings, NoValueIsTheDefault) {
  for (const Setting& setting : Settings()) {
    CompileOptions options;
    options.num_threads = 2;
    options.num_covers = 9;
    options.toolchains = {"native"};
    options.max_error = 0.5;
    options.tuning_trials = 3;
    SetSetting(options, setting, {}, setting.name);
    EXPECT_TRUE(IsDefault(options, setting)) << setting.name;
  }
}

TEST(Settings, OptionsThatNoRowAllowsAreRefused) {
  CompileOptions options;
  options.percentile = 100;
  ExpectError([&] { CheckSettings(options); }, ErrorCategory::kInput, "expected a value from 1 to 99, got 100");
  options = {};
  options.operands = "far";
  ExpectError([&] { CheckSettings(options); }, ErrorCategory::kInput, "'far' is not one of near, shared, memory");
}

TEST(Settings, JsonHasEveryRow) {
  CompileOptions options;
  options.num_threads = 2;
  options.budget_seconds = 60;
  options.shapes = {{"x", {1, 2}}};
  const Json json = Json::parse(SettingsJson(options));
  EXPECT_EQ(json.size(), Settings().size());
  EXPECT_EQ(json.at("threads"), 2);
  EXPECT_EQ(json.at("budget"), 60);
  EXPECT_EQ(json.at("shapes"), Json({{"x", {1, 2}}}));
  EXPECT_EQ(json.at("max_error"), nullptr);
  EXPECT_EQ(json.at("covers"), 2);
  const Json table = Json::parse(SettingsTableJson());
  EXPECT_EQ(table.size(), Settings().size());
  EXPECT_EQ(table[0].at("flag"), "--shape");
}

}  // namespace
}  // namespace collage
