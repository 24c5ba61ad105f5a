// compiled_store.cc: a file is a line of JSON with names and sizes, then the bytes of source, blob and constants.
#include "lowering/compiled_store.h"

#include <fmt/format.h>

#include <cstring>
#include <string_view>
#include <vector>

#include "collage/ir/structural.h"
#include "support/hash.h"
#include "support/json_fields.h"
#include "target/annotations.h"

namespace collage {

namespace {

// Ends the name of the file that says that a kernel was tried.
constexpr const char* kTried = "tried";

struct StoredConstant {
  Shape shape;
  std::string dtype;
};

template <typename Self, typename Visitor>
requires IsMessage<Self, StoredConstant>
void VisitFields(Self& constant, Visitor& visit) {
  visit.Field("shape", constant.shape);
  visit.Field("dtype", constant.dtype);
}

struct StoredHeader {
  std::string loader;
  size_t workspace_bytes = 0;
  int workspace_memory = 0;
  size_t source_bytes = 0;
  size_t blob_bytes = 0;
  std::vector<StoredConstant> constants;
};

template <typename Self, typename Visitor>
requires IsMessage<Self, StoredHeader>
void VisitFields(Self& header, Visitor& visit) {
  visit.Field("loader", header.loader);
  visit.Field("workspace_bytes", header.workspace_bytes);
  visit.Field("workspace_memory", header.workspace_memory);
  visit.Field("source_bytes", header.source_bytes);
  visit.Field("blob_bytes", header.blob_bytes);
  visit.Field("constants", header.constants);
}

/// Attributes of the function are annotations (target/annotations.h), which no compiler reads.
std::string DigestOf(const Toolchain& toolchain, const PartitionRequest& request, bool constants_by_shape) {
  const Expr bare = MakeFunction(request.function->params(), request.function->body());
  return HexDigest(fmt::format("{}/{}/{}/{}/{}/{}", constants_by_shape ? "like" : "same",
                               StructuralHash(bare, {.constants_by_shape = constants_by_shape}),
                               LayoutsText(request.layouts), request.num_threads, request.schedule, toolchain.name()));
}

std::string ToBytes(const CompiledPartition& compiled) {
  StoredHeader header{compiled.loader,        compiled.workspace_bytes, static_cast<int>(compiled.workspace_memory),
                      compiled.source.size(), compiled.blob.size(),     {}};
  size_t size = compiled.source.size() + compiled.blob.size();
  for (const Tensor& constant : compiled.constants) {
    header.constants.push_back({constant.shape(), constant.dtype().ToString()});
    size += constant.size_bytes();
  }
  std::string bytes = ToJsonText(header) + "\n";
  bytes.reserve(bytes.size() + size);
  bytes += compiled.source;
  bytes.append(reinterpret_cast<const char*>(compiled.blob.data()), compiled.blob.size());
  for (const Tensor& constant : compiled.constants) {
    bytes.append(static_cast<const char*>(constant.raw()), constant.size_bytes());
  }
  return bytes;
}

CompiledPartition FromBytes(std::string_view bytes) {
  const size_t end = bytes.find('\n');
  const auto header = FromJsonText<StoredHeader>(bytes.substr(0, end));
  bytes.remove_prefix(end + 1);
  const auto take = [&](void* to, size_t size) {
    if (size > 0) std::memcpy(to, bytes.data(), size);
    bytes.remove_prefix(size);
  };
  CompiledPartition compiled;
  compiled.loader = header.loader;
  compiled.workspace_bytes = header.workspace_bytes;
  compiled.workspace_memory = static_cast<Memory>(header.workspace_memory);
  compiled.source.resize(header.source_bytes);
  take(compiled.source.data(), header.source_bytes);
  compiled.blob.resize(header.blob_bytes);
  take(compiled.blob.data(), header.blob_bytes);
  for (const StoredConstant& stored : header.constants) {
    const Tensor constant = Tensor::Empty(stored.shape, DataType::FromString(stored.dtype));
    take(constant.raw(), constant.size_bytes());
    compiled.constants.push_back(constant);
  }
  return compiled;
}

std::optional<CompiledPartition> Read(const FileCache& files, const std::string& name) {
  const std::optional<std::string> bytes = files.Find(name);
  if (!bytes) return std::nullopt;
  return FromBytes(*bytes);
}

}  // namespace

CompiledStore::CompiledStore(const std::filesystem::path& folder, int64_t max_bytes) : files_(folder, max_bytes) {}

std::string CompiledStore::NameOf(const Toolchain& toolchain, const PartitionRequest& request) {
  return DigestOf(toolchain, request, /*constants_by_shape=*/false);
}

std::optional<CompiledPartition> CompiledStore::Find(const Toolchain& toolchain,
                                                     const PartitionRequest& request) const {
  return Read(files_, NameOf(toolchain, request));
}

std::optional<CompiledPartition> CompiledStore::FindLike(const Toolchain& toolchain,
                                                         const PartitionRequest& request) const {
  const std::optional<std::string> name = files_.Find(StructureOf(toolchain, request));
  return name ? Read(files_, *name) : std::nullopt;
}

void CompiledStore::Put(const Toolchain& toolchain, const PartitionRequest& request,
                        const CompiledPartition& compiled) {
  const std::string name = NameOf(toolchain, request);
  files_.Put(name, ToBytes(compiled));
  if (!toolchain.Has(Hook::kUpdateConstants)) return;
  const std::string like = StructureOf(toolchain, request);
  if (!files_.Find(like)) files_.Put(like, name);
}

std::string CompiledStore::StructureOf(const Toolchain& toolchain, const PartitionRequest& request) {
  return DigestOf(toolchain, request, /*constants_by_shape=*/true);
}

void CompiledStore::MarkTried(const Toolchain& toolchain, const PartitionRequest& request) {
  files_.Put(StructureOf(toolchain, request) + kTried, kTried);
}

bool CompiledStore::WasTried(const Toolchain& toolchain, const PartitionRequest& request) const {
  return files_.Find(StructureOf(toolchain, request) + kTried).has_value();
}

}  // namespace collage
