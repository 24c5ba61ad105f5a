// openvino_peer.cc: an executable against OpenVINO's own C++ API on the same ONNX file (peer.h):
//   bench_openvino_peer MODEL.onnx MODEL.clg [SECONDS [peer-first] [default-precision]]
// Float32, or what OpenVINO computes in where nobody tells it. It reads the file with its own front end.
#include <openvino/openvino.hpp>

#include "peer.h"

namespace collage {
namespace {

int CompareEngines(int argc, char** argv) {
  const std::optional<PeerArguments> arguments = ReadPeerArguments(argc, argv);
  if (!arguments) return 2;
  const Executable executable = Executable::Load(arguments->executable);
  std::optional<ExecutionInstance> instance;
  if (!arguments->peer_first) instance.emplace(executable);

  ov::Core core;
  const std::shared_ptr<ov::Model> model = core.read_model(arguments->model);
  std::map<std::string, ov::PartialShape> shapes;
  for (const PortInfo& port : executable.inputs()) {
    shapes[port.name] = ov::PartialShape(std::vector<ov::Dimension>(port.shape.begin(), port.shape.end()));
  }
  model->reshape(shapes);
  ov::AnyMap properties{ov::hint::performance_mode(ov::hint::PerformanceMode::LATENCY),
                        ov::inference_num_threads(executable.plan().num_threads), ov::num_streams(1),
                        ov::hint::enable_cpu_pinning(false)};
  if (!arguments->default_precision) properties.insert(ov::hint::inference_precision(ov::element::f32));
  ov::CompiledModel compiled = core.compile_model(model, "CPU", properties);
  const std::string precision = " in " + compiled.get_property(ov::hint::inference_precision).get_type_name();
  ov::InferRequest request = compiled.create_infer_request();
  if (arguments->peer_first) instance.emplace(executable);
  const std::vector<Tensor> inputs = PeerInputs(executable);
  for (size_t i = 0; i < inputs.size(); ++i) {
    instance->SetInput(i, inputs[i]);
    const auto port = compiled.input(executable.inputs()[i].name);
    request.set_tensor(port, ov::Tensor(port.get_element_type(), port.get_shape(), inputs[i].raw()));
  }
  const auto output = compiled.output(executable.outputs()[0].name);
  CompareWithPeer(
      *arguments, executable, *instance, arguments->default_precision ? "OpenVINO" + precision : "OpenVINO",
      [&] { request.infer(); }, [&] { return request.get_tensor(output).data(); });
  return 0;
}

}  // namespace
}  // namespace collage

int main(int argc, char** argv) { return collage::RunMain(collage::CompareEngines, argc, argv); }
