// metadata.cc: the metadata section of a text, and its short form.
#include "ir/metadata.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "collage/support/error.h"
#include "ir/base64.h"
#include "ir/metadata_entries.h"

namespace collage {
namespace {

using metadata::CheckedBytes;
using metadata::ConstantOf;
using metadata::Fail;
using metadata::kConstants;
using metadata::kDevices;

// ---- the short form ----

Constant ReadConstant(const nlohmann::json& json, size_t index) {
  const std::string entry = fmt::format("{}[{}]", kConstants, index);
  const auto has = [&](const char* key) { return json.is_object() && json.contains(key); };
  if (!has("dtype") || !has("shape") || !has("data") || !json["dtype"].is_string() || !json["shape"].is_array() ||
      !json["data"].is_string()) {
    Fail(entry + " needs a 'dtype', a 'shape' and 'data'");
  }
  if (!DataType::IsName(json["dtype"].get<std::string>()))
    Fail(entry + " has an unknown dtype " + json["dtype"].dump());
  const DataType dtype = DataType::FromString(json["dtype"].get<std::string>());
  Shape shape;
  for (const nlohmann::json& size : json["shape"]) {
    if (!size.is_number_integer()) Fail(entry + " has a shape that is no list of integers");
    shape.push_back(size.get<int64_t>());
  }
  const auto& data = json["data"].get_ref<const std::string&>();
  const size_t bytes = CheckedBytes(shape, dtype, entry);
  if (data.size() / 4 != (bytes + 2) / 3) {
    Fail(fmt::format("{} holds {} characters of data, {} {} needs {}", entry, data.size(), dtype.ToString(),
                     ToString(shape), (bytes + 2) / 3 * 4));
  }
  const std::optional<std::string> elements = FromBase64(data);
  if (!elements || elements->size() != bytes) Fail(entry + " holds data that is not base64");
  return ConstantOf(std::move(shape), dtype, *elements);
}

VirtualDevice ReadDevice(const nlohmann::json& json, size_t index) {
  const std::string entry = fmt::format("{}[{}]", kDevices, index);
  if (!json.is_object()) Fail(entry + " is not a JSON object");
  Attrs attrs;
  for (const auto& [key, value] : json.items()) {
    if (value.is_number_integer()) {
      attrs.Set(key, value.get<int64_t>());
    } else if (value.is_string()) {
      attrs.Set(key, value.get<std::string>());
    } else {
      Fail(fmt::format("{} has '{}', which is neither an integer nor a string", entry, key));
    }
  }
  try {
    return VirtualDeviceFromAttrs(attrs);
  } catch (const Error& error) {
    Fail(entry + ": " + error.message());
  }
}

Metadata ReadShortForm(const nlohmann::json& json) {
  Metadata metadata;
  for (const auto& [key, entries] : json.items()) {
    if ((key != kConstants && key != kDevices) || !entries.is_array()) {
      Fail(fmt::format("unknown entry '{}', expected '{}' or '{}'", key, kConstants, kDevices));
    }
    for (const nlohmann::json& entry : entries) {
      if (key == kConstants) {
        metadata.constants.push_back(ReadConstant(entry, metadata.constants.size()));
      } else {
        metadata.virtual_devices.push_back(ReadDevice(entry, metadata.virtual_devices.size()));
      }
    }
  }
  return metadata;
}

}  // namespace

Metadata ReadMetadata(std::string_view text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) Fail("the section is not a JSON object");
  return json.contains("nodes") || json.contains("root") ? metadata::ReadNodeGraph(json) : ReadShortForm(json);
}

VirtualDevice VirtualDeviceFromAttrs(const Attrs& attrs) {
  VirtualDevice device;
  for (const auto& [name, value] : attrs) {
    const bool is_number = name == "device_type" || name == "virtual_device_id";
    const bool is_text = name == "target" || name == "memory_scope";
    const int64_t* number = value.as_int();
    if (is_number && number != nullptr && *number == static_cast<int>(*number)) {
      (name == "device_type" ? device.device_type : device.device_id) = static_cast<int>(*number);
    } else if (is_text && value.as_string() != nullptr) {
      (name == "target" ? device.target : device.memory_scope) = *value.as_string();
    } else if (!is_text || !value.is_none()) {
      throw Error(ErrorCategory::kInput,
                  is_number || is_text
                      ? fmt::format("'{}' of a virtual device must be {}", name, is_number ? "an integer" : "a string")
                      : fmt::format("a virtual device has no '{}'", name),
                  "", "it has device_type, virtual_device_id, target and memory_scope");
    }
  }
  return device;
}

Attrs ToAttrs(const VirtualDevice& device) {
  const VirtualDevice none;
  Attrs attrs;
  if (device.device_type != none.device_type) attrs.Set("device_type", device.device_type);
  if (device.device_id != none.device_id) attrs.Set("virtual_device_id", device.device_id);
  if (device.target != none.target) attrs.Set("target", device.target);
  if (device.memory_scope != none.memory_scope) attrs.Set("memory_scope", device.memory_scope);
  return attrs;
}

}  // namespace collage
