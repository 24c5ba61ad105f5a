// metadata_graph.cc: TVM's form of the metadata section: a graph of nodes, tensors as TVM saves them.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "collage/support/error.h"
#include "ir/base64.h"
#include "ir/metadata.h"
#include "ir/metadata_entries.h"

namespace collage {
namespace metadata {

void Fail(const std::string& message) { throw Error(ErrorCategory::kInput, "metadata: " + message); }

size_t CheckedBytes(const Shape& shape, DataType dtype, const std::string& entry) {
  size_t bytes = dtype.size_bytes();
  bool is_empty = false;
  for (int64_t size : shape) {
    if (size < 0) Fail(entry + " has a negative size");
    if (size == 0) is_empty = true;
    if (size > 0 && bytes > std::numeric_limits<int64_t>::max() / static_cast<size_t>(size))
      Fail(entry + " is too big");
    if (size > 0) bytes *= static_cast<size_t>(size);
  }
  return is_empty ? 0 : bytes;
}

Constant ConstantOf(Shape shape, DataType dtype, std::string_view bytes) {
  Tensor tensor = Tensor::Empty(std::move(shape), dtype);
  if (dtype.is_bool()) {
    std::transform(bytes.begin(), bytes.end(), tensor.data<char>(), [](char byte) { return byte == 0 ? '\0' : '\1'; });
  } else {
    std::copy(bytes.begin(), bytes.end(), tensor.data<char>());
  }
  return MakeConstant(std::move(tensor));
}

namespace {

// ---- tensors as TVM saves them ----

constexpr uint64_t kTensorMagic = 0xDD5E40F096B4A13F;
constexpr int32_t kCpu = 1;  // DLDeviceType

/// DLPack's codes of element types.
enum class DlCode : uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kBFloat = 4 };

DlCode CodeOf(DataType dtype) {
  switch (dtype.code) {
    case DataType::Code::kInt: return DlCode::kInt;
    case DataType::Code::kFloat: return DlCode::kFloat;
    case DataType::Code::kBFloat: return DlCode::kBFloat;
    case DataType::Code::kUInt:
    case DataType::Code::kBool: break;
  }
  return DlCode::kUInt;
}

/// Magic number, a reserved word, device, rank, element type, shape, size in bytes, elements; all little-endian.
std::string TensorBytes(const Tensor& value) {
  std::string bytes;
  const auto add = [&](auto number) { bytes.append(reinterpret_cast<const char*>(&number), sizeof number); };
  add(kTensorMagic);
  add(uint64_t{0});
  add(kCpu);
  add(int32_t{0});
  add(static_cast<int32_t>(value.rank()));
  add(CodeOf(value.dtype()));
  add(value.dtype().bits);
  add(value.dtype().lanes);
  for (const int64_t size : value.shape()) add(size);
  add(static_cast<int64_t>(value.size_bytes()));
  return bytes.append(value.data<char>(), value.size_bytes());
}

std::optional<DataType> DTypeOf(uint8_t code, uint8_t bits, uint16_t lanes) {
  for (DataType dtype : {kBool, kInt8, DataType::Int(16), kInt32, kInt64, kUInt8, DataType::UInt(16),
                         DataType::UInt(32), DataType::UInt(64), kFloat16, kFloat32, kFloat64, kBFloat16}) {
    dtype.lanes = lanes;
    if (lanes > 0 && static_cast<uint8_t>(CodeOf(dtype)) == code && dtype.bits == bits) return dtype;
  }
  return std::nullopt;
}

Constant ReadTensor(const nlohmann::json& json, size_t index) {
  const std::string entry = fmt::format("b64ndarrays[{}]", index);
  const std::optional<std::string> bytes =
      json.is_string() ? FromBase64(json.get_ref<const std::string&>()) : std::nullopt;
  if (!bytes) Fail(entry + " is not base64");
  size_t at = 0;
  const auto take = [&](auto number) {
    if (bytes->size() - at < sizeof number) Fail(entry + " ends too early");
    std::memcpy(&number, bytes->data() + at, sizeof number);
    at += sizeof number;
    return number;
  };
  if (take(uint64_t{}) != kTensorMagic) Fail(entry + " is no saved tensor");
  take(uint64_t{});
  take(int32_t{});
  take(int32_t{});
  const auto rank = take(int32_t{});
  const auto code = take(uint8_t{});
  const auto bits = take(uint8_t{});
  const auto lanes = take(uint16_t{});
  const std::optional<DataType> dtype = DTypeOf(code, bits, lanes);
  if (!dtype)
    Fail(fmt::format("{} has elements of an unknown type: code {}, {} bits, {} lanes", entry, code, bits, lanes));
  if (rank < 0 || static_cast<size_t>(rank) > bytes->size() / sizeof(int64_t)) Fail(entry + " ends too early");
  Shape shape;
  for (int32_t i = 0; i < rank; ++i) shape.push_back(take(int64_t{}));
  const size_t size = CheckedBytes(shape, *dtype, entry);
  const auto stated = take(int64_t{});
  if (stated != static_cast<int64_t>(size) || bytes->size() - at != size) {
    Fail(fmt::format("{} holds {} bytes of elements, {} {} needs {}", entry, bytes->size() - at, dtype->ToString(),
                     ToString(shape), size));
  }
  return ConstantOf(std::move(shape), *dtype, std::string_view(*bytes).substr(at));
}

// ---- TVM's graph of nodes ----

/// Nodes refer to each other by number; 0 is null.
class NodeGraph {
 public:
  explicit NodeGraph(const nlohmann::json& json) : json_(json) {
    if (!json.contains("nodes") || !json["nodes"].is_array()) Fail("the section has no array 'nodes'");
  }

