// serve_worker.h: the work of `collage worker`, in any process.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace collage {

/// Reads requests from standard input, in lines of JSON (see HelperProgram), and measures them with the toolchains of
/// this process, until the input ends. `wanted` is the expected identity of this machine (WorkerIdentity as text), or
/// empty. The process ends when its parent does.
void ServeWorker(const std::string& wanted, std::chrono::milliseconds timeout, int64_t memory_bytes);

}  // namespace collage
