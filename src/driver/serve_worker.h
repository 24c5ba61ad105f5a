// serve_worker.h: what `collage worker` does, in whichever process.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace collage {

/// Measures with the toolchains of this process what standard input asks for, in lines of JSON (see HelperProgram),
/// until that ends. `wanted` is what this machine should be (WorkerIdentity as text), or empty. The process ends when
/// the one that started it does.
void ServeWorker(const std::string& wanted, std::chrono::milliseconds timeout, int64_t memory_bytes);

}  // namespace collage
