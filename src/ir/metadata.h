// metadata.h: the section behind a module's text that holds the values of its constants, and virtual devices.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collage/ir/expr.h"

namespace collage {

/// The section as TVM 0.18 writes and reads it: JSON of a graph of nodes, `{"root": …, "nodes": […], "b64ndarrays":
/// […]}`, whose root is a map from kinds ("relay.Constant") to arrays. A constant's node has the number of its tensor.
std::string WriteMetadata(const std::vector<Constant>& constants);

struct Metadata {
  std::vector<Constant> constants;
  std::vector<VirtualDevice> virtual_devices;
  /// Other kinds, which attributes may be: strings, numbers, lists of these, maps as lists of pairs, targets as their
  /// kind's name. Nothing for an entry that is none of these.
  std::map<std::string, std::vector<std::optional<AttrValue>>, std::less<>> values;
};

/// Reads a section: a graph of nodes as TVM 0.18 writes, and a short form for texts written by hand,
/// `{"relay.Constant": [{"dtype": …, "shape": […], "data": base64 of the row-major little-endian elements}, …],
/// "VirtualDevice": [{"device_type": 1, …}, …]}`. Throws kInput saying which entry is wrong and how.
Metadata ReadMetadata(std::string_view json);

/// `device_type`, `virtual_device_id`, `target` and `memory_scope`, all optional. Throws kInput for anything else.
VirtualDevice VirtualDeviceFromAttrs(const Attrs& attrs);
Attrs ToAttrs(const VirtualDevice& device);

}  // namespace collage
