// descriptor.h: descriptors of the stand-in for cuDNN, and the rules that hold for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace standin::cudnn {

// cudnnStatus_t.
inline constexpr int kSuccess = 0;
inline constexpr int kBadParam = 2000;
inline constexpr int kNullPointer = 2002;
inline constexpr int kMisaligned = 2003;
inline constexpr int kNotFinalized = 2004;
inline constexpr int kShapeMismatch = 2008;
inline constexpr int kAttributeType = 2010;
inline constexpr int kNotSupported = 3000;
inline constexpr int kArchitectureMismatch = 3007;
inline constexpr int kVersionMismatch = 1003;
inline constexpr int kExecutionFailed = 5000;

struct Program;

/// Ends a call of the library.
struct Failure {
  int status;
  std::string text;
};

// cudnnBackendDescriptorType_t.
enum Kind : int {
  kPointwise = 0,
  kConvolution = 1,
  kEngine = 2,
  kConfiguration = 3,
  kHeuristic = 4,
  kPlan = 5,
  kConvolutionForward = 10,
  kConvolutionBackwardData = 12,
  kPointwiseOperation = 13,
  kGraph = 15,
  kVariantPack = 16,
  kTensor = 17,
  kMatmul = 18,
  kMatmulOperation = 19,
  kReduction = 21,
  kReductionOperation = 22,
  kResample = 24,
  kResampleForward = 25,
  kNormForward = 29,
  kDeviceProperties = 38,
  kSdpaForward = 41,
};

// cudnnBackendAttributeType_t.
enum Type : int {
  kHandle = 0,
  kDataType = 1,
  kBoolean = 2,
  kInt64 = 3,
  kFloat = 4,
  kDouble = 5,
  kVoidPointer = 6,
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

struct Attribute {
  int type = 0;
  int64_t count = 0;
  std::vector<std::byte> bytes;
};

/// A descriptor; `attributes` by cudnnBackendAttributeName_t. Descriptors are copied when they are set, so that one may
/// be destroyed while another names it.
struct Descriptor {
  int kind = 0;
  bool is_final = false;
  std::map<int, Attribute> attributes;
  std::map<int, std::vector<std::shared_ptr<const Descriptor>>> others;
  int engine = -1;                         ///< an engine's number, or its configuration's
  std::string text;                        ///< a final plan's
  std::shared_ptr<const Program> program;  ///< a plan's that was read

  bool Has(int attribute) const { return attributes.contains(attribute); }
  template <typename T>
  std::vector<T> All(int attribute) const {
    const auto found = attributes.find(attribute);
    if (found == attributes.end()) return {};
    std::vector<T> values(found->second.bytes.size() / sizeof(T));  // a fraction is two numbers
    std::memcpy(values.data(), found->second.bytes.data(), found->second.bytes.size());
    return values;
  }
  template <typename T>
  T One(int attribute, T otherwise = T()) const {
    const std::vector<T> values = All<T>(attribute);
    return values.empty() ? otherwise : values.front();
  }
  const Descriptor& Other(int attribute) const { return *others.at(attribute).front(); }
  std::string Characters(int attribute) const {
    const std::vector<char> all = All<char>(attribute);
    return {all.begin(), all.end()};
  }
};

/// Sets an attribute. Throws a Failure where the descriptor is final, or its kind has no such attribute, of that type,
/// in that number.
void Set(Descriptor& descriptor, int attribute, int type, int64_t count, const void* elements);

/// Throws a Failure where something that is required is missing, or sizes do not fit.
void CheckFinal(const Descriptor& descriptor);

}  // namespace standin::cudnn