  Metadata Read() {
    Metadata metadata;
    const nlohmann::json& root = Node(json_.contains("root") ? Number(json_["root"], "root") : 0);
    const nlohmann::json& keys = List(root, "keys");
    const nlohmann::json& kinds = List(root, "data");
    for (size_t i = 0; i < std::min(keys.size(), kinds.size()); ++i) {
      const bool is_constants = keys[i] == kConstants;
      if (!keys[i].is_string()) Fail("a map's key is no text");
      if (!is_constants && keys[i] != kDevices) {
        std::vector<std::optional<AttrValue>>& values = metadata.values[keys[i].get<std::string>()];
        for (const nlohmann::json& entry : List(Node(Number(kinds[i], "a map's value")), "data")) {
          values.push_back(ReadValue(Number(entry, "an array's element"), /*depth=*/0));
        }
        continue;
      }
      for (const nlohmann::json& entry : List(Node(Number(kinds[i], "a map's value")), "data")) {
        const nlohmann::json& node = Node(Number(entry, "an array's element"));
        if (is_constants) {
          metadata.constants.push_back(ReadConstantNode(node));
        } else {
          metadata.virtual_devices.push_back(ReadDeviceNode(node));
        }
      }
    }
    return metadata;
  }

 private:
  const nlohmann::json& Node(size_t number) const {
    if (number >= json_["nodes"].size()) Fail(fmt::format("there is no node {}", number));
    return json_["nodes"][number];
  }

  static const nlohmann::json& List(const nlohmann::json& node, const char* name) {
    static const nlohmann::json empty = nlohmann::json::array();
    if (!node.is_object() || !node.contains(name)) return empty;
    if (!node[name].is_array()) Fail(fmt::format("'{}' of a node is no array", name));
    return node[name];
  }

  static size_t Number(const nlohmann::json& json, const std::string& what) {
    if (!json.is_number_unsigned()) Fail(what + " is no number of a node");
    return json.get<size_t>();
  }

  /// Attribute `name` of a node, all of which are texts; empty when there is none.
  static std::string Attribute(const nlohmann::json& node, const char* name) {
    if (!node.is_object() || !node.contains("attrs") || !node["attrs"].is_object() || !node["attrs"].contains(name)) {
      return "";
    }
    const nlohmann::json& value = node["attrs"][name];
    if (!value.is_string()) Fail(fmt::format("attribute '{}' of a node is no text", name));
    return value.get<std::string>();
  }

  static int64_t IntAttribute(const nlohmann::json& node, const char* name) {
    const std::string text = Attribute(node, name);
    int64_t value = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) {
      Fail(fmt::format("attribute '{}' of a node is no integer", name));
    }
    return value;
  }

  static double DoubleAttribute(const nlohmann::json& node, const char* name) {
    const std::string text = Attribute(node, name);
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0') Fail(fmt::format("attribute '{}' of a node is no number", name));
    return value;
  }

  /// The node to which attribute `name` refers; null for none.
  const nlohmann::json* Referred(const nlohmann::json& node, const char* name) const {
    const std::string text = Attribute(node, name);
    if (text.empty() || text == "null" || text == "0") return nullptr;
    const int64_t number = IntAttribute(node, name);
    if (number < 0) Fail(fmt::format("there is no node {}", number));
    return &Node(static_cast<size_t>(number));
  }

