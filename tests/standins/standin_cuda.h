// standin_cuda.h: how stand-ins of libraries put work on streams of the stand-in for the driver.
#pragma once

#include <cstddef>
#include <functional>

/// Adds `work`, which may touch memory of the device, to a stream. False where the calling thread has no context or the
/// stream is none.
extern "C" bool standin_cuda_enqueue(void* stream, std::function<void()>* work);

/// The place at which work finds `bytes` at an address of the device; null unless they are in one allocation.
extern "C" void* standin_cuda_within(const void* address, size_t bytes);
