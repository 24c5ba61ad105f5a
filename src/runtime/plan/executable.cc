// executable.cc: the file format.
//
//   header, 64 bytes: magic "CLGE", version u32, offset, size and checksum of the plan, three zeros, checksum of the
//                     header up to here (u64 each)
//   pieces, each at a multiple of 64 and zeros up to the next: constants, and code with what it was compiled for
//                     (kernel_signature.h)
//   the plan: JSON, last, so that it can hold the places of everything before it; a piece's is [offset, size, checksum]
//
// Every byte is under a checksum or must be zero. Header, plan and code are checked when a file is loaded, a constant
// when somebody gets it first: weights are most of the file, and inspecting a file does not read them.
#include "collage/runtime/executable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <new>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "collage/support/error.h"
#include "runtime/native_loader.h"
#include "runtime/plan/executable_state.h"
#include "runtime/plan/kernel_signature.h"
#include "runtime/plan/plan_check.h"
#include "runtime/plan/plan_json.h"
#include "support/checksum.h"
#include "support/file.h"
#include "support/machine.h"

namespace collage {
namespace {

using Json = nlohmann::json;

constexpr uint32_t kMagic = 0x45474c43;  // "CLGE"
constexpr uint32_t kFormatVersion = 2;
constexpr size_t kAlignment = 64;

struct FileHeader {
  uint32_t magic;
  uint32_t version;
  uint64_t plan_offset;
  uint64_t plan_size;
  uint64_t plan_checksum;
  uint64_t reserved[3];
  uint64_t own_checksum;

