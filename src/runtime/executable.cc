// executable.cc: the file format.
//
//   magic "CLGE", version u32, offset u64 and size u64 and crc u32 of the plan, zero u32   (32 bytes)
//   constants and blobs, each at a multiple of 64
//   the plan: JSON, last, so that it can hold the places of everything before it
#include "collage/runtime/executable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "collage/support/error.h"
#include "runtime/executable_state.h"
#include "runtime/native_loader.h"
#include "runtime/plan_json.h"
#include "support/file.h"
#include "support/hash.h"
#include "support/machine.h"

namespace collage {
namespace {

using Json = nlohmann::json;

constexpr uint32_t kMagic = 0x45474c43;  // "CLGE"
constexpr uint32_t kFormatVersion = 1;
constexpr size_t kAlignment = 64;

struct FileHeader {
  uint32_t magic;
  uint32_t version;
  uint64_t plan_offset;
  uint64_t plan_size;
  uint32_t plan_crc;
  uint32_t reserved;
};
static_assert(sizeof(FileHeader) == 32);

[[noreturn]] void Damaged(const std::string& what, const std::filesystem::path& path) {
  throw Error(ErrorCategory::kCorrupt, what, path.string(), "compile the model again");
}

FileHeader ReadHeader(std::span<const std::byte> bytes, const std::filesystem::path& path) {
  FileHeader header{};
  if (bytes.size() < sizeof header) Damaged("not a Collage executable: too short", path);
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kMagic) Damaged("not a Collage executable: wrong magic number", path);
  if (header.version != kFormatVersion) {
    throw Error(ErrorCategory::kUnavailable,
                fmt::format("the executable has format {}, this Collage reads {}", header.version, kFormatVersion),
                path.string(), "compile the model again with this version");
  }
  const bool fits = header.plan_offset <= bytes.size() && header.plan_size <= bytes.size() - header.plan_offset;
  if (!fits) Damaged("the executable is truncated", path);
  if (header.plan_offset + header.plan_size != bytes.size() || header.reserved != 0) {
    Damaged("the executable is damaged: its header does not fit the file", path);
  }
  if (Crc32(bytes.data() + header.plan_offset, header.plan_size) != header.plan_crc) {
    Damaged("the executable is damaged: its plan has a wrong checksum", path);
  }
  return header;
}

void CheckMachine(const Json& json, const std::filesystem::path& path) {
  const MachineInfo& machine = ThisMachine();
  std::string missing;
  if (json.at("isa") != machine.isa) missing = json.at("isa").get<std::string>();
  for (const Json& feature : json.at("features")) {
    const auto name = feature.get<std::string>();
    if (std::find(machine.features.begin(), machine.features.end(), name) == machine.features.end()) {
      missing += (missing.empty() ? "" : ", ") + name;
    }
  }
  if (missing.empty()) return;
  throw Error(ErrorCategory::kUnavailable,
              fmt::format("the executable needs {}; this machine ({}) has not got it", missing, machine.cpu),
              path.string(), "compile the model on this machine");
}

/// Writes each distinct piece of bytes once. The pieces must outlive it.
class PieceWriter {
 public:
  explicit PieceWriter(AtomicFile& file) : file_(file) {}

  Json Write(const void* data, size_t size) {
    const uint32_t crc = Crc32(data, size);
    std::vector<Written>& alike = written_[{size, crc}];
    auto found = std::find_if(alike.begin(), alike.end(),
                              [&](const Written& one) { return size == 0 || std::memcmp(one.data, data, size) == 0; });
    if (found == alike.end()) {
      file_.Align(kAlignment);
      found = alike.insert(found, {data, file_.position()});
      file_.Write(data, size);
    }
    return {found->offset, size, crc};
  }

 private:
  struct Written {
    const void* data;
    uint64_t offset;
  };

