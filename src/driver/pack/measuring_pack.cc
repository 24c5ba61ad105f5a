// measuring_pack.cc: packs as files.
#include "driver/pack/measuring_pack.h"

#include <fmt/format.h>

#include <cstdint>
#include <deque>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "collage/ir/infer_type.h"
#include "collage/ir/text.h"
#include "collage/support/error.h"
#include "ir/text/module_text.h"
#include "runtime/plan/piece_file.h"
#include "runtime/plan/plan_json.h"
#include "support/json_fields.h"

namespace collage {

using Json = nlohmann::json;

template <typename Self, typename Visitor>
requires IsMessage<Self, PackedToolchain>
void VisitFields(Self& toolchain, Visitor& visit) {
  visit.Field("name", toolchain.name);
  visit.Field("compiler", toolchain.compiler);
  visit.Field("revision", toolchain.revision);
  visit.Field("for_processor", toolchain.for_processor);
}

template <typename Self, typename Visitor>
requires IsMessage<Self, PackedCode>
void VisitFields(Self& code, Visitor& visit) {
  visit.OptionalField("schedule", code.schedule);
  visit.Field("compiled", code.compiled);
  visit.OptionalField("failure", code.failure);
}

template <typename Self, typename Visitor>
requires IsMessage<Self, PackedRank>
void VisitFields(Self& rank, Visitor& visit) {
  visit.Field("stage", rank.stage);
  visit.Field("share", rank.share);
}

template <typename Self, typename Visitor>
requires IsMessage<Self, Work>
void VisitFields(Self& work, Visitor& visit) {
  visit.Field("multiply_adds", work.multiply_adds);
  visit.Field("constant_bytes", work.constant_bytes);
  visit.Field("boundary_bytes", work.boundary_bytes);
  visit.Field("rounds", work.rounds);
  visit.Field("spared", work.spared);
}

template <typename Self, typename Visitor>
requires IsMessage<Self, PackedCandidate>
void VisitFields(Self& candidate, Visitor& visit) {
  visit.Field("partition", candidate.partition);
  visit.Field("workload", candidate.workload);
  visit.Field("work", candidate.work);
  visit.Field("label", candidate.label);
  visit.Field("target", candidate.target);
  visit.Field("rank", candidate.rank);
}

/// Fields of a contender beside its module.
template <typename Self, typename Visitor>
requires IsMessage<Self, ContenderModule>
void VisitFields(Self& contender, Visitor& visit) {
  visit.Field("name", contender.name);
  visit.Field("is_single", contender.is_single);
  visit.Field("is_extra", contender.is_extra);
  visit.Field("is_costed", contender.is_costed);
  visit.Field("estimated_seconds", contender.estimated_seconds);
}

namespace {

constexpr PieceFormat kFormat{
    .magic = 0x504d4c43,  // "CLMP"
    .version = 1,
    .index = "index",
    .other_file = "not a Collage measuring pack",
    .damaged = "the measuring pack is damaged",
    .truncated = "the measuring pack is truncated",
    .other_version = "the measuring pack has format {}, this Collage reads {}",
    .remedy = "make the pack again",
};

[[noreturn]] void Fail(const std::string& what) { throw Error(ErrorCategory::kCorrupt, what); }

// ---- writing ----

/// Writes what is in pieces, and numbers it.
class Writer {
 public:
  explicit Writer(PieceWriter& pieces) : pieces_(pieces) {}

  Json TensorJson(const Tensor& tensor) {
    return {{"shape", tensor.shape()},
            {"dtype", tensor.dtype().ToString()},
            {"place", pieces_.Write(tensor.raw(), tensor.size_bytes())}};
  }

  Json Tensors(const std::vector<Tensor>& tensors) {
    Json json = Json::array();
    for (const Tensor& tensor : tensors) json.push_back(TensorJson(tensor));
    return json;
  }

  Json Text(std::string text) {
    const std::string& kept = texts_.emplace_back(std::move(text));
    return pieces_.Write(kept.data(), kept.size());
  }

