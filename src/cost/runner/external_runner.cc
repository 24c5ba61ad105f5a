// external_runner.cc: the conversation with a helper program.
#include "cost/runner/external_runner.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "collage/support/error.h"
#include "cost/runner/helper_process.h"
#include "support/json_reader.h"

namespace collage {
namespace {

using Json = nlohmann::json;
using Status = HelperProcess::Status;

class ExternalRunner : public Runner {
 public:
  explicit ExternalRunner(HelperProgram program) : program_(std::move(program)) {}

  bool needs_whole_partitions() const override { return true; }

  /// Known once there was something to measure.
  int num_at_once() const override { return slots_ > 0 ? static_cast<int>(slots_) : 1; }

  void Run(const std::vector<MeasureRequest>& requests, const OnAnswer& on_answer) override {
    if (requests.empty()) return;
    if (!helper_) Start();
    on_answer_ = &on_answer;
    const EndOfRun end{*this};
    for (size_t next = 0; next < requests.size() || !open_.empty();) {
      while (next < requests.size() && open_.size() < slots_) {
        Ask(ToText(requests[next]), next);
        ++next;
      }
      const std::optional<Answer> answer = Digest(Read(program_.patience));
      if (answer && !on_answer(answer->index, answer->record)) return;
    }
  }

 private:
  struct Answer {
    size_t index = 0;  ///< in the run's requests
    MeasureAnswer record;
  };

  /// Cancels requests that are still open when a run ends for any reason.
  struct EndOfRun {
    ExternalRunner& runner;
    ~EndOfRun() {
      runner.Cancel();
      runner.on_answer_ = nullptr;
    }
  };

  [[noreturn]] void Fail(const std::string& what, const std::string& hint = "") {
    helper_.reset();
    open_.clear();
    throw Error(ErrorCategory::kUnavailable, fmt::format("runner '{}' {}", program_.name, what), "", hint);
  }

  /// Ends the helper, of which nothing good is to be expected. With what it printed to standard error.
  [[noreturn]] void FailWithErrors(const std::string& what) {
    helper_->Kill();
    const std::string errors = helper_->LastErrors();
    Fail(errors.empty() ? what : fmt::format("{}; its helper printed: {}", what, errors));
  }

  /// The helper reads no more: what it wrote before may say why, and may hold answers.
  [[noreturn]] void FailOfEnd() {
    std::string line;
    while (helper_->ReadLine(line, HelperProcess::kGrace) == Status::kDone) {
      const std::optional<Answer> answer = Digest(Parse(line));
      if (answer && on_answer_ != nullptr) (*on_answer_)(answer->index, answer->record);
    }
    const std::string how = helper_->Bury();
    FailWithErrors(fmt::format("stopped: its helper {}", how));
  }

  void Start() {
    helper_ = std::make_unique<HelperProcess>(program_.command);
    slots_ = 0;
    while (slots_ == 0) Digest(Read(program_.start_patience));
  }

  void Ask(const std::string& request, size_t index) {
    const int64_t id = ++last_id_;
    // A request may be hundreds of megabytes long: it is not parsed again to be put into the line.
    switch (helper_->WriteLine({fmt::format(R"({{"id":{},"request":)", id), request, "}"}, program_.patience)) {
      case Status::kDone: open_.emplace(id, index); return;
      case Status::kEnded: FailOfEnd();
      case Status::kSilent: FailWithErrors("does not read what it is asked");
    }
  }

  void Cancel() noexcept {
    if (open_.empty() || !helper_) return;
    Json ids = Json::array();
    for (const auto& [id, index] : open_) ids.push_back(id);
    open_.clear();
    if (helper_->WriteLine({Json{{"cancel", ids}}.dump()}, program_.patience) != Status::kDone) helper_.reset();
  }

  Json Read(std::chrono::milliseconds patience) {
    std::string line;
    switch (helper_->ReadLine(line, patience)) {
      case Status::kDone: return Parse(line);
      case Status::kEnded: FailOfEnd();
      case Status::kSilent: break;
    }
    FailWithErrors(fmt::format("has said nothing for {} s", static_cast<double>(patience.count()) / 1000));
  }

  Json Parse(const std::string& line) {
    Json message = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (message.is_object()) return message;
    constexpr size_t kShown = 100;
    FailWithErrors(fmt::format("wrote '{}' where a line of JSON was wanted", line.substr(0, kShown)));
  }

  /// Does what a message asks for; the answer that it holds.
  std::optional<Answer> Digest(const Json& message) {
    try {
      if (message.contains("unfit")) {
        Fail(fmt::format("cannot measure for this machine: {}", message.at("unfit").get<std::string>()));
      }
      if (message.contains("ready")) slots_ = message.at("ready");
      if (message.contains("warning") && program_.on_warning) program_.on_warning(message.at("warning"));
      if (message.contains("id")) return DigestAnswer(message);
      if (message.contains("error")) {
        const Json& error = message.at("error");
        Fail(error.at("message").get<std::string>(), error.value("hint", ""));
      }
      return std::nullopt;
    } catch (const Json::exception& error) {
      FailWithErrors(fmt::format("wrote a message that makes no sense: {}", ProblemOf(error)));
    }
  }

  std::optional<Answer> DigestAnswer(const Json& message) {
    const auto it = open_.find(message.at("id").get<int64_t>());
    if (it == open_.end()) return std::nullopt;  // cancelled
    const size_t index = it->second;
    open_.erase(it);
    if (message.contains("error")) Fail(message.at("error").get<std::string>());
    try {
      return Answer{index, MeasureAnswerFromText(message.at("record").dump())};
    } catch (const Error& error) {
      FailWithErrors(fmt::format("sent {}", error.message()));
    }
  }

  HelperProgram program_;
  const OnAnswer* on_answer_ = nullptr;  ///< the run's
  std::unique_ptr<HelperProcess> helper_;
  size_t slots_ = 0;  ///< requests that it takes at once
  int64_t last_id_ = 0;
  std::map<int64_t, size_t> open_;  ///< id → index in the run's requests
};

}  // namespace

std::unique_ptr<Runner> MakeExternalRunner(HelperProgram program) {
  return std::make_unique<ExternalRunner>(std::move(program));
}

}  // namespace collage
