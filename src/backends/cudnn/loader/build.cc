// build.cc: one function for each operation of the library.
#include "backends/cudnn/loader/build.h"

#include <utility>

#include "collage/support/error.h"

namespace collage::cudnn {
namespace {

/// Executables place values at multiples of 64 bytes.
constexpr int64_t kAlignment = 16;

int TypeOf(DataType dtype) {
  if (dtype == kFloat16) return kFloat16Type;
  if (dtype == kBFloat16) return kBFloat16Type;
  COLLAGE_CHECK(dtype == kFloat32) << "cuDNN has no " << dtype.ToString();
  return kFloat32Type;
}

int ModeOf(PointwiseMode mode) {
  switch (mode) {
    case PointwiseMode::kAdd: return kAddMode;
    case PointwiseMode::kRelu: return kReluMode;
    case PointwiseMode::kTanh: return kTanhMode;
    case PointwiseMode::kSigmoid: return kSigmoidMode;
    case PointwiseMode::kElu: return kEluMode;
    case PointwiseMode::kGelu: return kGeluMode;
    case PointwiseMode::kGeluTanh: return kGeluTanhMode;
    case PointwiseMode::kSwish: return kSwishMode;
    case PointwiseMode::kHardSwish: break;
  }
  throw Error(ErrorCategory::kInternal, "an unknown function of cuDNN");
}

Shape DenseStrides(const Shape& dims) {
  Shape strides(dims.size(), 1);
  for (size_t i = dims.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * dims[i + 1];
  return strides;
}

std::vector<Fraction> AsFractions(const Shape& numbers) {
  std::vector<Fraction> fractions;
  for (int64_t number : numbers) fractions.push_back({number, 1});
  return fractions;
}

}  // namespace

BuiltGraph::BuiltGraph(const Graph& graph) : values_(graph.values) {
  for (const Value& value : graph.values) tensors_.push_back(&MakeTensor(value, next_id_++));
  for (const Operation& operation : graph.operations) Add(operation);
  graph_.Set<DescriptorPointer>(Attribute::kGraphOperations, Type::kDescriptor,
                                std::span<const DescriptorPointer>(operations_));
  graph_.Finalize("a graph of operations");
}

Descriptor& BuiltGraph::Make(DescriptorKind kind) { return *made_.emplace_back(std::make_unique<Descriptor>(kind)); }

Descriptor& BuiltGraph::MakeTensor(const Value& value, int64_t id) {
  Descriptor& tensor = Make(DescriptorKind::kTensor);
  tensor.Set(Attribute::kTensorType, Type::kDataType, TypeOf(value.dtype));
  tensor.Set(Attribute::kTensorDimensions, value.dims);
  tensor.Set(Attribute::kTensorStrides, value.strides);
  tensor.Set(Attribute::kTensorId, Type::kInt64, id);
  tensor.Set(Attribute::kTensorAlignment, Type::kInt64, kAlignment);
  if (value.source == Source::kInside) tensor.Set(Attribute::kTensorIsVirtual, Type::kBoolean, true);
  if (value.source == Source::kNumber) tensor.Set(Attribute::kTensorIsByValue, Type::kBoolean, true);
  tensor.Finalize("a tensor");
  return tensor;
}

const Descriptor& BuiltGraph::MakeInside(const Shape& dims, DataType dtype) {
  return MakeTensor({.dims = dims, .strides = DenseStrides(dims), .dtype = dtype}, next_id_++);
}

void BuiltGraph::Add(const Operation& operation) {
  switch (operation.kind) {
    case Kind::kConvolution:
    case Kind::kTransposedConvolution: return AddConvolution(operation);
    case Kind::kProduct: return AddProduct(Tensor(operation.x), Tensor(operation.b), Tensor(operation.y));
    case Kind::kPointwise: return AddPointwise(operation);
    case Kind::kMaxPool:
    case Kind::kAvgPool: return AddPool(operation);
    case Kind::kLayerNorm:
    case Kind::kInstanceNorm: return AddNorm(operation);
    case Kind::kAttention: return operation.e < 0 ? AddAttention(operation) : AddMaskedAttention(operation);
  }
  throw Error(ErrorCategory::kInternal, "an unknown operation of cuDNN");
}

/// A transposed convolution is the gradient of a convolution by its data.
void BuiltGraph::AddConvolution(const Operation& operation) {
  const Window& window = operation.window;
  const bool is_forward = operation.kind == Kind::kConvolution;
  const Descriptor& convolution = Make(DescriptorKind::kConvolution);
  convolution.Set(Attribute::kConvolutionType, Type::kDataType, kFloat32Type);
  convolution.Set(Attribute::kConvolutionMode, Type::kConvolutionMode, kCrossCorrelation);
  convolution.Set(Attribute::kConvolutionRank, Type::kInt64, static_cast<int64_t>(window.strides.size()));
  convolution.Set(Attribute::kConvolutionBefore, window.before);
  convolution.Set(Attribute::kConvolutionAfter, window.after);
  convolution.Set(Attribute::kConvolutionStrides, window.strides);
  convolution.Set(Attribute::kConvolutionDilations, window.dilation);
  convolution.Finalize("a convolution");
  const Descriptor& made =
      Make(is_forward ? DescriptorKind::kConvolutionForward : DescriptorKind::kConvolutionBackwardData);
  made.Set(is_forward ? Attribute::kForwardConvolution : Attribute::kBackwardConvolution, convolution);
  made.Set(is_forward ? Attribute::kForwardX : Attribute::kBackwardDy, Tensor(operation.x));
  made.Set(is_forward ? Attribute::kForwardWeights : Attribute::kBackwardWeights, Tensor(operation.b));
  made.Set(is_forward ? Attribute::kForwardY : Attribute::kBackwardDx, Tensor(operation.y));
  made.Set(is_forward ? Attribute::kForwardAlpha : Attribute::kBackwardAlpha, Type::kFloat, 1.0F);
  made.Set(is_forward ? Attribute::kForwardBeta : Attribute::kBackwardBeta, Type::kFloat, 0.0F);
  made.Finalize("a convolution");
  operations_.push_back(made.pointer());
}

void BuiltGraph::AddPointwise(const Operation& operation) {
  const Pointwise& function = operation.pointwise;
  const Descriptor& pointwise = Make(DescriptorKind::kPointwise);
  pointwise.Set(Attribute::kPointwiseMode, Type::kPointwiseMode, ModeOf(function.mode));
  pointwise.Set(Attribute::kPointwisePrecision, Type::kDataType, kFloat32Type);
  if (function.mode == PointwiseMode::kRelu) {
    if (function.low != 0) pointwise.Set(Attribute::kReluLower, Type::kDouble, function.low);
    if (function.high > function.low) pointwise.Set(Attribute::kReluUpper, Type::kDouble, function.high);
    if (function.slope != 0) pointwise.Set(Attribute::kReluSlope, Type::kDouble, function.slope);
  }
  if (function.mode == PointwiseMode::kElu) pointwise.Set(Attribute::kEluAlpha, Type::kDouble, function.alpha);
  if (function.mode == PointwiseMode::kSwish) pointwise.Set(Attribute::kSwishBeta, Type::kDouble, function.alpha);
  AddPointwise(pointwise, Tensor(operation.x), operation.b < 0 ? nullptr : &Tensor(operation.b), Tensor(operation.y));
}

void BuiltGraph::AddPointwise(int mode, const Descriptor& x, const Descriptor* b, const Descriptor& y) {
  const Descriptor& pointwise = Make(DescriptorKind::kPointwise);
  pointwise.Set(Attribute::kPointwiseMode, Type::kPointwiseMode, mode);
  pointwise.Set(Attribute::kPointwisePrecision, Type::kDataType, kFloat32Type);
  AddPointwise(pointwise, x, b, y);
}

void BuiltGraph::AddPointwise(const Descriptor& function, const Descriptor& x, const Descriptor* b,
                              const Descriptor& y) {
  function.Finalize("a function");
  const Descriptor& made = Make(DescriptorKind::kPointwiseOperation);
  made.Set(Attribute::kPointwiseDescriptor, function);
  made.Set(Attribute::kPointwiseX, x);
  if (b != nullptr) made.Set(Attribute::kPointwiseB, *b);
  made.Set(Attribute::kPointwiseY, y);
  made.Finalize("a function");
  operations_.push_back(made.pointer());
}

void BuiltGraph::AddProduct(const Descriptor& a, const Descriptor& b, const Descriptor& y) {
  const Descriptor& product = Make(DescriptorKind::kProduct);
  product.Set(Attribute::kProductType, Type::kDataType, kFloat32Type);
  product.Finalize("a product");
  const Descriptor& made = Make(DescriptorKind::kProductOperation);
  made.Set(Attribute::kProductDescriptor, product);
  made.Set(Attribute::kProductA, a);
  made.Set(Attribute::kProductB, b);
  made.Set(Attribute::kProductC, y);
  made.Finalize("a product");
  operations_.push_back(made.pointer());
}

void BuiltGraph::AddReduction(int mode, const Descriptor& x, const Descriptor& y) {
  const Descriptor& reduction = Make(DescriptorKind::kReduction);
  reduction.Set(Attribute::kReductionMode, Type::kReductionMode, mode);
  reduction.Set(Attribute::kReductionType, Type::kDataType, kFloat32Type);
  reduction.Finalize("a reduction");
  const Descriptor& made = Make(DescriptorKind::kReductionOperation);
  made.Set(Attribute::kReductionDescriptor, reduction);
  made.Set(Attribute::kReductionX, x);
  made.Set(Attribute::kReductionY, y);
  made.Finalize("a reduction");
  operations_.push_back(made.pointer());
}

void BuiltGraph::AddPool(const Operation& operation) {
  const Window& window = operation.window;
  const bool is_max = operation.kind == Kind::kMaxPool;
  const int mean = window.counts_padding ? kAverageWithPadding : kAverageWithoutPadding;
  const Descriptor& pool = Make(DescriptorKind::kResample);
  pool.Set(Attribute::kResampleMode, Type::kResampleMode, is_max ? kMaximum : mean);
  pool.Set(Attribute::kResampleType, Type::kDataType, kFloat32Type);
  pool.Set(Attribute::kResampleRank, Type::kInt64, static_cast<int64_t>(window.kernel.size()));
  pool.Set(Attribute::kResamplePadding, Type::kPaddingMode, is_max ? kNegativeInfinityPadding : kZeroPadding);
  const auto set = [&](Attribute attribute, const Shape& numbers) {
    const std::vector<Fraction> fractions = AsFractions(numbers);
    pool.Set<Fraction>(attribute, Type::kFraction, std::span<const Fraction>(fractions));
  };
  set(Attribute::kResampleWindow, window.kernel);
  set(Attribute::kResampleStrides, window.strides);
  set(Attribute::kResampleBefore, window.before);
  set(Attribute::kResampleAfter, window.after);
  pool.Finalize("a pool");
  const Descriptor& made = Make(DescriptorKind::kResampleForward);
  made.Set(Attribute::kResampleDescriptor, pool);
  made.Set(Attribute::kResampleX, Tensor(operation.x));
  made.Set(Attribute::kResampleY, Tensor(operation.y));
  made.Finalize("a pool");
  operations_.push_back(made.pointer());
}

void BuiltGraph::AddNorm(const Operation& operation) {
  const Descriptor& made = Make(DescriptorKind::kNormForward);
  made.Set(Attribute::kNormMode, Type::kNormMode,
           operation.kind == Kind::kLayerNorm ? kLayerNormMode : kInstanceNormMode);
  made.Set(Attribute::kNormPhase, Type::kNormPhase, kInferencePhase);
  made.Set(Attribute::kNormX, Tensor(operation.x));
  made.Set(Attribute::kNormScale, Tensor(operation.b));
  made.Set(Attribute::kNormBias, Tensor(operation.c));
  made.Set(Attribute::kNormEpsilon, Tensor(operation.d));
  made.Set(Attribute::kNormY, Tensor(operation.y));
  made.Finalize("a normalisation");
  operations_.push_back(made.pointer());
}

void BuiltGraph::AddAttention(const Operation& operation) {
  const Descriptor& made = Make(DescriptorKind::kAttentionForward);
  made.Set(Attribute::kAttentionQueries, Tensor(operation.x));
  made.Set(Attribute::kAttentionKeys, Tensor(operation.b));
  made.Set(Attribute::kAttentionValues, Tensor(operation.c));
  made.Set(Attribute::kAttentionScale, Tensor(operation.d));
  made.Set(Attribute::kAttentionResult, Tensor(operation.y));
  made.Finalize("attention");
  operations_.push_back(made.pointer());
}

/// The operation above has no mask. The library knows attention with one by the operations that it consists of, if
/// these also give the logarithms of the sums of exponents, as training wants them.
void BuiltGraph::AddMaskedAttention(const Operation& operation) {
  const Shape& queries = ValueOf(operation.x).dims;
  Value keys = ValueOf(operation.b);
  std::swap(keys.dims[2], keys.dims[3]);
  std::swap(keys.strides[2], keys.strides[3]);
  const Shape square{queries[0], queries[1], queries[2], keys.dims[3]}, row{queries[0], queries[1], queries[2], 1};
  const auto apply = [this](int mode, const Descriptor& x, const Descriptor* b,
                            const Shape& dims) -> const Descriptor& {
    const Descriptor& y = MakeInside(dims);
    AddPointwise(mode, x, b, y);
    return y;
  };
  const auto reduce = [&](int mode, const Descriptor& x) -> const Descriptor& {
    const Descriptor& y = MakeInside(row);
    AddReduction(mode, x, y);
    return y;
  };
  const Descriptor& product = MakeInside(square);
  AddProduct(Tensor(operation.x), MakeTensor(keys, operation.b), product);
  const Descriptor& scaled = apply(kMultiplyMode, product, &Tensor(operation.d), square);
  const Descriptor& masked = apply(kAddMode, scaled, &Tensor(operation.e), square);
  const Descriptor& most = reduce(kMaximumReduction, masked);
  const Descriptor& exponents = apply(kExpMode, apply(kSubtractMode, masked, &most, square), nullptr, square);
  const Descriptor& sum = reduce(kSumReduction, exponents);
  AddPointwise(kAddMode, most, &apply(kLogMode, sum, nullptr, row), Tensor(operation.sums));
  const Descriptor& weights = MakeInside(square, ValueOf(operation.x).dtype);
  AddPointwise(kDivideMode, exponents, &sum, weights);
  AddProduct(weights, Tensor(operation.c), Tensor(operation.y));
}

}  // namespace collage::cudnn
