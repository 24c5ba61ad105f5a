// explain_graph.h: gathers what explains the result of compiling one graph, when its winner is known.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "driver/covers/cover_portfolio.h"
#include "driver/covers/partitioner.h"
#include "driver/explanation/graph_explanation.h"
#include "driver/phases/model_forms.h"
#include "driver/play_off/play_off.h"

namespace collage {

/// A form of a graph that was searched, with its candidates and their costs. They refer to each other, so it stays
/// where it is.
struct SearchedForm {
  ModelForm form;
  std::vector<PartitionSpec> specs;
  std::unique_ptr<Candidates> candidates = nullptr;
  std::unique_ptr<CostEstimator> estimator = nullptr;
  std::unique_ptr<Partitioner> partitioner = nullptr;
  FoundCovers found = {};
  std::vector<SearchStep> steps = {};
  std::function<bool(CandidateIndex candidate)> allowed = {};  ///< candidates that alternatives may have
};

/// A play-off, as it ended.
struct EndedPlayOff {
  const std::vector<ContenderModule>& modules;
  const std::vector<Contender>& contenders;  ///< a result for each module
  const ContenderModule& winner;
};

/// Explains a graph whose winner is a cover of the graph `function`. `searched`: the search for covers of it; null if
/// there was none. `versions`: by registered toolchain. Measures nothing; ends the estimator's budget.
GraphExplanation ExplainGraph(const Function& function, SearchedForm* searched, const EndedPlayOff& play_off,
                              const std::map<std::string, std::string>& versions);

}  // namespace collage
