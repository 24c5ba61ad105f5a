// child_process.h: asking something in a process of its own.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "collage/support/result.h"

namespace collage {

/// Returns the result of `answer` in a child of this process, which may load libraries that must not be loaded here,
/// and may crash. Returns a `Reason` if it crashes, throws or takes longer than `limit`. The child's output is lost.
/// The child has this thread only: `answer` must not need others, nor a lock that they may hold.
Result<std::string> AnswerInChild(const std::function<std::string()>& answer, std::chrono::milliseconds limit);

}  // namespace collage
