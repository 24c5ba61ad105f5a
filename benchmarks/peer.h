// peer.h: an executable against a vendor's own API on the same model, interleaved in one process: what the programs
// that compare them share. Same threads, inputs and outputs resident. Which of the two is loaded first decides how
// their weights lie in memory, which may be a percent or two of latency.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collage/runtime/executable.h"
#include "cost/measure/timing.h"
#include "run_main.h"
#include "runtime/compare.h"
#include "runtime/random_inputs.h"

namespace collage {

/// MODEL.onnx MODEL.clg [SECONDS [peer-first] [default-precision]]
struct PeerArguments {
  const char* model;
  const char* executable;
  double seconds = 10;
  bool peer_first = false;
  bool default_precision = false;  ///< the vendor's default precision; else float32
};

/// Nothing, and the usage is told, when there are too few.
inline std::optional<PeerArguments> ReadPeerArguments(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: {} MODEL.onnx MODEL.clg [SECONDS [peer-first] [default-precision]]\n", argv[0]);
    return std::nullopt;
  }
  const auto is_said = [&](std::string_view word) {
    return argc > 4 && std::find(argv + 4, argv + argc, word) != argv + argc;
  };
  return PeerArguments{argv[1], argv[2], argc > 3 ? std::atof(argv[3]) : 10, is_said("peer-first"),
                       is_said("default-precision")};
}

/// Random tensors for an executable's inputs, in their order.
inline std::vector<Tensor> PeerInputs(const Executable& executable) {
  std::vector<Tensor> inputs;
  for (const PortInfo& port : executable.inputs()) {
    inputs.push_back(Tensor::Empty(port.shape, port.dtype));
    FillRandom(inputs.back(), inputs.size());
  }
  return inputs;
}

/// Times runs of `instance` and of the vendor called `peer` in turn, for about so many seconds, and prints both, their
/// ratio (above 1: the executable is slower) and by how much their first results differ. `peer_output` is where the
/// vendor's run leaves its first result.
inline void CompareWithPeer(const PeerArguments& arguments, const Executable& executable, ExecutionInstance& instance,
                            const std::string& peer, const std::function<void()>& run_peer,
                            const std::function<const void*()>& peer_output) {
  const std::vector<std::function<void()>> runs{[&] { instance.Run(); }, run_peer};
  TimeInterleaved(runs, 5);
  double round = 0;
  for (const Samples& samples : TimeInterleaved(runs, 5)) round += samples.p50();
  const bool settle = round / 2 < kSettleBelowSeconds;
  const int rounds = std::clamp(static_cast<int>(arguments.seconds / (settle ? 2 * round : round)), 21, 20'000);
  const std::vector<Samples> samples = TimeInterleaved(runs, rounds, settle);
  const Tensor& output = instance.Output(0);
  const Tensor expected =
      Tensor::View(output.shape(), output.dtype(), const_cast<void*>(peer_output()), nullptr);  // only read
  const double error = Compare(output, expected, {}).max_absolute_error;
  const int threads = executable.plan().num_threads;
  fmt::print(
      "{}: collage {:.3f} ms (min {:.3f}), {} {:.3f} ms (min {:.3f}), ratio of p50 {:.3f}, of minima {:.3f}; "
      "{} thread{}, {} rounds, largest difference {:.1e}\n",
      arguments.executable, samples[0].p50() * 1e3, samples[0].minimum() * 1e3, peer, samples[1].p50() * 1e3,
      samples[1].minimum() * 1e3, samples[0].p50() / samples[1].p50(), samples[0].minimum() / samples[1].minimum(),
      threads, threads == 1 ? "" : "s", rounds, error);
}

}  // namespace collage
