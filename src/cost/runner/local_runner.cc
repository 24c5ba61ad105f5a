// local_runner.cc: measurements by a child of this process.
#include "cost/measure/drift.h"
#include "cost/runner/runner.h"

namespace collage {
namespace {

class LocalRunner : public Runner {
 public:
  LocalRunner(FindPartition find, const WorkerLimits& limits)
      : worker_([find = std::move(find)](const std::string& request,
                                         const SendProgress&) { return AnswerMeasureRequest(request, find); },
                limits) {
    ShareDriftReadings();
  }

  void Run(const std::vector<std::string>& requests, const OnAnswer& on_answer) override {
    for (size_t i = 0; i < requests.size(); ++i) {
      const Result<std::string> answer = worker_.Call(requests[i]);
      TuningRecord record;
      if (answer.ok()) {
        record = RecordFromText(*answer);
      } else {
        record.reason = answer.reason().text;
      }
      if (!on_answer(i, record)) return;
    }
  }

 private:
  Worker worker_;
};

}  // namespace

std::unique_ptr<Runner> MakeLocalRunner(FindPartition find, const WorkerLimits& limits) {
  return std::make_unique<LocalRunner>(std::move(find), limits);
}

}  // namespace collage
