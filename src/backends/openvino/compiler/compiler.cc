// compiler.cc: the module's entry: translate, let the CPU plugin compile, export.
#include <fmt/format.h>

#include <sstream>

#include "backends/openvino/compiler/translate.h"

namespace collage::openvino {
namespace {

ov::Core& Core() {
  static ov::Core core;
  return core;
}

/// One line per kernel of the compiled model: what the plugin made of the graph.
std::string Describe(const ov::CompiledModel& model) {
  std::string text;
  for (const auto& node : model.get_runtime_model()->get_ordered_ops()) {
    const auto info = [&](const char* key) {
      const auto it = node->get_rt_info().find(key);
      return it == node->get_rt_info().end() ? std::string("-") : it->second.as<std::string>();
    };
    text += fmt::format("{:<18} {:<28} {:<12} {}\n", info("layerType"), info("primitiveType"), info("outputLayouts"),
                        info("originalLayersNames"));
  }
  return text;
}

CompiledPartition Compile(const PartitionRequest& request) {
  const std::shared_ptr<ov::Model> model = Translate(request.function, request.layouts);
  ov::CompiledModel compiled = Core().compile_model(
      model, "CPU",
      {ov::hint::performance_mode(ov::hint::PerformanceMode::LATENCY), ov::hint::inference_precision(ov::element::f32),
       ov::inference_num_threads(request.num_threads), ov::num_streams(1), ov::hint::enable_cpu_pinning(false)});
  std::ostringstream stream;
  compiled.export_model(stream);
  const std::string exported = std::move(stream).str();
  CompiledPartition partition;
  partition.loader = "openvino";
  const auto bytes = std::as_bytes(std::span(exported));
  partition.blob.assign(bytes.begin(), bytes.end());
  partition.source = Describe(compiled);
  return partition;
}

}  // namespace
}  // namespace collage::openvino

extern "C" void collage_compile_partition(const collage::PartitionRequest& request,
                                          collage::Result<collage::CompiledPartition>& result) {
  try {
    result = collage::openvino::Compile(request);
  } catch (const collage::openvino::Untranslatable& e) {
    result = collage::Reason{e.text, "openvino"};
  } catch (const ov::Exception& e) {
    result = collage::Reason{std::string("OpenVINO refused: ") + e.what(), "openvino"};
  }
}
