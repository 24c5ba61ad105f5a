// machine.cc: what this machine can do at most, as a line of JSON: what benchmarks compare with.
//   bench_machine [THREADS]
// Float32 products added up per second (registers only), bytes read per second from a core's first cache, its own
// second one ("near"), the last level cache and memory, bytes read and written per second by copies there, by all
// threads together; sizes of the caches.
#include "support/machine.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "collage/runtime/thread_pool.h"
#include "cost/machine/roofline.h"
#include "cost/measure/timing.h"
#include "run_main.h"

namespace collage {
namespace {

constexpr int64_t kInFirst = 16 << 10;  // bytes
constexpr int64_t kMost = 256 << 20;

int Main(int argc, char** argv) {
  SetNumThreads(argc > 1 ? std::atoi(argv[1]) : 1);
  const int64_t near = CacheBytes(CacheLevel::kNear);
  const int64_t shared = CacheBytes(CacheLevel::kShared);
  const nlohmann::json rates{{"threads", NumThreads()},
                             {"multiply_adds_per_second", MeasureMultiplyAddRate()},
                             {"first_bytes_per_second", MeasureReadRate(CacheLevel::kNear)},
                             {"near_bytes_per_second", MeasureReadRate(near / 2)},
                             {"shared_bytes_per_second", MeasureReadRate(CacheLevel::kShared)},
                             {"memory_bytes_per_second", MeasureReadRate(CacheLevel::kMemory)},
                             {"first_copied_per_second", MeasureCopyRate(kInFirst)},
                             {"near_copied_per_second", MeasureCopyRate(near / 2)},
                             {"shared_copied_per_second", MeasureCopyRate(std::min(4 * near, shared / 2))},
                             {"memory_copied_per_second", MeasureCopyRate(std::min(4 * shared, kMost) / NumThreads())},
                             {"first_bytes", CacheSize(1, 32 << 10)},
                             {"near_bytes", near},
                             {"shared_bytes", shared}};
  fmt::print("{}\n", rates.dump());
  return 0;
}

}  // namespace
}  // namespace collage

int main(int argc, char** argv) { return collage::RunMain(collage::Main, argc, argv); }
