// metadata.cc: constants to JSON and back; elements travel as base64 (RFC 4648, section 4).
#include "ir/metadata.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "collage/support/error.h"

namespace collage {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr const char* kConstants = "relay.Constant";
constexpr const char* kDevices = "VirtualDevice";

std::string ToBase64(const unsigned char* data, size_t size) {
  std::string text;
  text.reserve((size + 2) / 3 * 4);
  for (size_t i = 0; i < size; i += 3) {
    const size_t rest = std::min<size_t>(3, size - i);
    uint32_t bits = static_cast<uint32_t>(data[i]) << 16;
    if (rest > 1) bits |= static_cast<uint32_t>(data[i + 1]) << 8;
    if (rest > 2) bits |= data[i + 2];
    for (size_t digit = 0; digit < 4; ++digit) {
      text += digit <= rest ? kDigits[bits >> (18 - 6 * digit) & 63] : '=';
    }
  }
  return text;
}

/// Writes exactly `size` bytes; false when `text` is not base64 of that many.
bool FromBase64(std::string_view text, unsigned char* data, size_t size) {
  if (text.size() != (size + 2) / 3 * 4) return false;
  std::array<int, 256> value;
  value.fill(-1);
  for (size_t i = 0; i < kDigits.size(); ++i) value[static_cast<unsigned char>(kDigits[i])] = static_cast<int>(i);
  for (size_t i = 0, from = 0; i < size; i += 3, from += 4) {
    const size_t rest = std::min<size_t>(3, size - i);
    uint32_t bits = 0;
    for (size_t digit = 0; digit < 4; ++digit) {
      const char c = text[from + digit];
      const int six = digit <= rest ? value[static_cast<unsigned char>(c)] : (c == '=' ? 0 : -1);
      if (six < 0) return false;
      bits |= static_cast<uint32_t>(six) << (18 - 6 * digit);
    }
    for (size_t byte = 0; byte < rest; ++byte) data[i + byte] = static_cast<unsigned char>(bits >> (16 - 8 * byte));
  }
  return true;
}

[[noreturn]] void Fail(const std::string& message) { throw Error(ErrorCategory::kInput, "metadata: " + message); }

/// Elements of `shape`; fails for what no memory holds, before anything is allocated.
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
  Tensor tensor = Tensor::Empty(std::move(shape), dtype);
  if (!FromBase64(data, tensor.data<unsigned char>(), bytes)) Fail(entry + " holds data that is not base64");
  return MakeConstant(std::move(tensor));
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

}  // namespace

std::string WriteMetadata(const std::vector<Constant>& constants) {
  std::string text = fmt::format("{{\"{}\": [", kConstants);
  for (size_t i = 0; i < constants.size(); ++i) {
    const Tensor& value = constants[i]->value();
    text += fmt::format("{}\n{{\"dtype\": \"{}\", \"shape\": {}, \"data\": \"{}\"}}", i == 0 ? "" : ",",
                        value.dtype().ToString(), nlohmann::json(value.shape()).dump(),
                        ToBase64(value.data<unsigned char>(), value.size_bytes()));
  }
  return text + "\n]}\n";
}

Metadata ReadMetadata(std::string_view text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) Fail("the section is not a JSON object");
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
