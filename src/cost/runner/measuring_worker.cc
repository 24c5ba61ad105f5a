// measuring_worker.cc: who this is, and requests in turn.
#include "cost/runner/measuring_worker.h"

#include <fmt/format.h>

#include <charconv>
#include <istream>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string_view>

#include "collage/support/error.h"
#include "cost/measure/drift.h"
#include "support/json_reader.h"
#include "support/machine.h"

namespace collage {
namespace {

using Json = nlohmann::json;

Json ToJson(const WorkerIdentity& identity) {
  return {{"collage", identity.collage},
          {"machine", identity.machine},
          {"threads", identity.num_threads},
          {"toolchains", identity.toolchains}};
}

void Say(std::ostream& answers, const Json& message) {
  answers << message.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;  // the parent waits for it
}

/// Prefix of answers to wrong requests, which distinguishes them from failed measurements.
constexpr std::string_view kNotMeasured = "not measured: ";

std::string Answer(const std::string& request) {
  try {
    return AnswerMeasureRequest(request, /*candidates=*/nullptr);
  } catch (const Error& error) {
    if (error.category() != ErrorCategory::kInput) throw;
    return fmt::format("{}{}{}{}", kNotMeasured, error.where(), error.where().empty() ? "" : ": ", error.message());
  }
}

/// A line taken apart: what it asks, and by which number the answer goes.
struct Question {
  int64_t id = 0;
  std::string request;
};

/// Nothing when a line is no question. As external runners write it, the request is not read: it may be long, and is
/// read where that can do no harm.
std::optional<Question> QuestionFromText(const std::string& line) {
  constexpr std::string_view kBegin = R"({"id":)";
  constexpr std::string_view kMiddle = R"(,"request":)";
  if (line.starts_with(kBegin) && line.ends_with('}')) {
    int64_t id = 0;
    const auto [end, code] = std::from_chars(line.data() + kBegin.size(), line.data() + line.size(), id);
    const size_t at = static_cast<size_t>(end - line.data());
    if (code == std::errc() && line.compare(at, kMiddle.size(), kMiddle) == 0) {
      const size_t begin = at + kMiddle.size();
      return Question{id, line.substr(begin, line.size() - 1 - begin)};
    }
  }
  const Json message = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!message.is_object() || !message.contains("request") || !message.contains("id")) return std::nullopt;
  if (!message["id"].is_number_integer()) return std::nullopt;
  return Question{message["id"], message["request"].dump()};
}

/// Returns the reply to one line.
Json Reply(const std::string& line, Worker& worker) {
  const std::optional<Question> question = QuestionFromText(line);
  if (!question)
    return {{"error", {{"message", "was asked something that is no line of JSON with an id and a request"}}}};
  Json reply{{"id", question->id}};
  const Result<std::string> answer = worker.Call(question->request);
  if (!answer.ok()) {
    MeasureAnswer failure;
    failure.reason = answer.reason().text;
    reply["record"] = Json::parse(ToText(failure));
  } else if (answer->starts_with(kNotMeasured)) {
    reply["error"] = answer->substr(kNotMeasured.size());
  } else {
    reply["record"] = Json::parse(*answer);
  }
  return reply;
}

}  // namespace

std::string ToText(const WorkerIdentity& identity) { return ToJson(identity).dump(); }

WorkerIdentity WorkerIdentityFromText(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    return {json.at("collage"), json.at("machine"), json.at("threads"), json.at("toolchains")};
  } catch (const Json::exception& error) {
    throw Error(ErrorCategory::kInput, fmt::format("no description of a machine: {}", ProblemOf(error)));
  }
}

std::string WhyUnfit(const WorkerIdentity& here, const WorkerIdentity& wanted) {
  std::string reasons;
  const auto add = [&](const std::string& reason) { reasons += (reasons.empty() ? "" : "; ") + reason; };
  if (here.collage != wanted.collage) add(fmt::format("Collage is {}, not {}", here.collage, wanted.collage));
  if (here.machine != wanted.machine) {
    add(fmt::format("the machine is of kind '{}', not '{}'", here.machine, wanted.machine));
  }
  if (here.num_threads < wanted.num_threads) {
    add(fmt::format("there are {} processors for {} threads", here.num_threads, wanted.num_threads));
  }
  for (const auto& [name, version] : wanted.toolchains) {
    const auto it = here.toolchains.find(name);
    if (it == here.toolchains.end()) {
      add(fmt::format("there is no toolchain '{}'", name));
    } else if (it->second != version) {
      add(fmt::format("toolchain '{}' is {}, not {}", name, it->second, version));
    }
  }
  return reasons;
}

std::vector<std::string> WorkerArguments(const RunnerContext& context) {
  const WorkerIdentity wanted{COLLAGE_VERSION, ThisMachine().fingerprint, context.num_threads, context.versions};
  return {"--timeout", fmt::format("{}s", static_cast<double>(context.limits.timeout.count()) / 1000),
          "--memory",  std::to_string(context.limits.memory_bytes),
          "--wanted",  ToText(wanted)};
}

void ServeMeasurements(const WorkerIdentity& here, const WorkerIdentity* wanted, const WorkerLimits& limits,
                       std::istream& requests, std::ostream& answers) {
  Json hello = ToJson(here);
  hello["ready"] = 1;
  hello["cpu"] = ThisMachine().cpu;
  const std::string unfit = wanted == nullptr ? "" : WhyUnfit(here, *wanted);
  if (!unfit.empty()) hello["unfit"] = unfit;
  Say(answers, hello);
  ShareDriftReadings();
  Worker worker([](const std::string& request, const SendProgress&) { return Answer(request); }, limits);
  for (std::string line; std::getline(requests, line);) {
    if (line.empty() || line.starts_with(R"({"cancel":)")) continue;  // what was asked before is answered by now
    Say(answers, Reply(line, worker));
  }
}

}  // namespace collage
