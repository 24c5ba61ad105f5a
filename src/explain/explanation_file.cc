// explanation_file.cc: a piece of the executable that its readers do not ask for, deflated; or plain JSON.
#include "explain/explanation_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "bytecode/file_format.h"
#include "collage/support/error.h"
#include "explain/deflate.h"
#include "runtime/plan/executable_format.h"
#include "runtime/plan/executable_state.h"
#include "support/file.h"

namespace collage {
namespace {

using Json = nlohmann::json;

// A longer text is no explanation that Collage wrote.
constexpr size_t kMostBytes = size_t{1} << 30;

bool IsProgram(std::span<const std::byte> bytes) {
  return vm::IsProgramFile({reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), size_t{8})});
}

const PieceFormat& FormatOf(std::span<const std::byte> bytes) {
  return IsProgram(bytes) ? vm::kProgramFormat : kExecutableFormat;
}

/// Whether a file begins as JSON does.
bool IsText(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{';
}

/// Adds the bytes of places `[offset, size, checksum]` to `all`, each place once.
void AddPlaces(const Json& list, const char* name, std::set<std::pair<int64_t, int64_t>>& all) {
  for (const Json& one : list) {
    const Json& place = name == nullptr ? one : one.at(name);
    all.emplace(place.at(0).get<int64_t>(), place.at(1).get<int64_t>());
  }
}

int64_t SumOf(const std::set<std::pair<int64_t, int64_t>>& places) {
  int64_t bytes = 0;
  for (const auto& [_, size] : places) bytes += size;
  return bytes;
}

[[noreturn]] void NoExplanation(const std::string& why, const std::filesystem::path& path) {
  throw Error(ErrorCategory::kCorrupt, "the explanation is damaged: " + why, path.string(), "compile the model again");
}

std::string Unpacked(std::span<const std::byte> bytes, const std::filesystem::path& path) {
  std::optional<std::string> text = Inflate(bytes, kMostBytes);
  if (!text) NoExplanation("it cannot be unpacked", path);
  return *std::move(text);
}

std::optional<std::string> TextOf(const Tensor& explanation, const LazyPieces* pieces, const std::string& name) {
  if (!explanation.defined()) return std::nullopt;
  if (!pieces->IsRight(explanation.raw())) NoExplanation("it has a wrong checksum", name);
  return Unpacked({explanation.data<std::byte>(), explanation.size_bytes()}, name);
}

/// Throws kInput where a number is none of a list of `size`.
void CheckIndex(int64_t number, size_t size, const char* what) {
  if (number >= 0 && number < static_cast<int64_t>(size)) return;
  throw Error(ErrorCategory::kInput, fmt::format("there is no {} {}", what, number));
}

void CheckIndices(const std::vector<int>& numbers, size_t size, const char* what) {
  for (const int number : numbers) CheckIndex(number, size, what);
}

void CheckPartition(const GraphExplanation& graph, const ExplainedPartition& partition) {
  CheckIndex(partition.candidate, graph.candidates.size(), "candidate");
  CheckIndices(partition.nodes, graph.nodes.size(), "node");
  for (const ExplainedAlternative& one : partition.alternatives) {
    CheckIndices(one.candidates, graph.candidates.size(), "candidate");
    CheckIndices(one.replaces, graph.partitions.size(), "partition");
    if (one.toolchain) CheckIndex(*one.toolchain, graph.toolchains.size(), "toolchain");
  }
  for (const ExplainedRefusal& one : partition.refused) CheckIndex(one.toolchain, graph.toolchains.size(), "toolchain");
}

/// Refuses numbers that refer to nothing: all who read the explanation rely on them.
void Check(const GraphExplanation& graph) {
  for (const ExplainedNode& node : graph.nodes) CheckIndices(node.inputs, graph.nodes.size(), "node");
  CheckIndices(graph.results, graph.nodes.size(), "node");
  for (const ExplainedCandidate& one : graph.candidates) {
    CheckIndex(one.toolchain, graph.toolchains.size(), "toolchain");
    CheckIndices(one.nodes, graph.nodes.size(), "node");
    if (one.cost) CheckIndex(*one.cost, graph.costs.size(), "cost");
  }
  for (const ExplainedContender& one : graph.contenders) {
    CheckIndices(one.partitions.value_or(std::vector<int>()), graph.candidates.size(), "candidate");
  }
  for (const ExplainedPartition& one : graph.partitions) CheckPartition(graph, one);
  for (const ExplainedGap& one : graph.gaps) {
    CheckIndex(one.toolchain, graph.toolchains.size(), "toolchain");
    CheckIndices(one.nodes, graph.nodes.size(), "node");
  }
  for (const ExplainedCover& one : graph.covers) CheckIndices(one.partitions, graph.candidates.size(), "candidate");
}

}  // namespace