  uint64_t ExpectedChecksum() const { return Checksum(this, offsetof(FileHeader, own_checksum)); }
};
static_assert(sizeof(FileHeader) == kAlignment);

size_t Aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

[[noreturn]] void Damaged(const std::string& what, const std::filesystem::path& path) {
  throw Error(ErrorCategory::kCorrupt, "the executable is damaged: " + what, path.string(), "compile the model again");
}

[[noreturn]] void NoExecutable(const std::string& why, const std::filesystem::path& path) {
  throw Error(ErrorCategory::kCorrupt, "not a Collage executable: " + why, path.string(), "compile the model again");
}

[[noreturn]] void Truncated(const std::filesystem::path& path) {
  throw Error(ErrorCategory::kCorrupt, "the executable is truncated", path.string(), "compile the model again");
}

/// Throws kUnavailable for a file of another version; a damaged version is no other version.
void CheckVersion(const FileHeader& header, const std::filesystem::path& path) {
  if (header.version == kFormatVersion) return;
  FileHeader ours = header;
  ours.version = kFormatVersion;
  if (ours.ExpectedChecksum() == header.own_checksum) Damaged("its header has a wrong checksum", path);
  throw Error(ErrorCategory::kUnavailable,
              fmt::format("the executable has format {}, this Collage reads {}", header.version, kFormatVersion),
              path.string(), "compile the model again with this version");
}

FileHeader ReadHeader(std::span<const std::byte> bytes, const std::filesystem::path& path) {
  FileHeader header{};
  if (bytes.size() < offsetof(FileHeader, plan_offset)) NoExecutable("too short", path);
  std::memcpy(&header, bytes.data(), std::min(sizeof header, bytes.size()));
  if (header.magic != kMagic) NoExecutable("wrong magic number", path);
  CheckVersion(header, path);
  if (bytes.size() < sizeof header) Truncated(path);
  if (header.ExpectedChecksum() != header.own_checksum) Damaged("its header has a wrong checksum", path);
  const bool fits = header.plan_offset <= bytes.size() && header.plan_size <= bytes.size() - header.plan_offset;
  if (!fits) Truncated(path);
  const bool is_last = header.plan_offset + header.plan_size == bytes.size();
  if (!is_last || header.plan_offset < sizeof header || header.plan_offset % kAlignment != 0) {
    Damaged("its header does not fit the file", path);
  }
  if (Checksum(bytes.data() + header.plan_offset, header.plan_size) != header.plan_checksum) {
    Damaged("its plan has a wrong checksum", path);
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
    const uint64_t checksum = Checksum(data, size);
    std::vector<Written>& alike = written_[{size, checksum}];
    auto found = std::find_if(alike.begin(), alike.end(),
                              [&](const Written& one) { return size == 0 || std::memcmp(one.data, data, size) == 0; });
    if (found == alike.end()) {
      file_.Align(kAlignment);
      found = alike.insert(found, {data, file_.position()});
      file_.Write(data, size);
    }
    return {found->offset, size, checksum};
  }

 private:
  struct Written {
    const void* data;
    uint64_t offset;
  };

  AtomicFile& file_;
  std::map<std::pair<size_t, uint64_t>, std::vector<Written>> written_;  ///< by size and checksum
};

/// For each blob of `state`, what it is stored as: equal code once, for all who use it.
std::vector<std::vector<std::byte>> SealBlobs(const Executable::State& state, std::span<const uint64_t> checksums) {
  struct Code {
    uint64_t checksum = 0;
    std::set<uint64_t> signatures;
  };
  std::map<std::string_view, Code> codes;
  std::vector<Code*> code_of;
  for (std::span<const std::byte> blob : state.blobs) {
    Code& code = codes[{reinterpret_cast<const char*>(blob.data()), blob.size()}];
    if (code.checksum == 0) code.checksum = Checksum(blob.data(), blob.size());
    code_of.push_back(&code);
  }
  for (const ExecutionPlan::Step& step : state.plan.steps) {
    if (step.kind != ExecutionPlan::Step::kKernel) continue;
    Code& code = *code_of[static_cast<size_t>(state.plan.kernels[static_cast<size_t>(step.kernel)].blob)];
    code.signatures.insert(SignatureOf(state.plan, step, code.checksum, checksums));
  }
  std::vector<std::vector<std::byte>> sealed;
  for (size_t i = 0; i < state.blobs.size(); ++i) sealed.push_back(SealCode(state.blobs[i], code_of[i]->signatures));
  return sealed;
}

// ---- reading ----

Json ParsePlan(std::span<const std::byte> bytes, const FileHeader& header, const std::filesystem::path& path) {
  const auto* text = reinterpret_cast<const char*>(bytes.data() + header.plan_offset);
  Json json = Json::parse(text, text + header.plan_size, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) Damaged("its plan cannot be read", path);
  return json;
}

/// A piece of the file and its checksum.
struct Piece {
  std::span<std::byte> bytes;
  uint64_t checksum;

  bool IsRight() const {
    const std::byte* end = bytes.data() + bytes.size();
    const std::byte* next = bytes.data() + Aligned(bytes.size());
    return Checksum(bytes.data(), bytes.size()) == checksum &&
           std::all_of(end, next, [](std::byte one) { return one == std::byte{0}; });
  }
};

/// Takes pieces out of what lies between header and plan. Each byte is in one of them at most, so that checking them
/// all takes no longer than reading the file, whatever the plan says.
class PieceReader {
 public:
  explicit PieceReader(std::span<std::byte> bytes) : bytes_(bytes) {}

  /// Throws kCorrupt without a place.
  Piece Read(const Json& place) {
    const auto end = static_cast<int64_t>(bytes_.size());
    const int64_t offset = IntegerFrom(place.at(0), sizeof(FileHeader), end, "the place of a piece");
    const int64_t size = IntegerFrom(place.at(1), 0, end - offset, "the size of a piece");
    const uint64_t checksum = ChecksumFrom(place.at(2));
    if (offset % static_cast<int64_t>(kAlignment) != 0) Fail("a piece is not aligned");
    if (size > 0) {
      const auto [known, is_new] = known_.emplace(std::pair(offset, offset + size), checksum);
      if (known->second != checksum) Fail("a piece has two checksums");
      if (is_new) CheckApart(known);
    }
    return {bytes_.subspan(static_cast<size_t>(offset), static_cast<size_t>(size)), checksum};
  }