  Json Compiled(const CompiledPartition& compiled, const std::string& name) {
    return {{"name", name},
            {"loader", compiled.loader},
            {"blob", pieces_.Write(compiled.blob.data(), compiled.blob.size())},
            {"constants", Tensors(compiled.constants)},
            {"workspace_bytes", compiled.workspace_bytes},
            {"workspace_memory", std::string(ToString(compiled.workspace_memory))}};
  }

  Json Module(const IRModule& module) {
    ModuleText printed = PrintWithoutConstants(module);
    std::vector<Tensor> constants;
    for (const Constant& constant : printed.constants) constants.push_back(constant->value());
    return {{"text", Text(std::move(printed.text))}, {"constants", Tensors(constants)}};
  }

  Json Partition(const PackedPartition& partition) {
    IRModule module;
    module.Set("main", partition.request.function);
    return {{"function", Module(module)},
            {"inputs", Names(partition.request.layouts.inputs)},
            {"outputs", Names(partition.request.layouts.outputs)},
            {"toolchain", partition.toolchain},
            {"codes", ToJson(partition.codes)}};
  }

  Json PlayOff(const PackedPlayOff& play_off) {
    Json contenders = Json::array();
    for (const ContenderModule& one : play_off.contenders) {
      contenders.push_back({{"about", ToJson(one)}, {"module", Module(one.module)}});
    }
    return {{"model", play_off.model},
            {"original", Module(play_off.original)},
            {"contenders", std::move(contenders)},
            {"machine", play_off.machine},
            {"versions", play_off.versions}};
  }

 private:
  static Json Names(const std::vector<Layout>& layouts) {
    Json json = Json::array();
    for (const Layout layout : layouts) json.push_back(std::string(ToString(layout)));
    return json;
  }

  PieceWriter& pieces_;
  std::deque<std::string> texts_;
};

Json ModelJson(const PackedModel& model) {
  Json conversions = Json::array();
  for (const PackedConversion& one : model.conversions) {
    conversions.push_back({{"shape", one.shape},
                           {"dtype", one.dtype.ToString()},
                           {"from", std::string(ToString(one.from))},
                           {"to", std::string(ToString(one.to))}});
  }
  return {{"name", model.name},
          {"footprint_bytes", model.footprint_bytes},
          {"operands", model.operands},
          {"percentile", model.percentile},
          {"candidates", ToJson(model.candidates)},
          {"conversions", std::move(conversions)}};
}

// ---- reading ----

int IndexFrom(const Json& json, size_t size, const char* what) {
  return static_cast<int>(IntegerFrom(json, 0, static_cast<int64_t>(size) - 1, what));
}

Layout LayoutFrom(const Json& json) {
  const auto name = json.get<std::string>();
  const std::optional<Layout> layout = LayoutNamed(name);
  if (!layout) Fail(fmt::format("'{}' is no layout", name));
  return *layout;
}

std::vector<Layout> LayoutsFrom(const Json& json) {
  std::vector<Layout> layouts;
  for (const Json& name : json) layouts.push_back(LayoutFrom(name));
  return layouts;
}

class Reader {
 public:
  Reader(PieceReader pieces, std::shared_ptr<void> owner) : pieces_(std::move(pieces)), owner_(std::move(owner)) {}

  CompiledPartition Compiled(const Json& json) {
    CompiledPartition compiled;
    compiled.loader = json.at("loader").get<std::string>();
    const std::span<std::byte> blob = Bytes(json.at("blob"));
    compiled.blob.assign(blob.begin(), blob.end());
    compiled.constants = Tensors(json.at("constants"));
    constexpr int64_t kMost = int64_t{1} << 40;
    compiled.workspace_bytes =
        static_cast<size_t>(IntegerFrom(json.at("workspace_bytes"), 0, kMost, "the size of a workspace"));
    compiled.workspace_memory = MemoryFrom(json.at("workspace_memory"));
    return compiled;
  }

