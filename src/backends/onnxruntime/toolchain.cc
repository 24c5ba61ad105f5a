// toolchain.cc: the description of ONNX Runtime: sub-graphs go out as ONNX, which the library optimises for the
// processor when the kernel is loaded.
#include "collage/target/toolchain.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <utility>

#include "backends/onnxruntime/blob.h"
#include "backends/onnxruntime/library_file.h"
#include "backends/onnxruntime/support.h"
#include "collage/frontend/onnx_export.h"
#include "collage/target/bundled_files.h"
#include "collage/target/symbolic_sizes.h"
#include "collage/target/toolchain_module.h"
#include "frontend/onnx_export/exporter.h"

namespace collage::onnxruntime {
namespace {

/// The inputs or the outputs of a model: "input_0", "input_1", …
std::vector<Port> PortsOf(const std::vector<Type>& tensors, const char* kind) {
  std::vector<Port> ports;
  for (const Type& type : tensors) {
    const TensorTypeNode& tensor = *AsTensorType(type);
    Port port{fmt::format("{}_{}", kind, ports.size()),
              {},
              static_cast<int>(OnnxTypeOf(tensor.dtype())),
              tensor.dtype().size_bytes()};
    for (const Dim& dim : tensor.shape()) port.shape.push_back(dim.is_any() ? -1 : dim.size());
    if (!port.is_symbolic()) port.bytes *= static_cast<size_t>(NumElements(tensor.static_shape()));
    ports.push_back(std::move(port));
  }
  return ports;
}

std::vector<std::string> NamesOf(const std::vector<Port>& ports) {
  std::vector<std::string> names;
  for (const Port& port : ports) names.push_back(port.name);
  return names;
}

Description Describe(const Function& function) {
  Description description;
  if (const Result<std::filesystem::path> library = FindLibrary(); library.ok()) {
    description.library = library->string();
    description.version = VersionOf(*library);
  }
  std::vector<Type> parameters;
  for (const Var& param : function->params()) {
    for (Type& tensor : FlattenTensorTypes(param->checked_type())) parameters.push_back(std::move(tensor));
  }
  description.inputs = PortsOf(parameters, "input");
  description.outputs = PortsOf(FlattenTensorTypes(function->body()->checked_type()), "output");
  return description;
}

class OnnxRuntimeToolchain : public Toolchain, public HasBundledFiles, public HasSymbolicSizes {
 public:
  std::string name() const override { return "onnxruntime"; }
  std::string description() const override { return "ONNX Runtime's CPU provider: sub-graphs of any shape, as ONNX"; }

  Availability Probe() const override {
    if (const auto missing = WhyModuleMissing({"libcollage_rt_onnxruntime.so"})) {
      return {false, "", *missing, "build again"};
    }
    const Result<std::filesystem::path> library = FindLibrary();
    if (!library.ok()) return {false, "", library.reason().text, kLibraryHint};
    return {true, VersionOf(*library), "", ""};
  }

  /// The library, by a name that it is found by again.
  std::vector<BundledFile> BundledFiles() const override {
    const Result<std::filesystem::path> library = FindLibrary();
    if (!library.ok()) return {};
    std::error_code ignored;
    const std::filesystem::path file = std::filesystem::weakly_canonical(*library, ignored);
    return {{file.string(), BundledName(file)}};
  }

  int priority() const override { return 5; }
  std::string license() const override { return "MIT"; }
  std::vector<std::string> aliases() const override { return {"ort"}; }
  Result<void> SupportsCall(const CallNode& call) const override { return Supports(call); }
  Result<void> SupportsSymbolicSizes(const CallNode& call) const override { return Supports(call); }
  FusionStyle fusion_style() const override { return FusionStyle::kArbitrary; }
  int max_depth() const override { return 4; }
  bool wants_maximal() const override { return true; }

  Result<CompiledPartition> RelayToRuntime(const PartitionRequest& request) const override {
    try {
      const Description description = Describe(request.function);
      const std::string model = ExportOnnx(
          request.function, {.input_names = NamesOf(description.inputs), .output_names = NamesOf(description.outputs)});
      CompiledPartition partition;
      partition.loader = name();
      partition.blob = ToBlob(description, model);
      return partition;
    } catch (const Error& error) {
      if (error.category() != ErrorCategory::kUnsupported) throw;
      return Reason{error.message(), name()};
    }
  }
};

}  // namespace

std::unique_ptr<Toolchain> MakeToolchain() { return std::make_unique<OnnxRuntimeToolchain>(); }

}  // namespace collage::onnxruntime
