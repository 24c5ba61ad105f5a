// machine.cc: what this machine can do at most, as a line of JSON: what benchmarks compare with.
//   bench_machine [THREADS]
// Float32 products added up per second (registers only), bytes read per second from a core's first cache, its own second
// one ("near"), the last level cache and memory, by all threads together; sizes of the caches.
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "collage/runtime/thread_pool.h"
#include "cost/worker/roofline.h"
#include "cost/worker/timing.h"
#include "run_main.h"
#include "support/machine.h"

namespace collage {
namespace {

int Main(int argc, char** argv) {
  SetNumThreads(argc > 1 ? std::atoi(argv[1]) : 1);
  const nlohmann::json rates{{"threads", NumThreads()},
                             {"multiply_adds_per_second", MeasureMultiplyAddRate()},
                             {"first_bytes_per_second", MeasureReadRate(CacheLevel::kNear)},
                             {"near_bytes_per_second", MeasureReadRate(CacheBytes(CacheLevel::kNear) / 2)},
                             {"shared_bytes_per_second", MeasureReadRate(CacheLevel::kShared)},
                             {"memory_bytes_per_second", MeasureReadRate(CacheLevel::kMemory)},
                             {"first_bytes", CacheSize(1, 32 << 10)},
                             {"near_bytes", CacheBytes(CacheLevel::kNear)},
                             {"shared_bytes", CacheBytes(CacheLevel::kShared)}};
  fmt::print("{}\n", rates.dump());
  return 0;
}

}  // namespace
}  // namespace collage

int main(int argc, char** argv) { return collage::RunMain(collage::Main, argc, argv); }
