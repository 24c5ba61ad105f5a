// record_fields.h: the fields of records, for columns of tables and for JSON (support/json_fields.h).
#pragma once

#include "cost/database/tuning_record.h"
#include "support/json_fields.h"

namespace collage {

template <typename Self, typename Visitor>
requires IsMessage<Self, TuningRecord>
void VisitFields(Self& record, Visitor& visit) {
  visit.Field("ok", record.ok);
  visit.Field("minimum", record.minimum);
  visit.Field("p50", record.p50);
  visit.Field("p90", record.p90);
  visit.Field("num_samples", record.num_samples);
  visit.Field("max_error", record.max_error);
  visit.Field("reason", record.reason);
  // Helpers need not know more than these.
  visit.OptionalField("p10", record.p10);
  visit.OptionalField("p25", record.p25);
  visit.OptionalField("p75", record.p75);
  visit.OptionalField("p99", record.p99);
  visit.OptionalField("half_width", record.half_width);
  visit.OptionalField("drift", record.drift);
  visit.OptionalField("label", record.label);
  visit.OptionalField("schedule", record.schedule);
  visit.OptionalField("measured_at", record.measured_at);
}

template <typename Self, typename Visitor>
requires IsMessage<Self, ResultRecord>
void VisitFields(Self& record, Visitor& visit) {
  visit.Field("ok", record.ok);
  visit.Field("value", record.value);
  visit.Field("measured_at", record.measured_at);
}

}  // namespace collage
