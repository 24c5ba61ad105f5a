// external_runner.h: measurements by a helper program, which sees to where they are made.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cost/runner/runner.h"

namespace collage {

/// A program that measures what it is asked in lines of JSON on its standard input.
///
///     to it    {"id": 7, "request": {…}}           a request of measure_request.h; written without blanks
///              {"cancel": [7, 8]}                  no longer wanted: what is not begun need not be
///     from it  {"ready": 4, …}                     first; and again when it changes: how many requests it takes at
///     once
///              {"id": 7, "record": {…}}            an answer, in any order
///              {"id": 7, "error": "…"}             it cannot be answered, which is not the candidate's fault
///              {"warning": "…"}                    for the user
///              {"alive": true}                     nothing new; often enough that silence means that it hangs
///              {"error": {"message": "…", "hint": "…"}}   it cannot go on
///
/// "ready" with "unfit": "…" says why its measurements would not hold for this machine. `collage worker` is such a
/// program, for one machine; python/collage/ray_runner.py is one for a cluster. The end of its input ends it.
struct HelperProgram {
  std::string name;                                    ///< in messages: "ray://head:10001"
  std::vector<std::string> command;                    ///< program and arguments
  std::chrono::milliseconds start_patience{90'000};    ///< until "ready"
  std::chrono::milliseconds patience{60'000};          ///< longest silence while requests are open
  std::function<void(const std::string&)> on_warning;  ///< may be empty
};

/// Has requests measured by `program`, which is started when there is a first one. Run throws kUnavailable, with what
/// the program printed last, when it ends, hangs, talks nonsense, or says that it cannot go on: that is never taken
/// for a candidate's failure.
std::unique_ptr<Runner> MakeExternalRunner(HelperProgram program);

}  // namespace collage
