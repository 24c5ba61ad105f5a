// build.cc: one function for each operation of the library.
#include "backends/cudnn/loader/build.h"

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

std::vector<Fraction> AsFractions(const Shape& numbers) {
  std::vector<Fraction> fractions;
  for (int64_t number : numbers) fractions.push_back({number, 1});
  return fractions;
}

}  // namespace

BuiltGraph::BuiltGraph(const Graph& graph) {
  for (size_t id = 0; id < graph.values.size(); ++id) MakeTensor(graph.values[id], static_cast<int64_t>(id));
  std::vector<DescriptorPointer> operations;
  for (const Operation& operation : graph.operations) operations.push_back(MakeOperation(operation).pointer());
  graph_.Set<DescriptorPointer>(Attribute::kGraphOperations, Type::kDescriptor,
                                std::span<const DescriptorPointer>(operations));
  graph_.Finalize("a graph of operations");
}

Descriptor& BuiltGraph::Make(DescriptorKind kind) { return *made_.emplace_back(std::make_unique<Descriptor>(kind)); }

void BuiltGraph::MakeTensor(const Value& value, int64_t id) {
  const Descriptor& tensor = Make(DescriptorKind::kTensor);
  tensor.Set(Attribute::kTensorType, Type::kDataType, TypeOf(value.dtype));
  tensor.Set(Attribute::kTensorDimensions, value.dims);
  tensor.Set(Attribute::kTensorStrides, value.strides);
  tensor.Set(Attribute::kTensorId, Type::kInt64, id);
  tensor.Set(Attribute::kTensorAlignment, Type::kInt64, kAlignment);
  if (value.source == Source::kInside) tensor.Set(Attribute::kTensorIsVirtual, Type::kBoolean, true);
  if (value.source == Source::kNumber) tensor.Set(Attribute::kTensorIsByValue, Type::kBoolean, true);
  tensor.Finalize("a tensor");
  tensors_.push_back(&tensor);
}

const Descriptor& BuiltGraph::MakeOperation(const Operation& operation) {
  switch (operation.kind) {
    case Kind::kConvolution:
    case Kind::kTransposedConvolution: return MakeConvolution(operation);
    case Kind::kProduct: return MakeProduct(operation);
    case Kind::kPointwise: return MakePointwise(operation);
    case Kind::kMaxPool:
    case Kind::kAvgPool: return MakePool(operation);
    case Kind::kLayerNorm: return MakeLayerNorm(operation);
    case Kind::kAttention: return MakeAttention(operation);
  }
  throw Error(ErrorCategory::kInternal, "an unknown operation of cuDNN");
}

/// A transposed convolution is the gradient of a convolution by its data.
const Descriptor& BuiltGraph::MakeConvolution(const Operation& operation) {
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
  return made;
}

const Descriptor& BuiltGraph::MakePointwise(const Operation& operation) {
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
  pointwise.Finalize("a function");
  const Descriptor& made = Make(DescriptorKind::kPointwiseOperation);
  made.Set(Attribute::kPointwiseDescriptor, pointwise);
  made.Set(Attribute::kPointwiseX, Tensor(operation.x));
  if (operation.b >= 0) made.Set(Attribute::kPointwiseB, Tensor(operation.b));
  made.Set(Attribute::kPointwiseY, Tensor(operation.y));
  made.Finalize("a function");
  return made;
}

const Descriptor& BuiltGraph::MakeProduct(const Operation& operation) {
  const Descriptor& product = Make(DescriptorKind::kProduct);
  product.Set(Attribute::kProductType, Type::kDataType, kFloat32Type);
  product.Finalize("a product");
  const Descriptor& made = Make(DescriptorKind::kProductOperation);
  made.Set(Attribute::kProductDescriptor, product);
  made.Set(Attribute::kProductA, Tensor(operation.x));
  made.Set(Attribute::kProductB, Tensor(operation.b));
  made.Set(Attribute::kProductC, Tensor(operation.y));
  made.Finalize("a product");
  return made;
}

const Descriptor& BuiltGraph::MakePool(const Operation& operation) {
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
  return made;
}

const Descriptor& BuiltGraph::MakeLayerNorm(const Operation& operation) {
  const Descriptor& made = Make(DescriptorKind::kNormForward);
  made.Set(Attribute::kNormMode, Type::kNormMode, kLayerNormMode);
  made.Set(Attribute::kNormPhase, Type::kNormPhase, kInferencePhase);
  made.Set(Attribute::kNormX, Tensor(operation.x));
  made.Set(Attribute::kNormScale, Tensor(operation.b));
  made.Set(Attribute::kNormBias, Tensor(operation.c));
  made.Set(Attribute::kNormEpsilon, Tensor(operation.d));
  made.Set(Attribute::kNormY, Tensor(operation.y));
  made.Finalize("a normalisation");
  return made;
}

const Descriptor& BuiltGraph::MakeAttention(const Operation& operation) {
  const Descriptor& made = Make(DescriptorKind::kAttentionForward);
  made.Set(Attribute::kAttentionQueries, Tensor(operation.x));
  made.Set(Attribute::kAttentionKeys, Tensor(operation.b));
  made.Set(Attribute::kAttentionValues, Tensor(operation.c));
  made.Set(Attribute::kAttentionScale, Tensor(operation.d));
  made.Set(Attribute::kAttentionResult, Tensor(operation.y));
  made.Finalize("attention");
  return made;
}

}  // namespace collage::cudnn
