// overhead.cc: what a partition costs beyond its kernel: a chain of kernels that do nothing, run through the executor.
#include <fmt/format.h>

#include "cost/machine/transition.h"

int main() {
  const collage::TuningRecord hop = collage::MeasureTransition({.min_seconds = 0.5});
  fmt::print("{:.1f} ns per partition beyond its kernel (p50 of {} batches; p90 {:.1f} ns)\n", hop.p50 * 1e9,
             hop.num_samples, hop.p90 * 1e9);
}
