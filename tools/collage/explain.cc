// explain.cc: `collage explain`: why an executable is made as it is, whether that is true, and how two differ.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>

#include "collage/support/error.h"
#include "command.h"
#include "cost/database/tuning_database.h"
#include "explain/diff_facts.h"
#include "explain/explanation_file.h"
#include "explain/overview_facts.h"
#include "explain/questions.h"
#include "explain/verify.h"
#include "explain/why_facts.h"
#include "report/text.h"
#include "support/argument_text.h"

namespace collage::cli {
namespace {

constexpr size_t kMostVerified = 5;

struct Arguments {
  std::string executable;
  std::string sort = "time";
  std::string top = "20";
  std::string region;
  std::string why;
  std::string node;
  std::string why_not;
  std::string verify;
  std::string model;
  std::string seconds = "4s";
  std::string other;
  bool json = false;
};

/// The integer that a flag has. Throws kInput, naming the flag.
int64_t IntegerOf(const std::string& text, const char* flag) {
  try {
    return ParseInteger(text);
  } catch (const Error& error) {
    throw Error(error.category(), error.message(), flag, error.hint());
  }
}

std::optional<int64_t> RegionOf(const Arguments& arguments) {
  return arguments.region.empty() ? std::nullopt : std::optional(IntegerOf(arguments.region, "--region"));
}

/// The graph that numbers of partitions are of. Throws kInput where it has to be named.
size_t GraphOf(const Explanation& explanation, const Arguments& arguments, const char* flag) {
  const std::optional<int64_t> region = RegionOf(arguments);
  if (!region && explanation.graphs.size() > 1) {
    throw Error(ErrorCategory::kInput,
                fmt::format("the model has {} regions, each with partitions of its own", explanation.graphs.size()),
                flag, "name one with --region");
  }
  GraphAt(explanation, region.value_or(0), "--region");
  return static_cast<size_t>(region.value_or(0));
}

/// The partitions that --why and --node name; none where neither is given.
std::vector<PartitionPlace> PlacesOf(const Explanation& explanation, const Arguments& arguments) {
  if (!arguments.node.empty()) return PartitionsOf(explanation, arguments.node);
  if (arguments.why.empty()) return {};
  const size_t graph = GraphOf(explanation, arguments, "--why");
  return {PartitionAt(explanation, graph, IntegerOf(arguments.why, "--why"), "--why")};
}

void ShowWhy(const Explanation& explanation, const Arguments& arguments) {
  const std::vector<PartitionPlace> places = PlacesOf(explanation, arguments);
  if (arguments.json) return PrintReport(WhyFacts(explanation, places), /*as_json=*/true);
  for (const PartitionPlace& place : places) PrintReport(WhyRecord(explanation, place), /*as_json=*/false);
}

void Verify(const Explanation& explanation, const Arguments& arguments) {
  if (arguments.model.empty()) {
    throw Error(ErrorCategory::kInput, "the model is needed to compile another way", "--verify",
                fmt::format("add --model {}", explanation.model));
  }
  const size_t graph = GraphOf(explanation, arguments, "--verify");
  const std::vector<PartitionPlace> places =
      arguments.verify == "all"
          ? MostExpensive(explanation, graph, kMostVerified)
          : std::vector{PartitionAt(explanation, graph, IntegerOf(arguments.verify, "--verify"), "--verify")};
  VerifyOptions options{arguments.model, ParseDuration(arguments.seconds)};
  options.on_progress = [](const std::string& what) { fmt::print(stderr, "verify      {}\n", what); };
  const std::vector<VerifiedClaim> claims = VerifyClaims(explanation, places, options);
  PrintReport(VerifyFacts(explanation, claims), arguments.json);
  const bool all_hold = std::ranges::all_of(claims, [](const VerifiedClaim& one) { return one.holds(); });
  if (!all_hold) throw CLI::RuntimeError(1);
}

void Diff(const Arguments& arguments) {
  const bool is_database = IsDatabaseFile(arguments.executable);
  if (is_database != IsDatabaseFile(arguments.other)) {
    throw Error(ErrorCategory::kInput, "a database is compared with a database, an executable with an executable",
                "--diff");
  }
  if (is_database) {
    TuningDatabase a = TuningDatabase::ForReading(arguments.executable);
    TuningDatabase b = TuningDatabase::ForReading(arguments.other);
    return PrintReport(DatabaseDiffFacts(a, b), arguments.json);
  }
  PrintReport(DiffFacts(ReadExplanation(arguments.executable), ReadExplanation(arguments.other),
                        {arguments.executable, arguments.other}),
              arguments.json);
}

void Run(const Arguments& arguments) {
  if (!arguments.other.empty()) return Diff(arguments);
  const Explanation explanation = ReadExplanation(arguments.executable);
  if (!arguments.verify.empty()) return Verify(explanation, arguments);
  if (!arguments.why_not.empty()) {
    return PrintReport(WhyNotFacts(explanation, arguments.why_not, PlacesOf(explanation, arguments)), arguments.json);
  }
  if (!arguments.why.empty() || !arguments.node.empty()) return ShowWhy(explanation, arguments);
  if (arguments.json) {
    std::cout << ToJson(explanation).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    return;
  }
  OverviewOptions options{.by_time = arguments.sort == "time", .region = RegionOf(arguments)};
  const int64_t top = IntegerOf(arguments.top, "--top");
  if (top < 0) throw Error(ErrorCategory::kInput, fmt::format("{} is no number of partitions", top), "--top");
  options.top = static_cast<size_t>(top);
  PrintReport(OverviewFacts(explanation, options), /*as_json=*/false);
}

constexpr const char* kFooter = R"(Examples:
  collage explain model.clg                            what was chosen, and how good it is
  collage explain model.clg --why 0                    the best other ways to compute what partition 0 does
  collage explain model.clg --node conv_1              the same for the partition that computes a node of the model
  collage explain model.clg --why-not native --node conv_1
  collage explain model.clg --verify 0 --model model.onnx   times the best other way, and says whether the claim holds
  collage explain old.clg --diff new.clg               partitions and costs that differ)";

}  // namespace

void AddExplainCommand(CLI::App& app) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("explain", "Why an executable is made as it is, and how good it can get");
  command
      ->add_option("executable", arguments->executable,
                   "Executable, or the file of --explanation; with --diff also a tuning database")
      ->required();
  command->add_option("--sort", arguments->sort, "Order of partitions: time, or that in which they run")
      ->check(CLI::IsMember({"time", "order"}));
  command->add_option("--top", arguments->top, "Number of partitions to show (default: 20; 0: all)");
  command->add_option("--region", arguments->region, "Of a program: the part of known sizes to explain, by its number");
  CLI::Option* why =
      command->add_option("--why", arguments->why, "Best other ways to compute what this partition does");
  command->add_option("--node", arguments->node, "The same for the partition that computes this node of the model")
      ->excludes(why);
  command->add_option("--why-not", arguments->why_not,
                      "Why this toolchain computes less than it might; with --node or --why: not that");
  command->add_option("--verify", arguments->verify,
                      "Time the best other way of a partition, by its number, or of the five most expensive: all");
  command->add_option("--model", arguments->model, "The model, for --verify");
  command->add_option("--seconds", arguments->seconds, "How long --verify times each pair (default: 4s)");
  command->add_option("--diff", arguments->other, "Compare with this executable, or this tuning database");
  command->add_flag("--json", arguments->json, "Print all of it as JSON");
  command->footer(kFooter);
  command->callback([arguments] { Run(*arguments); });
}

}  // namespace collage::cli
