// engine.cc: a blob is a length, that many bytes of JSON, and the library's bytes.
#include "backends/tensorrt/engine.h"

#include <nlohmann/json.hpp>

#include "backends/cuda_driver/blob.h"
#include "collage/support/error.h"
#include "support/json_fields.h"

namespace collage::tensorrt {

template <typename Self, typename Visitor>
requires IsMessage<Self, Port>
void VisitFields(Self& port, Visitor& visit) {
  visit.Field("name", port.name);
  visit.Field("dtype", port.dtype);
  visit.Field("shape", port.shape);
}

template <typename Self, typename Visitor>
requires IsMessage<Self, Engine>
void VisitFields(Self& engine, Visitor& visit) {
  visit.Field("module", engine.module);
  visit.Field("version", engine.version);
  visit.Field("architecture", engine.architecture);
  visit.Field("inputs", engine.inputs);
  visit.Field("outputs", engine.outputs);
}

namespace {

[[noreturn]] void Fail() { throw Error(ErrorCategory::kCorrupt, "a kernel's engine cannot be read", "tensorrt"); }

}  // namespace

std::string Describe(const Engine& engine) { return ToJson(engine).dump(); }

Result<Library> LibraryFrom(const std::string& text) {
  const auto json = nlohmann::json::parse(text);
  if (json.contains("reason")) return Reason{json.at("reason").get<std::string>(), "tensorrt"};
  return Library{json.at("module"), json.at("version"), json.at("architectures")};
}

std::vector<std::byte> ToBlob(const Engine& engine) {
  return cuda_driver::JoinBlob(Describe(engine), std::as_bytes(std::span(engine.bytes)));
}

Engine EngineFrom(std::span<const std::byte> blob) {
  const auto parts = cuda_driver::SplitBlob(blob);
  if (!parts) Fail();
  Engine engine;
  try {
    FromJson(nlohmann::json::parse(parts->text), engine);
  } catch (const nlohmann::json::exception&) {
    Fail();
  } catch (const Error&) {
    Fail();
  }
  engine.bytes.assign(reinterpret_cast<const char*>(parts->rest.data()), parts->rest.size());
  return engine;
}

}  // namespace collage::tensorrt
