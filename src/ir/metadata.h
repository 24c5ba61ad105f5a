// metadata.h: the section behind a module's text that holds the values of its constants, and virtual devices.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collage/ir/expr.h"

namespace collage {

/// JSON: `{"relay.Constant": [{"dtype": …, "shape": […], "data": base64 of the row-major little-endian elements}, …]}`.
std::string WriteMetadata(const std::vector<Constant>& constants);

struct Metadata {
  std::vector<Constant> constants;
  std::vector<VirtualDevice> virtual_devices;
};

/// Reads a section: what WriteMetadata wrote, and `"VirtualDevice": [{"device_type": 1, …}, …]`, which hand-written
/// texts may have. Throws kInput saying which entry is wrong and how.
Metadata ReadMetadata(std::string_view json);

/// `device_type`, `virtual_device_id`, `target` and `memory_scope`, all optional. Throws kInput for anything else.
VirtualDevice VirtualDeviceFromAttrs(const Attrs& attrs);
Attrs ToAttrs(const VirtualDevice& device);

}  // namespace collage