  AtomicFile& file_;
  std::map<std::pair<size_t, uint32_t>, std::vector<Written>> written_;  ///< by size and checksum
};

std::span<std::byte> Piece(const Json& extent, std::span<std::byte> bytes, const std::filesystem::path& path) {
  const auto offset = extent.at(0).get<uint64_t>();
  const auto size = extent.at(1).get<uint64_t>();
  if (offset > bytes.size() || size > bytes.size() - offset || offset % kAlignment != 0) {
    Damaged("the executable is truncated", path);
  }
  return bytes.subspan(offset, size);
}

Json ParsePlan(std::span<const std::byte> bytes, const FileHeader& header, const std::filesystem::path& path) {
  const auto* text = reinterpret_cast<const char*>(bytes.data() + header.plan_offset);
  Json json = Json::parse(text, text + header.plan_size, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) Damaged("the executable is damaged: its plan cannot be read", path);
  return json;
}

/// Fills in what lies in the file's `bytes`, which `state.file` holds.
void ReadPieces(const Json& json, std::span<std::byte> bytes, const std::filesystem::path& path,
                Executable::State& state) {
  for (const Json& constant : json.at("constants")) {
    const std::span<std::byte> piece = Piece(constant.at("place"), bytes, path);
    auto shape = constant.at("shape").get<Shape>();
    const auto dtype_name = constant.at("dtype").get<std::string>();
    if (!DataType::IsName(dtype_name)) Damaged("the executable is damaged: a constant's dtype", path);
    const DataType dtype = DataType::FromString(dtype_name);
    if (CheckedBytes(shape, dtype) != piece.size()) Damaged("the executable is damaged: a constant's size", path);
    state.plan.constants.push_back(Tensor::View(std::move(shape), dtype, piece.data(), state.file));
  }
  for (const Json& blob : json.at("blobs")) state.blobs.push_back(Piece(blob, bytes, path));
}

void CheckPiece(const Json& place, std::span<std::byte> bytes, const std::string& what,
                const std::filesystem::path& path) {
  const std::span<std::byte> piece = Piece(place, bytes, path);
  if (Crc32(piece.data(), piece.size()) == place.at(2).get<uint32_t>()) return;
  Damaged(fmt::format("the executable is damaged: {} has a wrong checksum", what), path);
}

/// Damaged machine code would not fail but crash, so it is checked whenever a file is loaded; it is small.
void CheckCode(const Json& json, std::span<std::byte> bytes, const std::filesystem::path& path,
               const ExecutionPlan& plan) {
  std::set<int> checked;
  for (const auto& kernel : plan.kernels) {
    if (kernel.loader != kObjectLoaderName || !checked.insert(kernel.blob).second) continue;
    CheckPiece(json.at("blobs").at(static_cast<size_t>(kernel.blob)), bytes, "machine code", path);
  }
}

/// What the file's `bytes` say, checked. `owner` holds them.
std::shared_ptr<const Executable::State> ReadState(std::span<std::byte> bytes, std::shared_ptr<void> owner,
                                                   const std::filesystem::path& path) {
  const FileHeader header = ReadHeader(bytes, path);
  const Json json = ParsePlan(bytes, header, path);
  auto state = std::make_shared<Executable::State>();
  state->file = std::move(owner);
  try {
    CheckMachine(json, path);
    ReadPieces(json, bytes, path, *state);
    PlanFromJson(json, state->plan);
    const std::string problem = FindPlanProblem(state->plan, state->blobs.size());
    if (!problem.empty()) Damaged("the executable is damaged: " + problem, path);
    CheckCode(json, bytes, path, state->plan);
  } catch (const Json::exception& error) {
    Damaged(fmt::format("the executable is damaged: {}", error.what()), path);
  }
  return state;
}

}  // namespace

Executable Executable::FromPlan(ExecutionPlan plan) {
  auto state = std::make_shared<State>();
  state->plan = std::move(plan);
  for (const auto& blob : state->plan.blobs) state->blobs.emplace_back(*blob);
  const std::string problem = FindPlanProblem(state->plan, state->blobs.size());
  COLLAGE_CHECK(problem.empty()) << problem;
  Executable executable;
  executable.state_ = std::move(state);
  return executable;
}

void Executable::Save(const std::filesystem::path& path) const {
  AtomicFile file(path);
  WriteTo(file);
  file.Commit();
}

