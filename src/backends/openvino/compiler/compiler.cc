// compiler.cc: the module's entry: translate, let the CPU plugin compile, export.
#include <fmt/format.h>

#include <openvino/pass/serialize.hpp>
#include <sstream>

#include "backends/openvino/compiler/translate.h"
#include "backends/openvino/image/image.h"
#include "backends/openvino/image/plugin.h"
#include "runtime/threads/forked_library.h"

namespace collage::openvino {
namespace {

ov::Core& Core() {
  UseLibraryWithThreads("OpenVINO");
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

CompiledPartition Compile(const PartitionRequest& request, const std::string& precision) {
  const std::shared_ptr<ov::Model> model = Translate(request.function, request.layouts);
  // Written first: compiling may change the model.
  std::ostringstream xml;
  std::ostringstream weights;
  ov::pass::Serialize(xml, weights).run_on_model(model);
  ov::CompiledModel compiled = Core().compile_model(model, "CPU", PluginConfig(request.num_threads, precision));
  std::ostringstream exported;
  compiled.export_model(exported);
  CompiledPartition partition;
  partition.loader = "openvino";
  partition.blob = WriteImage({.version = RuntimeVersion(),
                               .precision = precision,
                               .exported = std::move(exported).str(),
                               .model = std::move(xml).str(),
                               .weights = std::move(weights).str()});
  partition.source = Describe(compiled);
  return partition;
}

}  // namespace
}  // namespace collage::openvino

extern "C" void collage_compile_openvino_partition(const collage::PartitionRequest& request,
                                                   const std::string& precision,
                                                   collage::Result<collage::CompiledPartition>& result) {
  try {
    result = collage::openvino::Compile(request, precision);
  } catch (const collage::openvino::Untranslatable& e) {
    result = collage::Reason{e.text, "openvino"};
  } catch (const ov::Exception& e) {
    result = collage::Reason{std::string("OpenVINO refused: ") + e.what(), "openvino"};
  }
}
