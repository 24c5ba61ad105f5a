// standin_cuda.h: how stand-ins of libraries put work on streams of the stand-in for the driver.
#pragma once

#include <cstddef>
#include <functional>

/// Adds `work`, which may touch memory of the device, to a stream. False where the calling thread has no context or the
/// stream is none.
extern "C" bool standin_cuda_enqueue(void* stream, std::function<void()>* work);

/// As standin_cuda_enqueue, for stand-ins that are not C++: `work` is called with `data`, maybe several times.
extern "C" bool standin_cuda_call(void* stream, void (*work)(void*), void* data);

/// Whether work on a stream is being captured.
extern "C" bool standin_cuda_is_captured(void* stream);

/// Whether the calling thread has a context.
extern "C" bool standin_cuda_has_context();

/// The place at which work finds `bytes` at an address of the device; null unless they are in one allocation.
extern "C" void* standin_cuda_within(const void* address, size_t bytes);