  IRModule Module(const Json& json) {
    const std::span<std::byte> text = Bytes(json.at("text"));
    ParseOptions options;
    for (const Tensor& tensor : Tensors(json.at("constants"))) options.constants.push_back(MakeConstant(tensor));
    return InferTypes(ParseModule({reinterpret_cast<const char*>(text.data()), text.size()}, "pack", options));
  }

  PackedPlayOff PlayOff(const Json& json) {
    PackedPlayOff play_off;
    play_off.model = json.at("model").get<std::string>();
    play_off.original = Module(json.at("original"));
    for (const Json& one : json.at("contenders")) {
      ContenderModule& contender = play_off.contenders.emplace_back();
      FromJson(one.at("about"), contender);
      contender.module = Module(one.at("module"));
    }
    if (play_off.contenders.empty()) Fail("a play-off has no contenders");
    play_off.machine = json.at("machine").get<std::string>();
    play_off.versions = json.at("versions").get<std::map<std::string, std::string>>();
    return play_off;
  }

  PackedPartition Partition(const Json& json, const MeasuringPack& pack) {
    PackedPartition partition;
    partition.request.function = Module(json.at("function")).main();
    partition.request.layouts = {LayoutsFrom(json.at("inputs")), LayoutsFrom(json.at("outputs"))};
    partition.request.num_threads = pack.num_threads;
    partition.toolchain = IndexFrom(json.at("toolchain"), pack.toolchains.size(), "the number of a toolchain");
    FromJson(json.at("codes"), partition.codes);
    if (partition.codes.empty()) Fail("a partition has no code");
    for (const PackedCode& code : partition.codes) {
      if (code.compiled < -1 || code.compiled >= static_cast<int>(pack.compiled.size())) {
        Fail("a partition has code that is not there");
      }
    }
    CheckBoundary(partition.request);
    return partition;
  }

  std::vector<Tensor> Tensors(const Json& json) {
    std::vector<Tensor> tensors;
    for (const Json& one : json) {
      const std::span<std::byte> bytes = Bytes(one.at("place"));
      Shape shape = ShapeFrom(one.at("shape"));
      const DataType dtype = DTypeFrom(one.at("dtype"), "a tensor");
      if (CheckedBytes(shape, dtype) != bytes.size()) Fail("a tensor's size does not fit its shape");
      tensors.push_back(Tensor::View(std::move(shape), dtype, bytes.data(), owner_));
    }
    return tensors;
  }

 private:
  std::span<std::byte> Bytes(const Json& place) {
    const Piece piece = pieces_.Read(place);
    const auto [known, is_new] = right_.emplace(piece.bytes.data(), piece.bytes.size());
    if (is_new && !piece.IsRight()) Fail("a piece has a wrong checksum");
    return piece.bytes;
  }

  static Memory MemoryFrom(const Json& json) {
    const auto name = json.get<std::string>();
    for (const Memory memory : AllMemories()) {
      if (ToString(memory) == name) return memory;
    }
    Fail(fmt::format("'{}' is no memory", name));
  }

  static void CheckBoundary(const PartitionRequest& request) {
    size_t num_inputs = 0;
    for (const Var& param : request.function->params()) num_inputs += FlattenTensorTypes(param->checked_type()).size();
    const size_t num_outputs = FlattenTensorTypes(request.function->body()->checked_type()).size();
    if (request.layouts.inputs.size() != num_inputs || request.layouts.outputs.size() != num_outputs) {
      Fail("the layouts of a partition do not fit its function");
    }
  }

