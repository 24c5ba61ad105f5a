// numbers.h: enumerations of cuDNN 9's backend API, as far as Collage uses them. Values are those of its documentation.
#pragma once

#include <cstdint>

namespace collage::cudnn {

/// cudnnBackendDescriptorType_t.
enum class DescriptorKind : int {
  kPointwise = 0,
  kConvolution = 1,
  kEngine = 2,
  kEngineConfiguration = 3,
  kEngineHeuristic = 4,
  kExecutionPlan = 5,
  kConvolutionForward = 10,
  kConvolutionBackwardData = 12,
  kPointwiseOperation = 13,
  kOperationGraph = 15,
  kVariantPack = 16,
  kTensor = 17,
  kProduct = 18,
  kProductOperation = 19,
  kReduction = 21,
  kReductionOperation = 22,
  kResample = 24,
  kResampleForward = 25,
  kNormForward = 29,
  kDeviceProperties = 38,
  kAttentionForward = 41,
};

/// cudnnBackendAttributeType_t.
enum class Type : int {
  kHandle = 0,
  kDataType = 1,
  kBoolean = 2,
  kInt64 = 3,
  kFloat = 4,
  kDouble = 5,
  kPointer = 6,
  kConvolutionMode = 7,
  kHeuristicMode = 8,
  kNumericalNote = 11,
  kPointwiseMode = 14,
  kDescriptor = 15,
  kReductionMode = 18,
  kResampleMode = 21,
  kPaddingMode = 22,
  kChar = 24,
  kFraction = 26,
  kNormMode = 27,
  kNormPhase = 28,
};

/// cudnnBackendAttributeName_t.
enum class Attribute : int {
  kPointwiseMode = 0,
  kPointwisePrecision = 1,
  kReluLower = 3,
  kReluUpper = 4,
  kReluSlope = 5,
  kEluAlpha = 6,
  kSwishBeta = 8,
  kConvolutionType = 100,
  kConvolutionMode = 101,
  kConvolutionDilations = 102,
  kConvolutionStrides = 103,
  kConvolutionAfter = 104,
  kConvolutionBefore = 105,
  kConvolutionRank = 106,
  kHeuristicMode = 200,
  kHeuristicGraph = 201,
  kHeuristicResults = 202,
  kHeuristicDevice = 204,
  kConfigurationEngine = 300,
  kPlanHandle = 400,
  kPlanConfiguration = 401,
  kPlanWorkspaceBytes = 402,
  kPlanJson = 405,
  kPlanDevice = 407,
  kForwardAlpha = 700,
  kForwardBeta = 701,
  kForwardConvolution = 702,
  kForwardWeights = 703,
  kForwardX = 704,
  kForwardY = 705,
  kBackwardAlpha = 706,
  kBackwardBeta = 707,
  kBackwardConvolution = 708,
  kBackwardWeights = 709,
  kBackwardDx = 710,
  kBackwardDy = 711,
  kPointwiseDescriptor = 750,
  kPointwiseX = 751,
  kPointwiseB = 752,
  kPointwiseY = 753,
  kGraphOperations = 801,
  kTensorAlignment = 900,
  kTensorType = 901,
  kTensorDimensions = 902,
  kTensorStrides = 903,
  kTensorId = 906,
  kTensorIsVirtual = 907,
  kTensorIsByValue = 908,
  kPackIds = 1000,
  kPackPointers = 1001,
  kPackWorkspace = 1003,
  kEngineNumericalNotes = 1303,
  kProductType = 1500,
  kProductA = 1520,
  kProductB = 1521,
  kProductC = 1522,
  kProductDescriptor = 1523,
  kReductionMode = 1600,
  kReductionType = 1601,
  kReductionX = 1610,
  kReductionY = 1611,
  kReductionDescriptor = 1612,
  kResampleMode = 1700,
  kResampleType = 1701,
  kResampleRank = 1702,
  kResampleAfter = 1703,
  kResampleBefore = 1704,
  kResampleStrides = 1705,
  kResampleWindow = 1706,
  kResamplePadding = 1708,
  kResampleX = 1710,
  kResampleY = 1711,
  kResampleDescriptor = 1716,
  kNormMode = 2000,
  kNormPhase = 2001,
  kNormX = 2002,
  kNormScale = 2005,
  kNormBias = 2006,
  kNormEpsilon = 2007,
  kNormY = 2013,
  kDeviceHandle = 2701,
  kDeviceJson = 2702,
  kAttentionQueries = 2800,
  kAttentionKeys = 2801,
  kAttentionValues = 2802,
  kAttentionResult = 2803,
  kAttentionScale = 2805,
};

// cudnnDataType_t.
inline constexpr int kFloat32Type = 0;
inline constexpr int kFloat16Type = 2;
inline constexpr int kBFloat16Type = 9;

// cudnnPointwiseMode_t.
inline constexpr int kAddMode = 0;
inline constexpr int kMultiplyMode = 1;
inline constexpr int kDivideMode = 6;
inline constexpr int kSubtractMode = 9;
inline constexpr int kExpMode = 13;
inline constexpr int kLogMode = 15;
inline constexpr int kReluMode = 100;
inline constexpr int kTanhMode = 101;
inline constexpr int kSigmoidMode = 102;
inline constexpr int kEluMode = 103;
inline constexpr int kGeluMode = 104;
inline constexpr int kSwishMode = 106;
inline constexpr int kGeluTanhMode = 107;

// Modes of convolutions, reductions, pools, their padding, normalisation and heuristics.
inline constexpr int kCrossCorrelation = 1;
inline constexpr int kSumReduction = 0;
inline constexpr int kMaximumReduction = 3;
inline constexpr int kAverageWithPadding = 2;
inline constexpr int kMaximum = 3;
inline constexpr int kAverageWithoutPadding = 4;
inline constexpr int kZeroPadding = 0;
inline constexpr int kNegativeInfinityPadding = 1;
inline constexpr int kLayerNormMode = 0;
inline constexpr int kInstanceNormMode = 1;
inline constexpr int kInferencePhase = 0;
inline constexpr int kFallbackHeuristic = 2;
inline constexpr int kBestHeuristic = 3;  ///< CUDNN_HEUR_MODE_A

// cudnnBackendNumericalNote_t.
inline constexpr int kUsesTensorCores = 0;
inline constexpr int kConvertsInputsDown = 1;
inline constexpr int kReducesInLowerPrecision = 2;
inline constexpr int kUsesFft = 3;
inline constexpr int kIsNondeterministic = 4;
inline constexpr int kUsesWinograd = 5;
inline constexpr int kNumNumericalNotes = 10;

/// cudnnFraction_t.
struct Fraction {
  int64_t numerator = 0;
  int64_t denominator = 1;
};

}  // namespace collage::cudnn
