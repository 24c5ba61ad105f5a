// measured_machine.cc: machines as records of the tuning database.
#include "cost/database/measured_machine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <utility>
#include <variant>

#include "collage/support/error.h"
#include "support/json_fields.h"

namespace collage {

template <typename Self, typename Visitor>
requires IsMessage<Self, MeasuredMachine>
void VisitFields(Self& machine, Visitor& visit) {
  visit.Field("name", machine.name);
  visit.Field("fingerprint", machine.fingerprint);
  visit.Field("cpu", machine.cpu);
  visit.Field("threads", machine.num_threads);
  visit.Field("near_bytes", machine.near_bytes);
  visit.Field("shared_bytes", machine.shared_bytes);
  visit.Field("versions", machine.versions);
  visit.Field("compilers", machine.compilers);
}

namespace {

ResultKey KeyOf(const std::string& name) { return {MachineKey{name}, "", 0}; }

MeasuredMachine MachineFrom(const ResultRecord& record, const std::string& name, const std::string& place) {
  try {
    return FromJsonText<MeasuredMachine>(record.value);
  } catch (const nlohmann::json::exception&) {
    throw Error(ErrorCategory::kCorrupt, fmt::format("the record of machine '{}' cannot be read", name), place,
                "measure the pack again");
  }
}

}  // namespace

void Put(TuningDatabase& database, const MeasuredMachine& machine) {
  database.Put(KeyOf(machine.name), {.ok = true, .value = ToJsonText(machine), .measured_at = ""});
}

MeasuredMachine FindMachine(TuningDatabase& database, const std::string& name) {
  if (const std::optional<ResultRecord> record = database.Find(KeyOf(name))) {
    return MachineFrom(*record, name, database.place());
  }
  std::vector<std::string> names;
  for (const MeasuredMachine& machine : MeasuredMachines(database)) names.push_back(machine.name);
  throw Error(ErrorCategory::kInput, fmt::format("the tuning database knows no machine '{}'", name), database.place(),
              names.empty() ? "`collage measure` adds the machine that it runs on"
                            : fmt::format("there are: {}", fmt::join(names, ", ")));
}

std::vector<MeasuredMachine> MeasuredMachines(TuningDatabase& database) {
  std::vector<MeasuredMachine> machines;
  database.ForEach([&](const TuningEntry& entry) {
    const auto* result = std::get_if<std::pair<ResultKey, ResultRecord>>(&entry);
    const auto* key = result == nullptr ? nullptr : std::get_if<MachineKey>(&result->first.subject);
    if (key != nullptr) machines.push_back(MachineFrom(result->second, key->name, database.place()));
  });
  return machines;
}

}  // namespace collage
