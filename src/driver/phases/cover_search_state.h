// cover_search_state.h: what the phases of a search share.
#pragma once

#include <memory>

#include "driver/covers/cover_portfolio.h"
#include "driver/covers/partitioner.h"
#include "driver/end_to_end_errors.h"
#include "driver/phases/model_forms.h"

namespace collage {

struct CoverSearchState {
  const ModelForm& form;
  const Candidates& candidates;
  CostEstimator& estimator;
  Partitioner& partitioner;
  CoverPortfolio& portfolio;
  EndToEndErrors& errors;
  /// How many measurements there were; a search that measures nothing will be the same when it is repeated.
  int64_t num_timed() const { return estimator.counts().measured + estimator.counts().remeasured; }
};

}  // namespace collage
