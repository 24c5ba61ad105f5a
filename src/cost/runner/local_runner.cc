// local_runner.cc: measurements by a child of this process.
#include "cost/measure/drift.h"
#include "cost/runner/runner.h"

namespace collage {
namespace {

class LocalRunner : public Runner {
 public:
  LocalRunner(const CandidateSource& candidates, const WorkerLimits& limits, CompiledStore* compiled)
      : worker_(
            [&candidates, compiled](const std::string& request, const SendProgress&) {
              return AnswerMeasureRequest(request, &candidates, compiled);
            },
            limits) {
    ShareDriftReadings();
  }

  void Run(const std::vector<MeasureRequest>& requests, const OnAnswer& on_answer) override {
    for (size_t i = 0; i < requests.size(); ++i) {
      const Result<std::string> answer = worker_.Call(ToText(requests[i]));
      MeasureAnswer found;
      if (answer.ok()) {
        found = MeasureAnswerFromText(*answer);
      } else {
        found.reason = answer.reason().text;
      }
      if (!on_answer(i, found)) return;
    }
  }

  void Rest() override { worker_.Restart(); }

 private:
  Worker worker_;
};

}  // namespace

std::unique_ptr<Runner> MakeLocalRunner(const CandidateSource& candidates, const WorkerLimits& limits,
                                        CompiledStore* compiled) {
  return std::make_unique<LocalRunner>(candidates, limits, compiled);
}

}  // namespace collage