  Constant ReadConstantNode(const nlohmann::json& node) const {
    const int64_t number = IntAttribute(node, "data");
    const nlohmann::json& tensors = List(json_, "b64ndarrays");
    if (number < 0 || static_cast<size_t>(number) >= tensors.size()) Fail(fmt::format("there is no tensor {}", number));
    const auto index = static_cast<size_t>(number);
    return ReadTensor(tensors[index], index);
  }

  VirtualDevice ReadDeviceNode(const nlohmann::json& node) const {
    VirtualDevice device;
    const auto small = [&](const char* name) {
      const int64_t value = IntAttribute(node, name);
      if (value != static_cast<int>(value)) Fail(fmt::format("'{}' of a virtual device is too large", name));
      return static_cast<int>(value);
    };
    // TVM's -1 says that any device will do.
    if (const int type = small("device_type_int"); type > 0) device.device_type = type;
    device.device_id = small("virtual_device_id");
    if (const nlohmann::json* scope = Referred(node, "memory_scope")) device.memory_scope = TextOf(*scope);
    if (const nlohmann::json* target = Referred(node, "target")) {
      if (const nlohmann::json* kind = Referred(*target, "kind")) device.target = TextOf(*kind);
    }
    return device;
  }

  /// Reads a value that attributes can hold; nothing for other nodes. Nodes may be shared, so that lists spell out to
  /// more than there are.
  std::optional<AttrValue> ReadValue(size_t number, int depth) {
    if (depth > kDeepestValue || ++num_values_ > kMostValues) Fail("lists nest too deeply or are too long");
    const nlohmann::json& node = Node(number);
    if (number == 0) return AttrValue();
    const std::string type = node.is_object() && node.contains("type_key") && node["type_key"].is_string()
                                 ? node["type_key"].get<std::string>()
                                 : "";
    if (node.is_object() && node.contains("repr_str")) return TextOf(node);
    if (type == "IntImm") return IntAttribute(node, "value");
    if (type == "FloatImm") return DoubleAttribute(node, "value");
    if (type == "Target") {
      const nlohmann::json* kind = Referred(node, "kind");
      return kind == nullptr ? std::nullopt : std::optional<AttrValue>(TextOf(*kind));
    }
    if (type != "Array" && type != "Map") return std::nullopt;
    AttrValue::List list;
    const nlohmann::json& keys = List(node, "keys");
    const nlohmann::json& items = List(node, "data");
    for (size_t i = 0; i < items.size(); ++i) {
      const std::optional<AttrValue> item = ReadValue(Number(items[i], "an array's element"), depth + 1);
      if (!item) return std::nullopt;
      if (i < keys.size() && keys[i].is_string()) {
        list.emplace_back(AttrValue::List{keys[i].get<std::string>(), *item});
      } else if (type == "Map" && i % 2 == 1) {  // keys and values in turn
        list.back() = AttrValue::List{list.back(), *item};
      } else {
        list.push_back(*item);
      }
    }
    return list;
  }

  /// Returns the text of a text node.
  static std::string TextOf(const nlohmann::json& node) {
    if (!node.is_object() || !node.contains("repr_str")) return "";
    if (!node["repr_str"].is_string()) Fail("'repr_str' of a node is no text");
    return node["repr_str"].get<std::string>();
  }

  static constexpr int kDeepestValue = 50;
  static constexpr size_t kMostValues = 100000;

  const nlohmann::json& json_;
  size_t num_values_ = 0;
};

}  // namespace

Metadata ReadNodeGraph(const nlohmann::json& json) { return NodeGraph(json).Read(); }

}  // namespace metadata

std::string WriteMetadata(const std::vector<Constant>& constants) {
  // Node 0 is null, 1 the map, 2 its array, the constants follow. All their fields must be there, though empty.
  std::string numbers, nodes, tensors;
  for (size_t i = 0; i < constants.size(); ++i) {
    numbers += fmt::format("{}{}", i == 0 ? "" : ", ", i + 3);
    nodes += fmt::format(R"(,
{{"type_key": "relay.Constant", "attrs": {{"_checked_type_": "0", "data": "{}", "span": "0", "virtual_device_": "0"}}}})",
                         i);
    tensors += fmt::format("{}\n\"{}\"", i == 0 ? "" : ",", ToBase64(metadata::TensorBytes(constants[i]->value())));
  }
  return fmt::format(R"({{"root": 1,
"nodes": [
{{"type_key": ""}},
{{"type_key": "Map", "keys": ["{}"], "data": [2]}},
{{"type_key": "Array", "data": [{}]}}{}],
"b64ndarrays": [{}],
"attrs": {{"tvm_version": "0.18.0"}}}}
)",
                     metadata::kConstants, numbers, nodes, tensors);
}

}  // namespace collage