void Executable::WriteTo(AtomicFile& file) const {
  FileHeader header{kMagic, kFormatVersion, 0, 0, 0, 0};
  Json json = PlanToJson(state_->plan);
  file.Write(std::string(sizeof header, '\0'));
  PieceWriter pieces(file);
  json["constants"] = Json::array();
  for (const Tensor& constant : state_->plan.constants) {
    json["constants"].push_back({{"shape", constant.shape()},
                                 {"dtype", constant.dtype().ToString()},
                                 {"place", pieces.Write(constant.raw(), constant.size_bytes())}});
  }
  json["blobs"] = Json::array();
  for (std::span<const std::byte> blob : state_->blobs) json["blobs"].push_back(pieces.Write(blob.data(), blob.size()));
  json["isa"] = ThisMachine().isa;
  // Machine code says itself what it needs; what the other kernels make of a machine, only it knows.
  const auto& kernels = state_->plan.kernels;
  const bool is_code = std::all_of(kernels.begin(), kernels.end(),
                                   [](const auto& kernel) { return kernel.loader == kObjectLoaderName; });
  json["features"] = is_code ? std::vector<std::string>() : ThisMachine().features;
  file.Align(kAlignment);
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  header.plan_offset = file.position();
  header.plan_size = text.size();
  header.plan_crc = Crc32(text.data(), text.size());
  file.Write(text);
  file.Overwrite(0, &header, sizeof header);
}

Executable Executable::Load(const std::filesystem::path& path) {
  const std::shared_ptr<MappedFile> file = MappedFile::Open(path);
  Executable executable;
  executable.state_ = ReadState(file->bytes(), file, path);
  return executable;
}

Executable Executable::FromBytes(std::span<const std::byte> bytes, const std::string& name) {
  // Aligned as a mapped file is, since constants are read where they lie.
  const Tensor copy = Tensor::Empty({static_cast<int64_t>(bytes.size())}, kUInt8);
  if (!bytes.empty()) std::memcpy(copy.raw(), bytes.data(), bytes.size());
  Executable executable;
  executable.state_ = ReadState({copy.data<std::byte>(), bytes.size()}, std::make_shared<Tensor>(copy), name);
  return executable;
}

void Executable::Verify(const std::filesystem::path& path) {
  Load(path);
  const std::shared_ptr<MappedFile> file = MappedFile::Open(path);
  Json json = ParsePlan(file->bytes(), ReadHeader(file->bytes(), path), path);
  for (size_t i = 0; i < json.at("constants").size(); ++i) {
    CheckPiece(json["constants"][i]["place"], file->bytes(), fmt::format("constant {}", i), path);
  }
  for (size_t i = 0; i < json.at("blobs").size(); ++i) {
    CheckPiece(json["blobs"][i], file->bytes(), fmt::format("the code of kernel {}", i), path);
  }
}

const ExecutionPlan& Executable::plan() const { return state_->plan; }

std::unique_ptr<Kernel> Executable::LoadKernel(int kernel, bool in_place) const {
  const ExecutionPlan::KernelEntry& entry = plan().kernels[static_cast<size_t>(kernel)];
  std::vector<Tensor> constants;
  for (int constant : entry.constants) constants.push_back(plan().constants[static_cast<size_t>(constant)]);
  return GetKernelLoader(entry.loader)
      .Load({state_->blobs[static_cast<size_t>(entry.blob)], constants, plan().num_threads, in_place});
}

namespace {

std::vector<PortInfo> Describe(const ExecutionPlan& plan, const std::vector<ExecutionPlan::Port>& ports) {
  std::vector<PortInfo> infos;
  for (const ExecutionPlan::Port& port : ports) {
    const ExecutionPlan::Value& value = plan.values[static_cast<size_t>(port.value)];
    infos.push_back({port.name, value.shape, value.dtype});
  }
  return infos;
}

}  // namespace

std::vector<PortInfo> Executable::inputs() const { return Describe(plan(), plan().inputs); }
std::vector<PortInfo> Executable::outputs() const { return Describe(plan(), plan().outputs); }

}  // namespace collage
