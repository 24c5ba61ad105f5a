// explain.cc: what explains the result: the searches are kept until it is known which of their covers won.
#include "driver/compilation.h"
#include "driver/covers/partitioning_json.h"
#include "driver/explanation/explain_graph.h"

namespace collage {

void Compilation::Keep(std::unique_ptr<SearchedForm> searched, const CoverPortfolio& portfolio, FoundCovers found) {
  searched->estimator->Rest();  // nothing else is to run during the play-off
  searched->steps = portfolio.steps();
  searched->found = std::move(found);
  searched->allowed = [this, candidates = searched->candidates.get()](CandidateIndex candidate) {
    return !selection_->IsDeferred(*candidates->ToolchainOf(candidate));
  };
  searched_.push_back(std::move(searched));
}

void Compilation::Explain(const std::vector<ContenderModule>& contenders, const ContenderModule& winner) {
  Phase("explain");
  const EndedPlayOff play_off{contenders, report_.contenders, winner};
  const auto explain = [&](const IRModule& module, SearchedForm* searched) {
    if (!IsPartitioningOf(winner.partitioning, DataflowGraph(module.main()))) return false;
    auto explanation = std::make_shared<GraphExplanation>(ExplainGraph(module.main(), searched, play_off, Versions()));
    explanation->name = report_.model;
    report_.explanation = std::move(explanation);
    return true;
  };
  for (const std::unique_ptr<SearchedForm>& searched : searched_) {
    if (explain(searched->form.module, searched.get())) return;
  }
  if (explain(module_, nullptr)) return;
  for (const ModelForm& form : forms_) {
    if (explain(form.module, nullptr)) return;
  }
}

}  // namespace collage
