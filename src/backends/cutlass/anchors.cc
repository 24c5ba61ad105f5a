// anchors.cc: products of matrices and convolutions of images; a sequence is an image of one row.
#include "backends/cutlass/anchors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "collage/ir/op.h"
#include "ir/ops/relations.h"

namespace collage::cutlass {
namespace {

using matches::AsImage;
using matches::Operand;
using matches::Refusal;

/// The most rows and columns of a kernel that CUTLASS's iterators have bits for.
constexpr int64_t kMostKernel = 32;
/// Asynchronous copies to shared memory have at least so many bytes.
constexpr int kLeastBytes = 4;
constexpr int kMostBytes = 16;
/// The last dimension of a launch has at most so many blocks.
constexpr int64_t kMostImages = 65535;

Element ElementOf(const CallNode& call, const Operand& a, const Operand& b) {
  if (a.dtype != b.dtype) throw Refusal{"multiplies values of one type only"};
  const auto* const type = AsTensorType(call.checked_type());
  const DataType wanted = a.dtype == kInt8 ? kInt32 : a.dtype;
  if (type == nullptr || type->dtype() != wanted) {
    throw Refusal{fmt::format("makes {} of {} only", wanted.ToString(), a.dtype.ToString())};
  }
  if (a.dtype == kFloat32) return Element::kFloat32;
  if (a.dtype == kFloat16) return Element::kFloat16;
  if (a.dtype == kBFloat16) return Element::kBFloat16;
  if (a.dtype == kInt8) return Element::kInt8;
  throw Refusal{"multiplies float32, float16, bfloat16 and int8, got " + a.dtype.ToString()};
}

/// The alignment of a factor whose innermost dimension has that size.
int FactorAlignment(Element element, int64_t size, const char* what) {
  const int alignment = AlignmentOf(BytesOf(element), size);
  if (alignment * BytesOf(element) < kLeastBytes) {
    throw Refusal{fmt::format("wants {} of a multiple of {} bytes, got {} of {}", what, kLeastBytes, size,
                              NamesOf(element)[static_cast<size_t>(element)])};
  }
  return alignment;
}

Place PlaceOf(const Operand& operand, Description& description) {
  return operand.input < 0 ? AddConstant(description, operand.constant) : Place{false, operand.input};
}

Shape AsBatch(Shape shape) {
  if (shape.size() == 2) shape.insert(shape.begin(), 1);
  return shape;
}

/// A product with factors [batch, rows, columns], as stored.
void SetProduct(const Shape& a, const Shape& b, Description& description) {
  const Instance& instance = description.instance;
  ProductSizes& sizes = description.sizes;
  Problem& problem = description.kernel.problem;
  sizes.batch = std::max(a[0], b[0]);
  sizes.m = a[instance.transposes_a ? 2 : 1];
  sizes.k = a[instance.transposes_a ? 1 : 2];
  sizes.n = b[instance.transposes_b ? 1 : 2];
  // Rows of one matrix more, where all of the batch are multiplied by the same.
  if (b[0] == 1 && !instance.transposes_a) {
    sizes.m *= sizes.batch;
    sizes.batch = 1;
  }
  problem.batch = sizes.batch;
  problem.m = sizes.m;
  problem.n = sizes.n;
  problem.k = sizes.k;
  problem.lda = a[2];
  problem.ldb = b[2];
  problem.stride_a = a[0] == 1 ? 0 : a[1] * a[2];
  problem.stride_b = b[0] == 1 ? 0 : b[1] * b[2];
}

/// Throws a Refusal for a convolution that CUTLASS has no kernel for, of whatever type.
void CheckConvolution(const Attrs& attrs, const Operand& data, const Operand& weights) {
  const std::string order = attrs.StringOr("data_layout", "");
  if (!order.empty() && !order.starts_with("NC")) throw Refusal{"takes channels on axis 1 only, got " + order};
  if (!attrs.String("kernel_layout").starts_with("OI")) {
    throw Refusal{"takes weights in the usual order only, got " + attrs.String("kernel_layout")};
  }
  if (attrs.Int("groups") != 1) throw Refusal{fmt::format("convolves in one group only, got {}", attrs.Int("groups"))};
  if (weights.input >= 0) throw Refusal{"takes constant weights only"};
  const Shape w = AsImage(weights.shape);
  if (w[2] > kMostKernel || w[3] > kMostKernel) {
    throw Refusal{fmt::format("has kernels of up to {}x{}, got {}x{}", kMostKernel, kMostKernel, w[2], w[3])};
  }
  if (data.shape[0] > kMostImages) {
    throw Refusal{fmt::format("takes up to {} images, got {}", kMostImages, data.shape[0])};
  }
}

/// Weights [O, I, kernel…] as [O, kernel…, channels], with zeros behind I.
Tensor ChannelsLast(const Tensor& weights, int64_t channels) {
  Shape shape = weights.shape();
  const size_t bytes = weights.dtype().size_bytes();
  const size_t taps = static_cast<size_t>(NumElements(shape) / (shape[0] * shape[1])) * bytes;
  const size_t of_filter = static_cast<size_t>(shape[1]) * taps;
  shape[1] = channels;
  Tensor widened = Tensor::Zeros(shape, weights.dtype());
  for (int64_t filter = 0; filter < shape[0]; ++filter) {
    const auto at = static_cast<size_t>(filter);
    std::memcpy(static_cast<std::byte*>(widened.raw()) + at * static_cast<size_t>(channels) * taps,
                static_cast<const std::byte*>(weights.raw()) + at * of_filter, of_filter);
  }
  Tensor moved = Tensor::Empty(shape, weights.dtype());
  ConvertLayout(widened.raw(), Layout::kPlain, moved.raw(), Layout::kChannelsLast, shape, bytes);
  return moved;
}

}  // namespace

void ReadProduct(const matches::MatchReader& reader, const CallNode& call, Description& description) {
  const Operand a = reader.OperandOf(call.args()[0]), b = reader.OperandOf(call.args()[1]);
  if (a.layout != Layout::kPlain || b.layout != Layout::kPlain) throw Refusal{"multiplies plain matrices only"};
  const bool is_dense = call.op()->name == "nn.dense";
  Instance& instance = description.instance;
  instance.operation = Operation::kProduct;
  instance.element = ElementOf(call, a, b);
  instance.transposes_a = !is_dense && call.attrs().Bool("transpose_a");
  instance.transposes_b = is_dense || call.attrs().Bool("transpose_b");
  if (instance.element == Element::kInt8 && (instance.transposes_a || !instance.transposes_b)) {
    throw Refusal{"multiplies rows of integers by rows only"};
  }
  const int64_t k = a.shape.back();
  SetProduct(is_dense ? Shape{1, NumElements(a.shape) / k, k} : AsBatch(a.shape), AsBatch(b.shape), description);
  instance.alignment_a = FactorAlignment(instance.element, a.shape.back(), "rows");
  instance.alignment_b = FactorAlignment(instance.element, b.shape.back(), "rows");
  description.kernel.a = PlaceOf(a, description);
  description.kernel.b = PlaceOf(b, description);
}

void ReadConvolution(const matches::MatchReader& reader, const CallNode& call, Description& description) {
  const Operand data = reader.OperandOf(call.args()[0]), weights = reader.OperandOf(call.args()[1]);
  const Attrs& attrs = call.attrs();
  CheckConvolution(attrs, data, weights);
  Instance& instance = description.instance;
  instance.operation = Operation::kConvolution;
  instance.element = ElementOf(call, data, weights);
  const Shape x = AsImage(data.shape), w = AsImage(weights.shape);
  const Shape y = AsImage(AsTensorType(call.checked_type())->static_shape());
  const int rank = static_cast<int>(data.shape.size()) - 2;
  const Padding padding = SpatialPadding(attrs, rank);
  const Shape strides = PerDimension(attrs.Ints("strides"), rank),
              dilation = PerDimension(attrs.Ints("dilation"), rank);
  const bool is_row = rank == 1;
  Problem& problem = description.kernel.problem;
  problem.images = x[0];
  problem.channels = x[1];
  if (!IsChannelsLast(data.layout)) {
    // Images are moved, which may as well bring channels to a number that is read 16 bytes at a time.
    const int64_t at_once = kMostBytes / BytesOf(instance.element);
    description.kernel.channels = x[1];
    description.kernel.moved_a = 0;
    problem.channels = (x[1] + at_once - 1) / at_once * at_once;
  }
  problem.height = x[2];
  problem.width = x[3];
  problem.filters = w[0];
  problem.kernel_height = w[2];
  problem.kernel_width = w[3];
  problem.result_height = y[2];
  problem.result_width = y[3];
  // Padding behind the data follows from the size of the result.
  problem.before_height = is_row ? 0 : padding.before[0];
  problem.before_width = padding.before.back();
  problem.stride_height = is_row ? 1 : strides[0];
  problem.stride_width = strides.back();
  problem.dilation_height = is_row ? 1 : dilation[0];
  problem.dilation_width = dilation.back();
  description.sizes = {1, y[0] * y[2] * y[3], w[0], problem.channels * w[2] * w[3]};
  instance.alignment_a = instance.alignment_b = FactorAlignment(instance.element, problem.channels, "channels");
  description.kernel.a = PlaceOf(data, description);
  description.kernel.b = AddConstant(description, ChannelsLast(weights.constant, problem.channels));
}

}  // namespace collage::cutlass
