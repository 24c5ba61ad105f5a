// measured_machine.h: machines whose measurements are in a tuning database although they were made elsewhere.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cost/database/tuning_database.h"

namespace collage {

/// Facts that a compilation for another machine needs. The costs themselves have keys of their own, which these
/// properties are part of.
struct MeasuredMachine {
  std::string name;  ///< by which users call it
  std::string fingerprint;
  std::string cpu;
  int num_threads = 1;                           ///< with which it was measured
  int64_t near_bytes = 0, shared_bytes = 0;      ///< its caches (CacheBytes)
  std::map<std::string, std::string> versions;   ///< versions of toolchains, as in tuning keys
  std::map<std::string, std::string> compilers;  ///< versions of the compilers of these toolchains
};

/// Adds or replaces the machine of that name.
void Put(TuningDatabase& database, const MeasuredMachine& machine);
/// Throws kInput, naming those that there are, if there is none of that name.
MeasuredMachine FindMachine(TuningDatabase& database, const std::string& name);
/// All of them, by name.
std::vector<MeasuredMachine> MeasuredMachines(TuningDatabase& database);

}  // namespace collage