 private:
  using Known = std::map<std::pair<int64_t, int64_t>, uint64_t>;  ///< checksums by begin and end

  [[noreturn]] static void Fail(const char* what) { throw Error(ErrorCategory::kCorrupt, what); }

  void CheckApart(Known::iterator piece) const {
    const auto overlaps = [&](Known::const_iterator other) {
      return other->first.first < piece->first.second && piece->first.first < other->first.second;
    };
    const bool is_apart = (piece == known_.begin() || !overlaps(std::prev(piece))) &&
                          (std::next(piece) == known_.end() || !overlaps(std::next(piece)));
    if (!is_apart) Fail("pieces overlap");
  }

  std::span<std::byte> bytes_;  ///< up to the plan
  Known known_;
};

void ReadConstants(const Json& json, PieceReader& pieces, Executable::State& state) {
  for (const Json& constant : json) {
    const Piece piece = pieces.Read(constant.at("place"));
    Shape shape = ShapeFrom(constant.at("shape"));
    const DataType dtype = DTypeFrom(constant.at("dtype"), "a constant");
    if (CheckedBytes(shape, dtype) != piece.bytes.size()) {
      throw Error(ErrorCategory::kCorrupt, "a constant's size does not fit its shape");
    }
    state.plan.constants.push_back(Tensor::View(std::move(shape), dtype, piece.bytes.data(), state.file));
    state.constant_checksums.push_back(piece.checksum);
  }
}

/// Damaged code would not fail but crash or compute something else, so it is checked whenever a file is loaded; it is
/// small. Returns what each blob was compiled for.
std::vector<SealedCode> ReadCode(const Json& json, PieceReader& pieces) {
  std::set<const std::byte*> right;
  std::vector<SealedCode> codes;
  for (const Json& place : json) {
    const Piece piece = pieces.Read(place);
    if ((piece.bytes.empty() || right.insert(piece.bytes.data()).second) && !piece.IsRight()) {
      throw Error(ErrorCategory::kCorrupt, fmt::format("machine code {} has a wrong checksum", codes.size()));
    }
    codes.emplace_back(piece.bytes);
  }
  return codes;
}

void CheckSignatures(const Executable::State& state, const std::vector<SealedCode>& codes) {
  std::map<const std::byte*, uint64_t> checksums;  // of code, by its address
  for (const ExecutionPlan::Step& step : state.plan.steps) {
    if (step.kind != ExecutionPlan::Step::kKernel) continue;
    const ExecutionPlan::KernelEntry& kernel = state.plan.kernels[static_cast<size_t>(step.kernel)];
    const SealedCode& code = codes[static_cast<size_t>(kernel.blob)];
    const auto [known, is_new] = checksums.emplace(code.code.data(), 0);
    if (is_new) known->second = Checksum(code.code.data(), code.code.size());
    if (code.IsFor(SignatureOf(state.plan, step, known->second, state.constant_checksums))) continue;
    throw Error(
        ErrorCategory::kCorrupt,
        fmt::format("kernel {} ('{}') was compiled for other shapes, constants or workspace than the plan gives",
                    step.kernel, kernel.label));
  }
}

/// Reads and checks the `bytes` of a file. `owner` keeps them alive.
std::shared_ptr<const Executable::State> ReadState(std::span<std::byte> bytes, std::shared_ptr<void> owner,
                                                   const std::filesystem::path& path) {
  const FileHeader header = ReadHeader(bytes, path);
  const Json json = ParsePlan(bytes, header, path);
  auto state = std::make_shared<Executable::State>();
  state->file = std::move(owner);
  state->name = path.string();
  try {
    CheckMachine(json, path);
    PieceReader pieces(bytes.first(header.plan_offset));
    ReadConstants(json.at("constants"), pieces, *state);
    const std::vector<SealedCode> codes = ReadCode(json.at("blobs"), pieces);
    for (const SealedCode& code : codes) state->blobs.push_back(code.code);
    PlanFromJson(json, state->plan);
    const std::string problem = FindPlanProblem(state->plan, state->blobs.size());
    if (!problem.empty()) Damaged(problem, path);
    CheckSignatures(*state, codes);
  } catch (const Json::exception& error) {
    Damaged(error.what(), path);
  } catch (const Error& error) {
    if (error.category() != ErrorCategory::kCorrupt || !error.where().empty()) throw;
    Damaged(error.message(), path);
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
  // Damaged constants of a loaded file must not get checksums that fit.
  for (size_t i = 0; i < state_->constant_checksums.size(); ++i) state_->CheckConstant(i);
  Json json = PlanToJson(state_->plan);
  file.Write(std::string(sizeof(FileHeader), '\0'));
  PieceWriter pieces(file);
  std::vector<uint64_t> checksums;
  json["constants"] = Json::array();
  for (const Tensor& constant : state_->plan.constants) {
    Json place = pieces.Write(constant.raw(), constant.size_bytes());
    checksums.push_back(ChecksumFrom(place.at(2)));
    json["constants"].push_back(
        {{"shape", constant.shape()}, {"dtype", constant.dtype().ToString()}, {"place", std::move(place)}});
  }
  json["blobs"] = Json::array();
  const std::vector<std::vector<std::byte>> sealed = SealBlobs(*state_, checksums);
  for (const std::vector<std::byte>& piece : sealed) json["blobs"].push_back(pieces.Write(piece.data(), piece.size()));
  json["isa"] = ThisMachine().isa;
  // Machine code says itself what it needs; what the other kernels make of a machine, only it knows.
  const auto& kernels = state_->plan.kernels;
  const bool is_code = std::all_of(kernels.begin(), kernels.end(),
                                   [](const auto& kernel) { return kernel.loader == kObjectLoaderName; });
  json["features"] = is_code ? std::vector<std::string>() : ThisMachine().features;
  file.Align(kAlignment);
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  FileHeader header{};
  header.magic = kMagic;
  header.version = kFormatVersion;
  header.plan_offset = file.position();
  header.plan_size = text.size();
  header.plan_checksum = Checksum(text.data(), text.size());
  header.own_checksum = header.ExpectedChecksum();
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
  const std::shared_ptr<const State> state = Load(path).state_;
  for (size_t i = 0; i < state->constant_checksums.size(); ++i) state->CheckConstant(i);
}

void Executable::State::CheckConstant(size_t index) const {
  if (index >= constant_checksums.size()) return;  // made in memory
  const Tensor& constant = plan.constants[index];
  const std::lock_guard lock(mutex_);
  if (right_.contains(constant.raw())) return;
  const Piece piece{{constant.data<std::byte>(), constant.size_bytes()}, constant_checksums[index]};
  if (!piece.IsRight()) Damaged(fmt::format("constant {} has a wrong checksum", index), name);
  if (!piece.bytes.empty()) right_.insert(constant.raw());  // an empty one has its address from another
}

const ExecutionPlan& Executable::plan() const { return state_->plan; }

std::span<const std::byte> Executable::blob(int kernel) const {
  return state_->blobs[static_cast<size_t>(plan().kernels.at(static_cast<size_t>(kernel)).blob)];
}

std::unique_ptr<Kernel> Executable::LoadKernel(int kernel, bool in_place) const {
  const ExecutionPlan::KernelEntry& entry = plan().kernels[static_cast<size_t>(kernel)];
  std::vector<Tensor> constants;
  for (int constant : entry.constants) {
    state_->CheckConstant(static_cast<size_t>(constant));
    constants.push_back(plan().constants[static_cast<size_t>(constant)]);
  }
  try {
    return GetKernelLoader(entry.loader).Load({blob(kernel), constants, plan().num_threads, in_place});
  } catch (const Error& error) {
    if (!error.where().empty()) throw;
    throw Error(error.category(), error.message(), state_->name, error.hint());
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw Error(ErrorCategory::kCorrupt,
                fmt::format("the code of kernel {} ('{}') cannot be read: {}", kernel, entry.label, error.what()),
                state_->name, "compile the model again");
  }
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