  PieceReader pieces_;
  std::shared_ptr<void> owner_;
  std::unordered_map<const std::byte*, size_t> right_;  ///< pieces whose checksums are right
};

PackedModel ModelFrom(const Json& json, const MeasuringPack& pack) {
  PackedModel model;
  model.name = json.at("name").get<std::string>();
  model.footprint_bytes = IntegerFrom(json.at("footprint_bytes"), 0, INT64_MAX, "the size of a model");
  model.operands = json.at("operands").get<std::string>();
  if (!model.operands.empty()) CacheLevelFromString(model.operands);
  model.percentile = static_cast<int>(IntegerFrom(json.at("percentile"), 1, 99, "a percentile"));
  FromJson(json.at("candidates"), model.candidates);
  for (const PackedCandidate& candidate : model.candidates) {
    if (candidate.partition < 0 || candidate.partition >= static_cast<int>(pack.partitions.size())) {
      Fail("a candidate has a partition that is not there");
    }
  }
  for (const Json& one : json.at("conversions")) {
    model.conversions.push_back({ShapeFrom(one.at("shape")), DTypeFrom(one.at("dtype"), "a value"),
                                 LayoutFrom(one.at("from")), LayoutFrom(one.at("to"))});
  }
  return model;
}

void ReadIndex(const Json& json, Reader& reader, MeasuringPack& pack) {
  constexpr int kMostThreads = 1024;
  pack.machine = json.at("machine").get<std::string>();
  pack.cpu = json.at("cpu").get<std::string>();
  pack.num_threads = static_cast<int>(IntegerFrom(json.at("threads"), 1, kMostThreads, "the number of threads"));
  FromJson(json.at("toolchains"), pack.toolchains);
  for (const Json& one : json.at("compiled")) {
    pack.compiled_names.push_back(one.at("name").get<std::string>());
    pack.compiled.push_back(reader.Compiled(one));
  }
  for (const Json& one : json.at("partitions")) pack.partitions.push_back(reader.Partition(one, pack));
  for (const Json& one : json.at("models")) pack.models.push_back(ModelFrom(one, pack));
  for (const Json& one : json.at("play_offs")) pack.play_offs.push_back(reader.PlayOff(one));
}

}  // namespace

std::string CollageVersion() { return COLLAGE_VERSION; }

void WritePack(const MeasuringPack& pack, const std::filesystem::path& path) {
  AtomicFile file(path);
  PieceWriter pieces(file);
  Writer writer(pieces);
  Json json{{"collage", pack.collage},
            {"machine", pack.machine},
            {"cpu", pack.cpu},
            {"threads", pack.num_threads},
            {"toolchains", ToJson(pack.toolchains)},
            {"compiled", Json::array()},
            {"partitions", Json::array()},
            {"models", Json::array()},
            {"play_offs", Json::array()}};
  for (size_t i = 0; i < pack.compiled.size(); ++i) {
    json["compiled"].push_back(writer.Compiled(pack.compiled[i], pack.compiled_names[i]));
  }
  for (const PackedPartition& partition : pack.partitions) json["partitions"].push_back(writer.Partition(partition));
  for (const PackedModel& model : pack.models) json["models"].push_back(ModelJson(model));
  for (const PackedPlayOff& one : pack.play_offs) json["play_offs"].push_back(writer.PlayOff(one));
  pieces.Finish(kFormat, json);
  file.Commit();
}

MeasuringPack ReadPack(const std::filesystem::path& path) {
  const std::shared_ptr<MappedFile> mapped = MappedFile::Open(path);
  const PieceFile file = ReadPieceFile(mapped->bytes(), kFormat, path);
  MeasuringPack pack;
  pack.owner = mapped;
  try {
    pack.collage = file.index.at("collage").get<std::string>();
    // Another version may find other candidates, and measure in another way.
    if (pack.collage != COLLAGE_VERSION) {
      throw Error(ErrorCategory::kUnavailable,
                  fmt::format("the measuring pack was made by Collage {}, this is {}", pack.collage, COLLAGE_VERSION),
                  path.string(), "make the pack with the version that measures it");
    }
    Reader reader(PieceReader(file.pieces), mapped);
    ReadIndex(file.index, reader, pack);
  } catch (const Json::exception& error) {
    kFormat.Damaged(error.what(), path);
  } catch (const Error& error) {
    if (error.category() == ErrorCategory::kUnavailable) throw;
    kFormat.Damaged(error.message(), path);
  }
  return pack;
}

}  // namespace collage
