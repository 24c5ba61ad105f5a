// cost_fields.h: costs in explanations, and what they rest on, as JSON.
#pragma once

#include "driver/explanation/explained_cost.h"
#include "support/json_fields.h"

namespace collage {

template <typename Self, typename Visitor>
requires IsMessage<Self, ExplainedRates>
void VisitFields(Self& rates, Visitor& visit) {
  visit.OptionalField("multiply_adds_per_second", rates.multiply_adds);
  visit.OptionalField("near_bytes_per_second", rates.near_bytes);
  visit.OptionalField("shared_bytes_per_second", rates.shared_bytes);
  visit.OptionalField("memory_bytes_per_second", rates.memory_bytes);
}

template <typename Self, typename Visitor>
requires IsMessage<Self, ExplainedTrial>
void VisitFields(Self& trial, Visitor& visit) {
  visit.Field("schedule", trial.schedule);
  visit.OptionalField("seconds", trial.seconds);
  visit.OptionalField("reason", trial.reason);
}

template <typename Self, typename Visitor>
requires IsMessage<Self, ExplainedCost>
void VisitFields(Self& cost, Visitor& visit) {
  visit.Field("state", cost.state);
  visit.OptionalField("seconds", cost.seconds);
  visit.OptionalField("p10", cost.p10);
  visit.OptionalField("p25", cost.p25);
  visit.OptionalField("p50", cost.p50);
  visit.OptionalField("p75", cost.p75);
  visit.OptionalField("p90", cost.p90);
  visit.OptionalField("half_width", cost.half_width);
  visit.OptionalField("samples", cost.samples);
  visit.OptionalField("error", cost.error);
  visit.OptionalField("schedule", cost.schedule);
  visit.OptionalField("trials", cost.trials);
  visit.OptionalField("reason", cost.reason);
  visit.OptionalField("least_seconds", cost.least_seconds);
  visit.OptionalField("multiply_adds", cost.multiply_adds);
  visit.OptionalField("bytes", cost.bytes);
}

}  // namespace collage
