// kernel.cc: a blob is JSON, and the images behind it.
#include "backends/triton/kernel.h"

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "backends/cuda_driver/blob.h"
#include "collage/support/error.h"
#include "support/json_fields.h"

namespace collage::triton {

template <typename Self, typename Visitor>
requires IsMessage<Self, ReadTensor>
void VisitFields(Self& read, Visitor& visit) {
  visit.Field("is_constant", read.is_constant);
  visit.Field("number", read.number);
  visit.Field("bytes", read.bytes);
}

namespace {

struct ImagePlace {
  std::string kind;
  uint64_t size = 0;
};

struct Header {
  TritonKernel kernel;  ///< but for its images
  std::vector<ImagePlace> images;
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
  visit.Field("architecture", header.kernel.architecture);
  visit.Field("made_by", header.kernel.made_by);
  visit.Field("reads", header.kernel.reads);
  visit.Field("num_parameters", header.kernel.num_parameters);
  visit.Field("grid", header.kernel.grid);
  visit.Field("warps", header.kernel.warps);
  visit.Field("shared_bytes", header.kernel.shared_bytes);
  visit.Field("images", header.images);
}

[[noreturn]] void Fail() { throw Error(ErrorCategory::kCorrupt, "a kernel of Triton cannot be read", "triton"); }

Header HeaderFrom(std::string_view text) {
  try {
    return FromJsonText<Header>(text);
  } catch (const nlohmann::json::exception&) {
    Fail();
  }
}

void CheckRead(const ReadTensor& read, std::span<const Tensor> constants) {
  if (read.number < 0 || read.bytes < 0) Fail();
  if (!read.is_constant) return;
  const auto number = static_cast<size_t>(read.number);
  if (number >= constants.size() || constants[number].size_bytes() < static_cast<size_t>(read.bytes)) Fail();
}

void CheckLaunch(const TritonKernel& kernel) {
  constexpr int64_t kMostBlocks = (int64_t{1} << 31) - 1, kMostRows = 65535, kMostWarps = 32, kMostHidden = 8;
  const auto within = [](int64_t value, int64_t least, int64_t most) { return value >= least && value <= most; };
  const auto num_known = static_cast<int64_t>(kernel.reads.size()) + 1;
  const bool is_right = kernel.grid.size() == 2 && within(kernel.grid[0], 1, kMostBlocks) &&
                        within(kernel.grid[1], 1, kMostRows) && within(kernel.warps, 1, kMostWarps) &&
                        within(kernel.shared_bytes, 0, cuda_driver::kMostSharedBytes) &&
                        within(kernel.num_parameters, num_known, num_known + kMostHidden);
  if (!is_right) Fail();
}

}  // namespace

std::vector<std::byte> ToBlob(const TritonKernel& kernel) {
  Header header{kernel, {}};
  std::vector<std::byte> images;
  for (const cuda_driver::GpuImage& image : kernel.images) {
    header.images.push_back({image.kind, image.bytes.size()});
    images.insert(images.end(), image.bytes.begin(), image.bytes.end());
  }
  return cuda_driver::JoinBlob(ToJsonText(header), images);
}

TritonKernel TritonKernelFrom(std::span<const std::byte> blob, std::span<const Tensor> constants) {
  const auto parts = cuda_driver::SplitBlob(blob);
  if (!parts) Fail();
  Header header = HeaderFrom(parts->text);
  TritonKernel kernel = std::move(header.kernel);
  std::span<const std::byte> rest = parts->rest;
  for (const ImagePlace& image : header.images) {
    if (image.size > rest.size()) Fail();
    const auto bytes = rest.first(image.size);
    // The driver reads texts up to their end.
    if (image.kind == cuda_driver::kPtx && (bytes.empty() || bytes.back() != std::byte{0})) Fail();
    kernel.images.push_back({image.kind, {bytes.begin(), bytes.end()}});
    rest = rest.subspan(image.size);
  }
  if (!rest.empty() || kernel.images.empty()) Fail();
  for (const ReadTensor& read : kernel.reads) CheckRead(read, constants);
  CheckLaunch(kernel);
  return kernel;
}

}  // namespace collage::triton
