// gpu_kernel.cc: a blob is a length, that many bytes of JSON, and the images.
#include "backends/cuda_driver/gpu_kernel.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "backends/cuda_driver/blob.h"
#include "collage/support/error.h"
#include "support/json_fields.h"

namespace collage::cuda_driver {

template <typename Self, typename Visitor>
requires IsMessage<Self, Launch>
void VisitFields(Self& launch, Visitor& visit) {
  visit.Field("function", launch.function);
  visit.Field("count", launch.count);
  visit.Field("grain", launch.grain);
  visit.Field("counter_slot", launch.counter_slot);
  visit.Field("counter_offset", launch.counter_offset);
  visit.Field("counter", launch.counter);
}

template <typename Self, typename Visitor>
requires IsMessage<Self, GpuFunction>
void VisitFields(Self& function, Visitor& visit) {
  visit.Field("name", function.name);
  visit.Field("shared_bytes", function.shared_bytes);
  visit.Field("warps", function.warps);
  visit.Field("is_for_blocks", function.is_for_blocks);
}

namespace {

/// An image's place among the bytes behind the JSON.
struct ImagePlace {
  std::string kind;
  uint64_t size = 0;
};

struct Header {
  std::string architecture;
  std::vector<GpuFunction> functions;
  std::vector<Launch> launches;
  std::vector<ImagePlace> images;
  int num_addresses = 0;
  bool has_workspace = false;
  int64_t scratch_offset = 0;
  int64_t scratch_warps = 0;
  int64_t scratch_bytes = 0;
};

template <typename Self, typename Visitor>
requires IsMessage<Self, ImagePlace>
void VisitFields(Self& image, Visitor& visit) {
  visit.Field("kind", image.kind);
  visit.Field("size", image.size);
}

template <typename Self, typename Visitor>
requires IsMessage<Self, Header>
void VisitFields(Self& header, Visitor& visit) {
  visit.Field("architecture", header.architecture);
  visit.Field("functions", header.functions);
  visit.Field("launches", header.launches);
  visit.Field("images", header.images);
  visit.Field("num_addresses", header.num_addresses);
  visit.Field("has_workspace", header.has_workspace);
  visit.Field("scratch_offset", header.scratch_offset);
  visit.Field("scratch_warps", header.scratch_warps);
  visit.Field("scratch_bytes", header.scratch_bytes);
}

[[noreturn]] void Fail() { throw Error(ErrorCategory::kCorrupt, "a kernel for a GPU cannot be read"); }

Header ReadHeader(std::string_view text) {
  try {
    Header header;
    FromJson(nlohmann::json::parse(text), header);
    return header;
  } catch (const nlohmann::json::exception&) {
    Fail();
  }
}

void CheckLaunches(const GpuKernel& kernel) {
  for (const Launch& launch : kernel.launches) {
    const bool has_function = launch.function >= 0 && static_cast<size_t>(launch.function) < kernel.functions.size();
    const bool has_slot = launch.counter_slot >= -1 && launch.counter_slot < kernel.num_addresses;
    if (!has_function || !has_slot || launch.count < 1 || launch.grain < 1 || launch.counter_offset < 0) Fail();
  }
  for (const GpuFunction& function : kernel.functions) {
    if (function.shared_bytes < 0 || function.shared_bytes > kMostSharedBytes) Fail();
    if (function.warps < 1 || function.warps > kMostWarpsPerBlock) Fail();
  }
  if (kernel.num_addresses < 0 || kernel.num_addresses > kMostAddresses || kernel.scratch_offset < 0 ||
      kernel.scratch_warps < 0)
    Fail();
}

}  // namespace

std::vector<std::byte> ToBlob(const GpuKernel& kernel) {
  Header header{kernel.architecture,  kernel.functions,     kernel.launches,       {},
                kernel.num_addresses, kernel.has_workspace, kernel.scratch_offset, kernel.scratch_warps,
                kernel.scratch_bytes};
  std::vector<std::byte> images;
  for (const GpuImage& image : kernel.images) {
    header.images.push_back({image.kind, image.bytes.size()});
    images.insert(images.end(), image.bytes.begin(), image.bytes.end());
  }
  return JoinBlob(ToJson(header).dump(), images);
}

GpuKernel GpuKernelFrom(std::span<const std::byte> blob) {
  const auto parts = SplitBlob(blob);
  if (!parts) Fail();
  Header header = ReadHeader(parts->text);
  std::span<const std::byte> rest = parts->rest;
  GpuKernel kernel{header.architecture,  std::move(header.functions), std::move(header.launches), {},
                   header.num_addresses, header.has_workspace,        header.scratch_offset,      header.scratch_warps,
                   header.scratch_bytes};
  for (const ImagePlace& image : header.images) {
    if (image.size > rest.size()) Fail();
    const std::span<const std::byte> bytes = rest.first(image.size);
    if (image.kind == kPtx && (bytes.empty() || bytes.back() != std::byte{0})) Fail();
    kernel.images.push_back({image.kind, {bytes.begin(), bytes.end()}});
    rest = rest.subspan(image.size);
  }
  if (!rest.empty()) Fail();
  CheckLaunches(kernel);
  return kernel;
}

}  // namespace collage::cuda_driver