void PutInside(const std::filesystem::path& file, const std::string& text) {
  const PieceFormat* format = nullptr;
  {
    const std::shared_ptr<MappedFile> mapped = MappedFile::Open(file);
    format = &FormatOf(mapped->bytes());
  }
  AddPiece(file, *format, kExplanationPiece, Deflate(text));
}

std::optional<std::string> FindExplanationText(const std::filesystem::path& path) {
  const std::shared_ptr<MappedFile> file = MappedFile::Open(path);
  const std::span<std::byte> bytes = file->bytes();
  if (IsText(bytes)) return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto piece = FindPiece(bytes, FormatOf(bytes), kExplanationPiece, path);
  if (!piece) return std::nullopt;
  return Unpacked(*piece, path);
}

std::optional<std::string> ExplanationTextOf(const Executable& executable) {
  const Executable::State& state = executable.state();
  return TextOf(state.explanation, state.pieces.get(), state.name);
}

std::optional<std::string> ExplanationTextOf(const vm::Executable& program) {
  const vm::Program& state = program.program();
  return TextOf(state.explanation, state.pieces.get(), state.file);
}

Explanation ReadExplanation(const std::filesystem::path& path) {
  const std::optional<std::string> text = FindExplanationText(path);
  if (!text) {
    throw Error(ErrorCategory::kInput, "the executable has no explanation", path.string(),
                "compile the model without `--explanation none`, or name the file that it was written to");
  }
  return ParseExplanation(*text, path);
}

Explanation ParseExplanation(const std::string& text, const std::filesystem::path& path) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.value("format", Json()) != kExplanationFormat) {
    throw Error(ErrorCategory::kInput, fmt::format("\"format\" is not \"{}\"", kExplanationFormat), path.string(),
                "give an executable, or a file that `collage compile --explanation FILE.json` wrote");
  }
  if (json.value("schema", Json()) != kExplanationSchema) {
    throw Error(ErrorCategory::kUnavailable,
                fmt::format("the explanation has schema {}, this Collage reads {}", json.value("schema", Json()).dump(),
                            kExplanationSchema),
                path.string(), "compile the model with this version");
  }
  try {
    Explanation explanation;
    FromJson(json, explanation);
    for (const GraphExplanation& graph : explanation.graphs) Check(graph);
    return explanation;
  } catch (const Json::exception& error) {
    NoExplanation(error.what(), path);
  } catch (const Error& error) {
    NoExplanation(error.message(), path);
  }
}

ExplainedMemory MemoryOf(const std::filesystem::path& file) {
  const std::shared_ptr<MappedFile> mapped = MappedFile::Open(file);
  const Json index = ReadPieceFile(mapped->bytes(), FormatOf(mapped->bytes()), file).index;
  std::set<std::pair<int64_t, int64_t>> weights, code;
  const auto add = [&](const Json& executable) {
    AddPlaces(executable.at("constants"), "place", weights);
    AddPlaces(executable.at("blobs"), nullptr, code);
  };
  ExplainedMemory memory;
  memory.file_bytes = static_cast<int64_t>(mapped->bytes().size());
  if (IsProgram(mapped->bytes())) {
    AddPlaces(index.at("constants"), "place", weights);
    AddPlaces(index.at("code"), nullptr, code);
    for (const Json& kernel : index.at("kernels")) add(kernel);
  } else {
    add(index);
    memory.arena_bytes = index.at("arena_bytes").get<int64_t>();
  }
  memory.weights_bytes = SumOf(weights);
  memory.code_bytes = SumOf(code);
  return memory;
}

}  // namespace collage
