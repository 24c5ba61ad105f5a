// executable.cc: the file format: a container of pieces (piece_file.h).
//
//   pieces   constants, and code with what it was compiled for (kernel_signature.h)
//   index    the plan
//
// Header, plan and code are checked when a file is loaded, a constant when somebody gets it first: weights are most of
// the file, and inspecting a file does not read them.
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
#include "runtime/plan/executable_format.h"
#include "runtime/plan/executable_state.h"
#include "runtime/plan/kernel_signature.h"
#include "runtime/plan/piece_file.h"
#include "runtime/plan/plan_check.h"
#include "runtime/plan/plan_json.h"
#include "runtime/plan/signature.h"
#include "support/checksum.h"
#include "support/file.h"
#include "support/machine.h"

namespace collage {
namespace {

using Json = nlohmann::json;

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

[[noreturn]] void DamagedExplanation(const std::filesystem::path& path) {
  kExecutableFormat.Damaged("its explanation has a wrong checksum", path);
}

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

/// Whether a kernel may have been made for this very processor. Machine code says itself what it needs, and kernels of
/// devices need nothing of it; what the others make of a processor, only they know.
bool DependsOnProcessor(const ExecutionPlan& plan) {
  std::set<int> of_devices;
  for (const ExecutionPlan::Step& step : plan.steps) {
    if (step.kind != ExecutionPlan::Step::kKernel || step.outputs.empty()) continue;
    const auto is_elsewhere = [&](int value) {
      return MemoryOf(plan.values[static_cast<size_t>(value)].layout) != Memory::kHost;
    };
    if (std::ranges::all_of(step.outputs, is_elsewhere)) of_devices.insert(step.kernel);
  }
  for (size_t i = 0; i < plan.kernels.size(); ++i) {
    if (plan.kernels[i].loader != kObjectLoaderName && !of_devices.contains(static_cast<int>(i))) return true;
  }
  return false;
}

// ---- reading ----

void ReadConstants(const Json& json, ExecutableSource& source, Executable::State& state) {
  for (const Json& constant : json) {
    const Piece piece = source.reader.Read(constant.at("place"));
    Shape shape = ShapeFrom(constant.at("shape"));
    const DataType dtype = DTypeFrom(constant.at("dtype"), "a constant");
    if (CheckedBytes(shape, dtype) != piece.bytes.size()) {
      throw Error(ErrorCategory::kCorrupt, "a constant's size does not fit its shape");
    }
    state.plan.constants.push_back(Tensor::View(std::move(shape), dtype, piece.bytes.data(), source.owner));
    state.constant_checksums.push_back(piece.checksum);
    source.pieces->Note(piece);
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
Executable ReadFileOf(std::span<std::byte> bytes, std::shared_ptr<void> owner, const std::filesystem::path& path) {
  const PieceFile file = ReadPieceFile(bytes, kExecutableFormat, path);
  ExecutableSource source{PieceReader(file.pieces), std::make_shared<LazyPieces>(), std::move(owner), path.string()};
  try {
    return RestoreExecutable(file.index, source);
  } catch (const Json::exception& error) {
    kExecutableFormat.Damaged(error.what(), path);
  } catch (const Error& error) {
    if (error.category() != ErrorCategory::kCorrupt || !error.where().empty()) throw;
    kExecutableFormat.Damaged(error.message(), path);
  }
}

}  // namespace

Tensor FindExplanation(const Json& index, ExecutableSource& source) {
  if (!index.contains(kExplanationPiece)) return {};
  const Piece piece = source.reader.Read(index.at(kExplanationPiece));
  source.pieces->Note(piece);
  return Tensor::View({static_cast<int64_t>(piece.bytes.size())}, kUInt8, piece.bytes.data(), source.owner);
}

Executable RestoreExecutable(const Json& index, ExecutableSource& source) {
  auto state = std::make_shared<Executable::State>();
  state->file = source.owner;
  state->name = source.name;
  state->pieces = source.pieces;
  state->explanation = FindExplanation(index, source);
  CheckMachine(index, source.name);
  ReadConstants(index.at("constants"), source, *state);
  const std::vector<SealedCode> codes = ReadCode(index.at("blobs"), source.reader);
  for (const SealedCode& code : codes) state->blobs.push_back(code.code);
  PlanFromJson(index, state->plan);
  const std::string problem = FindPlanProblem(state->plan, state->blobs.size());
  if (!problem.empty()) throw Error(ErrorCategory::kCorrupt, problem);
  CheckSignatures(*state, codes);
  return Executable(std::move(state));
}

Executable Executable::FromPlan(ExecutionPlan plan) {
  auto state = std::make_shared<State>();
  state->plan = std::move(plan);
  for (const auto& blob : state->plan.blobs) state->blobs.emplace_back(*blob);
  const std::string problem = FindPlanProblem(state->plan, state->blobs.size());
  COLLAGE_CHECK(problem.empty()) << problem;
  return Executable(std::move(state));
}

void Executable::Save(const std::filesystem::path& path) const {
  AtomicFile file(path);
  WriteTo(file);
  file.Commit();
}

nlohmann::json StoreExecutable(const Executable& executable, PieceWriter& pieces) {
  const Executable::State& state = executable.state();
  // Damaged constants of a loaded file must not get checksums that fit.
  for (size_t i = 0; i < state.constant_checksums.size(); ++i) state.CheckConstant(i);
  Json json = PlanToJson(state.plan);
  std::vector<uint64_t> checksums;
  json["constants"] = Json::array();
  for (const Tensor& constant : state.plan.constants) {
    Json place = pieces.Write(constant.raw(), constant.size_bytes());
    checksums.push_back(ChecksumFrom(place.at(2)));
    json["constants"].push_back(
        {{"shape", constant.shape()}, {"dtype", constant.dtype().ToString()}, {"place", std::move(place)}});
  }
  json["blobs"] = Json::array();
  for (std::vector<std::byte>& piece : SealBlobs(state, checksums)) {
    json["blobs"].push_back(pieces.Write(std::move(piece)));
  }
  if (state.explanation.defined()) {
    if (!state.pieces->IsRight(state.explanation.raw())) DamagedExplanation(state.name);
    json[kExplanationPiece] = pieces.Write(state.explanation.raw(), state.explanation.size_bytes());
  }
  json["isa"] = ThisMachine().isa;
  json["features"] = DependsOnProcessor(state.plan) ? ThisMachine().features : std::vector<std::string>();
  return json;
}

void Executable::WriteTo(AtomicFile& file) const {
  PieceWriter pieces(file);
  pieces.Finish(kExecutableFormat, StoreExecutable(*this, pieces));
}

Executable Executable::Load(const std::filesystem::path& path) {
  const std::shared_ptr<MappedFile> file = MappedFile::Open(path);
  CheckSignature(file->bytes(), path);
  return ReadFileOf(file->bytes(), file, path);
}

Executable Executable::FromMemory(std::span<std::byte> bytes, std::shared_ptr<void> owner, const std::string& name) {
  constexpr uintptr_t kAlignment = 64;
  if (reinterpret_cast<uintptr_t>(bytes.data()) % kAlignment != 0) {
    throw Error(ErrorCategory::kInput, "an executable in memory is to be aligned to 64 bytes", name);
  }
  return ReadFileOf(bytes, std::move(owner), name);
}

Executable Executable::FromBytes(std::span<const std::byte> bytes, const std::string& name) {
  RefuseUnsigned(name);
  // Aligned as a mapped file is, since constants are read where they lie.
  const Tensor copy = Tensor::Empty({static_cast<int64_t>(bytes.size())}, kUInt8);
  if (!bytes.empty()) std::memcpy(copy.raw(), bytes.data(), bytes.size());
  return ReadFileOf({copy.data<std::byte>(), bytes.size()}, std::make_shared<Tensor>(copy), name);
}

void Executable::Verify(const std::filesystem::path& path) {
  const Executable executable = Load(path);
  for (size_t i = 0; i < executable.state().constant_checksums.size(); ++i) executable.state().CheckConstant(i);
  if (!executable.state().pieces->AreRight()) DamagedExplanation(path);
}

void Executable::State::CheckConstant(size_t index) const {
  if (pieces == nullptr || pieces->IsRight(plan.constants[index].raw())) return;
  kExecutableFormat.Damaged(fmt::format("constant {} has a wrong checksum", index), name);
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
