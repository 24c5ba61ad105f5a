// plugin.h: how the CPU plugin is told to compute, the same when a partition is compiled and when its kernel is loaded.
#pragma once

#include <openvino/openvino.hpp>
#include <string>
#include <string_view>

namespace collage::openvino {

/// For one inference at a time on `num_threads` threads, which the plugin does not pin. `precision`: f32, bf16 or f16.
inline ov::AnyMap PluginConfig(int num_threads, std::string_view precision) {
  return {ov::hint::performance_mode(ov::hint::PerformanceMode::LATENCY),
          ov::hint::inference_precision(ov::element::Type(std::string(precision))),
          ov::inference_num_threads(num_threads), ov::num_streams(1), ov::hint::enable_cpu_pinning(false)};
}

/// Returns the version of the loaded library: plugins only read exports of their own version.
inline std::string RuntimeVersion() { return ov::get_openvino_version().buildNumber; }

}  // namespace collage::openvino
