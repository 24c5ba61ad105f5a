// blob.cc: the description of a kernel as JSON, before its model.
#include "backends/onnxruntime/blob.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>

#include "collage/support/error.h"

namespace collage::onnxruntime {
namespace {

using Json = nlohmann::json;

Json ToJson(const std::vector<Port>& ports) {
  Json rows = Json::array();
  for (const Port& port : ports) {
    rows.push_back(
        {{"name", port.name}, {"shape", port.shape}, {"element_type", port.element_type}, {"bytes", port.bytes}});
  }
  return rows;
}

std::vector<Port> PortsFrom(const Json& rows) {
  std::vector<Port> ports;
  for (const Json& row : rows) {
    ports.push_back({row.at("name"), row.at("shape"), row.at("element_type"), row.at("bytes")});
  }
  return ports;
}

[[noreturn]] void Damaged(const std::string& how) {
  throw Error(ErrorCategory::kCorrupt, "no kernel of ONNX Runtime: " + how);
}

}  // namespace

bool Port::is_symbolic() const { return std::ranges::find(shape, -1) != shape.end(); }

std::vector<std::byte> ToBlob(const Description& description, const std::string& model) {
  const std::string text = Json{{"library", description.library},
                                {"version", description.version},
                                {"inputs", ToJson(description.inputs)},
                                {"outputs", ToJson(description.outputs)}}
                               .dump();
  const uint64_t size = text.size();
  std::vector<std::byte> blob(sizeof size);
  std::memcpy(blob.data(), &size, sizeof size);
  for (const std::string_view part : {std::string_view(text), std::string_view(model)}) {
    const auto bytes = std::as_bytes(std::span(part));
    blob.insert(blob.end(), bytes.begin(), bytes.end());
  }
  return blob;
}

BlobParts ReadBlob(std::span<const std::byte> blob) {
  uint64_t size = 0;
  if (blob.size() < sizeof size) Damaged("too short");
  std::memcpy(&size, blob.data(), sizeof size);
  const std::span<const std::byte> rest = blob.subspan(sizeof size);
  if (size > rest.size()) Damaged("its description is cut off");
  const std::string_view text(reinterpret_cast<const char*>(rest.data()), size);
  try {
    const Json json = Json::parse(text);
    return {{json.value("library", ""), json.value("version", ""), PortsFrom(json.at("inputs")),
             PortsFrom(json.at("outputs"))},
            rest.subspan(size)};
  } catch (const Json::exception& error) {
    Damaged(error.what());
  }
}

}  // namespace collage::onnxruntime
