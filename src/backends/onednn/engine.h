// engine.h: what oneDNN computes on: the process's engine, a stream for each thread, and how many threads.
#pragma once

#include <dnnl.hpp>

namespace collage::onednn {

/// The process's CPU engine, and this thread's stream.
dnnl::engine& Engine();
dnnl::stream& Stream();

/// The number of threads that oneDNN's next regions on this thread use.
void UseThreads(int num_threads);

}  // namespace collage::onednn
