// openvino_peer.cc: an executable against OpenVINO's own C++ API on the same ONNX file, interleaved in one process:
//   bench_openvino_peer MODEL.onnx MODEL.clg [SECONDS [peer-first]]
// Same threads, float32, inputs and outputs resident. OpenVINO reads the file with its own front end. Which of the two
// is loaded first decides how their weights lie in memory, which may be a percent or two of latency.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <openvino/openvino.hpp>
#include <optional>
#include <string_view>

#include "collage/runtime/executable.h"
#include "cost/worker/timing.h"
#include "runtime/random_inputs.h"

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: bench_openvino_peer MODEL.onnx MODEL.clg [SECONDS [peer-first]]\n");
    return 2;
  }
  const double seconds = argc > 3 ? std::atof(argv[3]) : 10;
  const collage::Executable executable = collage::Executable::Load(argv[2]);
  std::optional<collage::ExecutionInstance> instance;
  const bool peer_first = argc > 4 && std::string_view(argv[4]) == "peer-first";
  if (!peer_first) instance.emplace(executable);
  const int threads = executable.plan().num_threads;

  ov::Core core;
  std::shared_ptr<ov::Model> model = core.read_model(argv[1]);
  std::map<std::string, ov::PartialShape> shapes;
  std::vector<collage::Tensor> inputs;
  for (const collage::PortInfo& port : executable.inputs()) {
    shapes[port.name] = ov::PartialShape(std::vector<ov::Dimension>(port.shape.begin(), port.shape.end()));
    inputs.push_back(collage::Tensor::Empty(port.shape, port.dtype));
    collage::FillRandom(inputs.back(), inputs.size());
  }
  model->reshape(shapes);
  ov::CompiledModel compiled = core.compile_model(
      model, "CPU",
      {ov::hint::performance_mode(ov::hint::PerformanceMode::LATENCY), ov::hint::inference_precision(ov::element::f32),
       ov::inference_num_threads(threads), ov::num_streams(1), ov::hint::enable_cpu_pinning(false)});
  ov::InferRequest request = compiled.create_infer_request();
  if (peer_first) instance.emplace(executable);
  for (size_t i = 0; i < inputs.size(); ++i) {
    instance->SetInput(i, inputs[i]);
    const auto port = compiled.input(executable.inputs()[i].name);
    request.set_tensor(port, ov::Tensor(port.get_element_type(), port.get_shape(), inputs[i].raw()));
  }
  const std::vector<std::function<void()>> runs{[&] { instance->Run(); }, [&] { request.infer(); }};
  collage::TimeInterleaved(runs, 5);
  double round = 0;
  for (const collage::Samples& samples : collage::TimeInterleaved(runs, 5)) round += samples.p50();
  const bool settle = round / 2 < collage::kSettleBelowSeconds;
  const int rounds = std::clamp(static_cast<int>(seconds / (settle ? 2 * round : round)), 21, 20'000);
  const std::vector<collage::Samples> samples = collage::TimeInterleaved(runs, rounds, settle);
  const collage::Tensor& output = instance->Output(0);
  const ov::Tensor expected = request.get_tensor(compiled.output(executable.outputs()[0].name));
  double error = 0;
  for (int64_t i = 0; i < output.num_elements() && output.dtype() == collage::kFloat32; ++i) {
    error = std::max(error, static_cast<double>(std::abs(output.data<float>()[i] - expected.data<float>()[i])));
  }
  fmt::print(
      "{}: collage {:.3f} ms (min {:.3f}), OpenVINO {:.3f} ms (min {:.3f}), ratio of p50 {:.3f}, of minima {:.3f}; "
      "{} thread{}, {} rounds, largest difference {:.1e}\n",
      argv[2], samples[0].p50() * 1e3, samples[0].minimum() * 1e3, samples[1].p50() * 1e3, samples[1].minimum() * 1e3,
      samples[0].p50() / samples[1].p50(), samples[0].minimum() / samples[1].minimum(), threads,
      threads == 1 ? "" : "s", rounds, error);
}
