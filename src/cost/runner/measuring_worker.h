// measuring_worker.h: measures on this machine what others ask for in lines of text: `collage worker`.
#pragma once

#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "cost/runner/runner.h"
#include "worker/worker.h"

namespace collage {

/// Properties that a machine must share with another for its measurements to hold there.
struct WorkerIdentity {
  std::string collage;                            ///< its version
  std::string machine;                            ///< fingerprint
  int num_threads = 1;                            ///< processors that are there, or threads that are wanted
  std::map<std::string, std::string> toolchains;  ///< name → version, as in tuning keys
};

std::string ToText(const WorkerIdentity& identity);
/// Throws kInput.
WorkerIdentity WorkerIdentityFromText(const std::string& text);
/// Why measurements at `here` do not hold for `wanted`; empty when they do.
std::string WhyUnfit(const WorkerIdentity& here, const WorkerIdentity& wanted);

/// The arguments of `collage worker` that make it measure for `context`, on a machine that is like this one.
std::vector<std::string> WorkerArguments(const RunnerContext& context);

/// Answers lines of `requests` on `answers`, one at a time, in the words of external_runner.h's helper programs, until
/// there are none. The first line says what this is: {"ready": 1, "collage": …, "machine": …, "cpu": …, "threads": …,
/// "toolchains": {…}}, with "unfit" where it is not as `wanted` (null: anything is). A measurement that crashes, hangs
/// or prints is a record with the reason; a line that is no request is an "error".
void ServeMeasurements(const WorkerIdentity& here, const WorkerIdentity* wanted, const WorkerLimits& limits,
                       std::istream& requests, std::ostream& answers);

}  // namespace collage
