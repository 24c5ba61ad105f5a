// estimators.h: the estimators by name, behind one interface. docs/search-options.md lists them.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "collage/estimate.h"
#include "cost/estimator/estimator.h"
#include "cost/estimator/given_costs.h"
#include "cost/estimator/measuring_estimator.h"
#include "cost/runner/candidate_source.h"

namespace collage {

/// Parameters of estimators; everything that they refer to must outlive the estimator.
struct EstimatorSetting {
  TuningDatabase& database;
  std::unique_ptr<Runner> runner;
  const CandidateSource& candidates;
  MeasuringEstimator::Options options;
  MeasuringEstimator::OnMeasure on_measure;
  /// Text behind "=" in the estimator's name.
  std::string argument;
};

/// A row of the table of estimators.
struct EstimatorKind {
  const char* name;
  const char* argument;  ///< required text behind "NAME="; null if there is none
  const char* summary;
  std::unique_ptr<CostEstimator> (*make)(EstimatorSetting setting);
};
std::span<const EstimatorKind> EstimatorKinds();

/// Throws kInput for what MakeEstimator would refuse by its name or for want of an argument.
void CheckEstimator(const std::string& text);

/// The estimator that `text` asks for: "NAME" or "NAME=ARGUMENT". Throws kInput when there is none of that name, with
/// those there are, and for an argument that is missing, malformed or not wanted.
std::unique_ptr<CostEstimator> MakeEstimator(const std::string& text, EstimatorSetting setting);

// One file each.
std::unique_ptr<CostEstimator> MakeMeasuringEstimator(EstimatorSetting setting);  ///< measuring_estimator.cc
std::unique_ptr<CostEstimator> MakeDatabaseEstimator(EstimatorSetting setting);   ///< database_estimator.cc
std::unique_ptr<CostEstimator> MakeAnalyticEstimator(EstimatorSetting setting);   ///< analytic_estimator.cc
std::unique_ptr<CostEstimator> MakeMockEstimator(EstimatorSetting setting);       ///< mock_estimator.cc
/// Costs by the rows of `costs` that are named as the specs of candidates (CostQuery::target); mock_estimator.cc.
std::unique_ptr<CostEstimator> MakeGivenEstimator(GivenCosts costs, const CandidateSource& candidates);
/// Asks `estimate` once for each structurally different partition of a toolchain; custom_estimator.cc.
std::unique_ptr<CostEstimator> MakeCustomEstimator(const CandidateSource& candidates, EstimateCandidate estimate);

}  // namespace collage
