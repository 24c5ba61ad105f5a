// onnxruntime_peer.cc: an executable against ONNX Runtime's own C API on the same ONNX file (peer.h):
//   bench_onnxruntime_peer MODEL.onnx MODEL.clg [SECONDS [peer-first]]
// The library is that of the wheel, its session has the options of the kernels' (loader/library.h): all optimisations,
// the executable's threads, which do not spin between runs, its default arena. Symbolic sizes get the
// executable's shapes before it optimises; inputs and outputs are bound once.
#include <fstream>

#include "backends/onnxruntime/loader/library.h"
#include "frontend/onnx_export/exporter.h"
#include "onnx/onnx-ml.pb.h"
#include "peer.h"

namespace collage {
namespace {

namespace ort = onnxruntime;

/// A session over a file, with tensors of the executable's shapes bound.
class Session {
 public:
  Session(const std::string& path, const Executable& executable) : library_(ort::Library::Get("")) {
    const ort::SessionOptionsPtr options = ort::MakeSessionOptions(library_, executable.plan().num_threads);
    const auto* const_options = static_cast<const ort::SessionOptions*>(options.get());
    const std::string bound = WithShapes(path, executable);
    if (bound.empty()) {
      Check<ort::CreateSession>(library_.env(), path.c_str(), const_options, &session_);
    } else {
      Check<ort::CreateSessionFromArray>(library_.env(), static_cast<const void*>(bound.data()), bound.size(),
                                         const_options, &session_);
    }
    Check<ort::CreateIoBinding>(session_, &binding_);
  }

  void BindInput(const PortInfo& port, const Tensor& tensor) {
    Check<ort::BindInput>(binding_, port.name.c_str(), static_cast<const ort::Value*>(Wrap(tensor)));
  }
  void BindOutput(const PortInfo& port, const Tensor& tensor) {
    Check<ort::BindOutput>(binding_, port.name.c_str(), static_cast<const ort::Value*>(Wrap(tensor)));
  }

  void Run() {
    Check<ort::RunWithBinding>(session_, static_cast<const ort::RunOptions*>(nullptr),
                               static_cast<const ort::IoBinding*>(binding_));
  }

 private:
  template <typename Entry, typename... Args>
  void Check(Args... args) {
    library_.Check<Entry>(ErrorCategory::kInternal, "run the model", args...);
  }

  /// The model with the shapes of the executable's inputs; "" when it states them itself. (Names of symbolic sizes say
  /// nothing: a file may call all of them "?".)
  static std::string WithShapes(const std::string& path, const Executable& executable) {
    onnx::ModelProto model;
    std::ifstream file(path, std::ios::binary);
    if (!model.ParseFromIstream(&file)) throw Error(ErrorCategory::kInput, "cannot be read as an ONNX model", path);
    bool is_open = false;
    for (onnx::ValueInfoProto& input : *model.mutable_graph()->mutable_input()) {
      for (const PortInfo& port : executable.inputs()) {
        if (port.name != input.name()) continue;
        auto& shape = *input.mutable_type()->mutable_tensor_type()->mutable_shape();
        for (int axis = 0; axis < shape.dim_size(); ++axis) {
          is_open = is_open || !shape.dim(axis).has_dim_value();
          shape.mutable_dim(axis)->set_dim_value(port.shape[static_cast<size_t>(axis)]);
        }
      }
    }
    return is_open ? model.SerializeAsString() : "";
  }

  ort::Value* Wrap(const Tensor& tensor) {
    ort::Value* value = nullptr;
    Check<ort::CreateTensorWithDataAsOrtValue>(library_.memory(), tensor.raw(), tensor.size_bytes(),
                                               tensor.shape().data(), tensor.shape().size(),
                                               static_cast<int>(OnnxTypeOf(tensor.dtype())), &value);
    return value;  // lives as long as the process, as everything here
  }

  const ort::Library& library_;
  ort::Session* session_ = nullptr;
  ort::IoBinding* binding_ = nullptr;
};

int CompareEngines(int argc, char** argv) {
  const std::optional<PeerArguments> arguments = ReadPeerArguments(argc, argv);
  if (!arguments) return 2;
  const Executable executable = Executable::Load(arguments->executable);
  std::optional<ExecutionInstance> instance;
  if (!arguments->peer_first) instance.emplace(executable);
  Session session(arguments->model, executable);
  if (arguments->peer_first) instance.emplace(executable);

  const std::vector<PortInfo> input_ports = executable.inputs();
  const std::vector<Tensor> inputs = PeerInputs(executable);
  for (size_t i = 0; i < inputs.size(); ++i) {
    instance->SetInput(i, inputs[i]);
    session.BindInput(input_ports[i], inputs[i]);
  }
  std::vector<Tensor> outputs;
  for (const PortInfo& port : executable.outputs()) {
    outputs.push_back(Tensor::Empty(port.shape, port.dtype));
    session.BindOutput(port, outputs.back());
  }
  CompareWithPeer(
      *arguments, executable, *instance, "ONNX Runtime", [&] { session.Run(); }, [&] { return outputs[0].raw(); });
  return 0;
}

}  // namespace
}  // namespace collage

int main(int argc, char** argv) { return collage::RunMain(collage::CompareEngines, argc, argv); }
