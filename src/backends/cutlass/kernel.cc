// kernel.cc: a blob is a length, that many bytes of JSON, and the image.
#include "backends/cutlass/kernel.h"

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "backends/cuda_driver/blob.h"
#include "collage/support/error.h"
#include "support/json_fields.h"

namespace collage::cutlass_interface {

template <typename Self, typename Visitor>
requires IsMessage<Self, Problem>
void VisitFields(Self& problem, Visitor& visit) {
  visit.Field("batch", problem.batch);
  visit.Field("m", problem.m);
  visit.Field("n", problem.n);
  visit.Field("k", problem.k);
  visit.Field("lda", problem.lda);
  visit.Field("ldb", problem.ldb);
  visit.Field("stride_a", problem.stride_a);
  visit.Field("stride_b", problem.stride_b);
  visit.Field("images", problem.images);
  visit.Field("height", problem.height);
  visit.Field("width", problem.width);
  visit.Field("channels", problem.channels);
  visit.Field("filters", problem.filters);
  visit.Field("kernel_height", problem.kernel_height);
  visit.Field("kernel_width", problem.kernel_width);
  visit.Field("result_height", problem.result_height);
  visit.Field("result_width", problem.result_width);
  visit.Field("before_height", problem.before_height);
  visit.Field("before_width", problem.before_width);
  visit.Field("stride_height", problem.stride_height);
  visit.Field("stride_width", problem.stride_width);
  visit.Field("dilation_height", problem.dilation_height);
  visit.Field("dilation_width", problem.dilation_width);
}

}  // namespace collage::cutlass_interface

namespace collage::cutlass {

template <typename Self, typename Visitor>
requires IsMessage<Self, Place>
void VisitFields(Self& place, Visitor& visit) {
  visit.Field("is_constant", place.is_constant);
  visit.Field("number", place.number);
}

template <typename Self, typename Visitor>
requires IsMessage<Self, CutlassKernel>
void VisitFields(Self& kernel, Visitor& visit) {
  visit.Field("architecture", kernel.architecture);
  visit.Field("made_by", kernel.made_by);
  visit.Field("a", kernel.a);
  visit.Field("b", kernel.b);
  visit.Field("bias", kernel.bias);
  visit.Field("other", kernel.other);
  visit.Field("problem", kernel.problem);
  visit.Field("element_bytes", kernel.element_bytes);
  visit.Field("result_bytes", kernel.result_bytes);
  visit.Field("moved_a", kernel.moved_a);
  visit.Field("moved_other", kernel.moved_other);
  visit.Field("moved_result", kernel.moved_result);
  visit.Field("channels", kernel.channels);
  visit.Field("low", kernel.low);
  visit.Field("high", kernel.high);
}

namespace {

[[noreturn]] void Fail() { throw Error(ErrorCategory::kCorrupt, "a kernel of CUTLASS cannot be read", "cutlass"); }

CutlassKernel HeaderFrom(std::string_view text) {
  try {
    return FromJsonText<CutlassKernel>(text);
  } catch (const nlohmann::json::exception&) {
    Fail();
  }
}

/// Bytes of the operands, in floating point: no product of sizes is too large.
struct ReadBytes {
  double a, b, bias, result;
};

ReadBytes BytesReadBy(const CutlassKernel& kernel) {
  const cutlass_interface::Problem& p = kernel.problem;
  const auto number = [](int64_t size) {
    if (size < 0) Fail();
    return static_cast<double>(size);
  };
  const double of_factor = number(kernel.element_bytes), of_result = number(kernel.result_bytes);
  if (p.batch > 0) {
    const double others = number(p.batch) - 1, m = number(p.m), n = number(p.n), k = number(p.k);
    return {(number(p.stride_a) * others + m * k) * of_factor, (number(p.stride_b) * others + k * n) * of_factor,
            n * of_result, number(p.batch) * m * n * of_result};
  }
  const double window = number(p.kernel_height) * number(p.kernel_width);
  return {number(p.images) * number(p.height) * number(p.width) * number(p.channels) * of_factor,
          number(p.filters) * window * number(p.channels) * of_factor, number(p.filters) * of_result,
          number(p.images) * number(p.result_height) * number(p.result_width) * number(p.filters) * of_result};
}

void CheckPlace(const Place& place, double bytes, std::span<const Tensor> constants) {
  if (place.number < Place::kNone) Fail();
  if (!place.is_constant) return;
  if (place.is_none() || static_cast<size_t>(place.number) >= constants.size()) Fail();
  if (static_cast<double>(constants[static_cast<size_t>(place.number)].size_bytes()) < bytes) Fail();
}

}  // namespace

size_t PlaceMoved(CutlassKernel& kernel) {
  constexpr size_t kAlignment = 256;
  const ReadBytes bytes = BytesReadBy(kernel);
  size_t end = 0;
  const auto place = [&](int64_t& moved, double size) {
    if (moved == Place::kNone) return;
    moved = static_cast<int64_t>(end);
    end += (static_cast<size_t>(size) + kAlignment - 1) / kAlignment * kAlignment;
  };
  place(kernel.moved_a, bytes.a);
  place(kernel.moved_other, bytes.result);
  place(kernel.moved_result, bytes.result);
  return end;
}

std::vector<std::byte> ToBlob(const CutlassKernel& kernel) {
  const std::string header = ToJsonText(kernel);
  return cuda_driver::JoinBlob(header, kernel.images.at(0).bytes);
}

CutlassKernel CutlassKernelFrom(std::span<const std::byte> blob, std::span<const Tensor> constants) {
  const auto parts = cuda_driver::SplitBlob(blob);
  if (!parts || parts->rest.empty()) Fail();
  CutlassKernel kernel = HeaderFrom(parts->text);
  if (kernel.a.is_none() || kernel.b.is_none()) Fail();
  const ReadBytes bytes = BytesReadBy(kernel);
  for (const int64_t moved : {kernel.moved_a, kernel.moved_other, kernel.moved_result}) {
    if (moved < Place::kNone) Fail();
  }
  if (kernel.channels < 0 || kernel.channels > kernel.problem.channels) Fail();
  CheckPlace(kernel.a, bytes.a, constants);
  CheckPlace(kernel.b, bytes.b, constants);
  CheckPlace(kernel.bias, bytes.bias, constants);
  CheckPlace(kernel.other, bytes.result, constants);
  kernel.images.push_back({kernel.architecture, {parts->rest.begin(), parts->rest.end()}});
  return kernel;
}

}  // namespace collage::cutlass
