// rules.cc: which attributes a descriptor has, of which types and how many, and what must fit when it is finalised, as
// the backend API's documentation has it.
#include <algorithm>

#include "descriptor.h"

namespace standin::cudnn {
namespace {

using Ints = std::vector<int64_t>;

constexpr int64_t kMany = 1 << 24;
constexpr int64_t kMostDimensions = 8;

struct Rule {
  int kind;
  int attribute;
  int type;
  int64_t most;
  bool is_required;
};

constexpr Rule kRules[] = {
    {kTensor, 900, kInt64, 1, true},
    {kTensor, 901, kDataType, 1, true},
    {kTensor, 902, kInt64, kMostDimensions, true},
    {kTensor, 903, kInt64, kMostDimensions, true},
    {kTensor, 906, kInt64, 1, true},
    {kTensor, 907, kBoolean, 1, false},
    {kTensor, 908, kBoolean, 1, false},
    {kPointwise, 0, kPointwiseMode, 1, true},
    {kPointwise, 1, kDataType, 1, true},
    {kPointwise, 3, kDouble, 1, false},
    {kPointwise, 4, kDouble, 1, false},
    {kPointwise, 5, kDouble, 1, false},
    {kPointwise, 6, kDouble, 1, false},
    {kPointwise, 8, kDouble, 1, false},
    {kPointwiseOperation, 750, kDescriptor, 1, true},
    {kPointwiseOperation, 751, kDescriptor, 1, true},
    {kPointwiseOperation, 752, kDescriptor, 1, false},
    {kPointwiseOperation, 753, kDescriptor, 1, true},
    {kConvolution, 100, kDataType, 1, true},
    {kConvolution, 101, kConvolutionMode, 1, true},
    {kConvolution, 102, kInt64, kMostDimensions, true},
    {kConvolution, 103, kInt64, kMostDimensions, true},
    {kConvolution, 104, kInt64, kMostDimensions, true},
    {kConvolution, 105, kInt64, kMostDimensions, true},
    {kConvolution, 106, kInt64, 1, true},
    {kConvolutionForward, 700, kFloat, 1, true},
    {kConvolutionForward, 701, kFloat, 1, true},
    {kConvolutionForward, 702, kDescriptor, 1, true},
    {kConvolutionForward, 703, kDescriptor, 1, true},
    {kConvolutionForward, 704, kDescriptor, 1, true},
    {kConvolutionForward, 705, kDescriptor, 1, true},
    {kConvolutionBackwardData, 706, kFloat, 1, true},
    {kConvolutionBackwardData, 707, kFloat, 1, true},
    {kConvolutionBackwardData, 708, kDescriptor, 1, true},
    {kConvolutionBackwardData, 709, kDescriptor, 1, true},
    {kConvolutionBackwardData, 710, kDescriptor, 1, true},
    {kConvolutionBackwardData, 711, kDescriptor, 1, true},
    {kMatmul, 1500, kDataType, 1, true},
    {kMatmulOperation, 1520, kDescriptor, 1, true},
    {kMatmulOperation, 1521, kDescriptor, 1, true},
    {kMatmulOperation, 1522, kDescriptor, 1, true},
    {kMatmulOperation, 1523, kDescriptor, 1, true},
    {kReduction, 1600, kReductionMode, 1, true},
    {kReduction, 1601, kDataType, 1, true},
    {kReductionOperation, 1610, kDescriptor, 1, true},
    {kReductionOperation, 1611, kDescriptor, 1, true},
    {kReductionOperation, 1612, kDescriptor, 1, true},
    {kResample, 1700, kResampleMode, 1, true},
    {kResample, 1701, kDataType, 1, true},
    {kResample, 1702, kInt64, 1, true},
    {kResample, 1703, kFraction, kMostDimensions, true},
    {kResample, 1704, kFraction, kMostDimensions, true},
    {kResample, 1705, kFraction, kMostDimensions, true},
    {kResample, 1706, kFraction, kMostDimensions, true},
    {kResample, 1708, kPaddingMode, 1, true},
    {kResampleForward, 1710, kDescriptor, 1, true},
    {kResampleForward, 1711, kDescriptor, 1, true},
    {kResampleForward, 1716, kDescriptor, 1, true},
    {kNormForward, 2000, kNormMode, 1, true},
    {kNormForward, 2001, kNormPhase, 1, true},
    {kNormForward, 2002, kDescriptor, 1, true},
    {kNormForward, 2005, kDescriptor, 1, true},
    {kNormForward, 2006, kDescriptor, 1, true},
    {kNormForward, 2007, kDescriptor, 1, true},
    {kNormForward, 2013, kDescriptor, 1, true},
    {kSdpaForward, 2800, kDescriptor, 1, true},
    {kSdpaForward, 2801, kDescriptor, 1, true},
    {kSdpaForward, 2802, kDescriptor, 1, true},
    {kSdpaForward, 2803, kDescriptor, 1, true},
    {kSdpaForward, 2805, kDescriptor, 1, false},
    {kGraph, 801, kDescriptor, kMany, true},
    {kHeuristic, 200, kHeuristicMode, 1, true},
    {kHeuristic, 201, kDescriptor, 1, true},
    {kHeuristic, 204, kDescriptor, 1, true},
    {kPlan, 400, kHandle, 1, false},
    {kPlan, 401, kDescriptor, 1, false},
    {kPlan, 405, kChar, kMany, false},
    {kPlan, 407, kDescriptor, 1, false},
    {kVariantPack, 1000, kInt64, kMany, true},
    {kVariantPack, 1001, kVoidPointer, kMany, true},
    {kVariantPack, 1003, kVoidPointer, 1, false},
    {kDeviceProperties, 2701, kHandle, 1, false},
    {kDeviceProperties, 2702, kChar, kMany, false},
};

size_t BytesOf(int type) {
  switch (type) {
    case kBoolean:
    case kChar: return 1;
    case kHandle:
    case kInt64:
    case kDouble:
    case kVoidPointer:
    case kDescriptor: return 8;
    case kFraction: return 16;
    default: return 4;
  }
}

void Require(bool holds, int status, const std::string& text) {
  if (!holds) throw Failure{status, text};
}

Ints DimsOf(const Descriptor& operation, int attribute) { return operation.Other(attribute).All<int64_t>(902); }

void CheckTensor(const Descriptor& tensor) {
  const Ints dims = tensor.All<int64_t>(902), strides = tensor.All<int64_t>(903);
  Require(dims.size() == strides.size(), kBadParam, "Reason: as many strides as dimensions are wanted");
  const auto is_positive = [](int64_t size) { return size > 0; };
  Require(std::ranges::all_of(dims, is_positive) && std::ranges::all_of(strides, is_positive), kBadParam,
          "Reason: dimensions and strides are positive");
  const auto alignment = tensor.One<int64_t>(900);
  Require(alignment > 0 && (alignment & (alignment - 1)) == 0, kBadParam, "Reason: alignment is no power of two");
}

void CheckWindow(const Descriptor& window) {
  const auto rank = static_cast<size_t>(window.One<int64_t>(106));
  for (const int attribute : {102, 103, 104, 105}) {
    const Ints numbers = window.All<int64_t>(attribute);
    const int64_t least = attribute == 104 || attribute == 105 ? 0 : 1;
    Require(numbers.size() == rank && std::ranges::all_of(numbers, [&](int64_t n) { return n >= least; }), kBadParam,
            "Reason: a window's number is missing or too small");
  }
}

/// `y` is what a convolution of `x` gives.
void CheckConvolution(const Descriptor& window, const Ints& x, const Ints& w, const Ints& y) {
  const size_t rank = x.size();
  Require(rank >= 4 && w.size() == rank && y.size() == rank, kShapeMismatch, "Reason: ranks differ");
  Require(window.All<int64_t>(103).size() == rank - 2, kShapeMismatch, "Reason: the window is of another rank");
  const bool fits = x[0] == y[0] && y[1] == w[0] && x[1] % w[1] == 0 && w[0] % (x[1] / w[1]) == 0;
  Require(fits, kShapeMismatch, "Reason: channels do not fit");
  for (size_t d = 0; d + 2 < rank; ++d) {
    const int64_t reach = window.All<int64_t>(102)[d] * (w[d + 2] - 1) + 1;
    const int64_t space = x[d + 2] + window.All<int64_t>(105)[d] + window.All<int64_t>(104)[d] - reach;
    Require(space >= 0 && y[d + 2] == space / window.All<int64_t>(103)[d] + 1, kShapeMismatch,
            "Reason: the result's size does not fit");
  }
}

void CheckPointwise(const Descriptor& operation) {
  const bool is_binary = operation.Other(750).One<int>(0) < 10;
  Require(is_binary == operation.Has(752), kBadParam, "Reason: the function has another number of operands");
  const Ints x = DimsOf(operation, 751), y = DimsOf(operation, 753);
  Require(x == y, kShapeMismatch, "Reason: a function keeps the shape of its operand");
  if (!is_binary) return;
  const Ints b = DimsOf(operation, 752);
  Require(b.size() == x.size(), kShapeMismatch, "Reason: ranks differ");
  for (size_t d = 0; d < x.size(); ++d) {
    Require(b[d] == x[d] || b[d] == 1, kShapeMismatch, "Reason: an operand cannot be broadcast");
  }
}

void CheckMatmul(const Descriptor& operation) {
  const Ints a = DimsOf(operation, 1520), b = DimsOf(operation, 1521), c = DimsOf(operation, 1522);
  const size_t rank = c.size();
  Require(rank >= 3 && a.size() == rank && b.size() == rank, kShapeMismatch,
          "Reason: matrices have ranks of 3 and more");
  Require(a[rank - 2] == c[rank - 2] && b[rank - 1] == c[rank - 1] && a[rank - 1] == b[rank - 2], kShapeMismatch,
          "Reason: matrices do not fit each other");
  for (size_t d = 0; d + 2 < rank; ++d) {
    Require((a[d] == c[d] || a[d] == 1) && (b[d] == c[d] || b[d] == 1), kShapeMismatch, "Reason: batches do not fit");
  }
}

void CheckReduction(const Descriptor& operation) {
  const Ints x = DimsOf(operation, 1610), y = DimsOf(operation, 1611);
  Require(x.size() == y.size(), kShapeMismatch, "Reason: ranks differ");
  for (size_t d = 0; d < x.size(); ++d) {
    Require(y[d] == x[d] || y[d] == 1, kShapeMismatch, "Reason: dimensions are kept or become 1");
  }
}

/// Scales and shifts lie along the channels.
void CheckNorm(const Descriptor& operation) {
  constexpr int kLayerNorm = 0, kInstanceNorm = 1;
  const int mode = operation.One<int>(2000);
  Require(mode == kLayerNorm || mode == kInstanceNorm, kNotSupported, "Reason: the mode is not supported");
  const Ints x = DimsOf(operation, 2002), y = DimsOf(operation, 2013);
  Require(x == y, kShapeMismatch, "Reason: normalisation keeps the shape");
  for (const int vector : {2005, 2006}) {
    const Ints dims = DimsOf(operation, vector);
    Require(dims.size() == x.size() && dims[1] == x[1] && dims[0] == 1, kShapeMismatch,
            "Reason: scales and shifts are numbers for channels");
  }
}

void CheckPool(const Descriptor& operation) {
  const Ints x = DimsOf(operation, 1710), y = DimsOf(operation, 1711);
  const Descriptor& window = operation.Other(1716);
  Require(x.size() == y.size() && x.size() >= 4 && x[0] == y[0] && x[1] == y[1], kShapeMismatch,
          "Reason: a pool keeps batch and channels");
  for (size_t d = 0; d + 2 < x.size(); ++d) {
    const auto at = [&](int attribute) { return window.All<int64_t>(attribute).at(2 * d); };
    const int64_t space = x[d + 2] + at(1704) + at(1703) - at(1706);
    Require(space >= 0 && y[d + 2] == space / at(1705) + 1, kShapeMismatch, "Reason: the result's size does not fit");
  }
}

void CheckSdpa(const Descriptor& operation) {
  const Ints q = DimsOf(operation, 2800), k = DimsOf(operation, 2801), v = DimsOf(operation, 2802);
  const Ints o = DimsOf(operation, 2803);
  Require(q.size() == 4 && k.size() == 4 && v.size() == 4 && o.size() == 4, kShapeMismatch,
          "Reason: heads are of rank 4");
  Require(k[3] == q[3], kShapeMismatch, "Reason: keys are as long as queries");
  Require(k[2] == v[2] && o[2] == q[2] && o[3] == v[3], kShapeMismatch, "Reason: sequences do not fit");
  for (size_t d = 0; d < 2; ++d) {
    Require(k[d] == q[d] && v[d] == q[d] && o[d] == q[d], kShapeMismatch, "Reason: heads do not fit");
  }
}

void CheckPlan(const Descriptor& plan) {
  const bool is_made = plan.Has(401) && plan.Has(407) && !plan.Has(405);
  const bool is_read = plan.Has(405) && plan.Has(400) && !plan.Has(401);
  Require(is_made || is_read, kBadParam,
          "Reason: a plan is made of a configuration and a device, or of a text and a handle");
}

}  // namespace

void Set(Descriptor& descriptor, int attribute, int type, int64_t count, const void* elements) {
  Require(!descriptor.is_final, kBadParam, "Reason: the descriptor is final");
  Require(elements != nullptr, kNullPointer, "Reason: there are no elements");
  const auto* rule = std::ranges::find_if(
      kRules, [&](const Rule& one) { return one.kind == descriptor.kind && one.attribute == attribute; });
  Require(rule != std::end(kRules), kBadParam, "Reason: there is no such attribute");
  Require(rule->type == type, kAttributeType, "Reason: the attribute is of another type");
  Require(count >= 1 && count <= rule->most, kBadParam, "Reason: the attribute has another number of elements");
  Attribute& set = descriptor.attributes[attribute];
  set = {type, count, std::vector<std::byte>(BytesOf(type) * static_cast<size_t>(count))};
  std::memcpy(set.bytes.data(), elements, set.bytes.size());
  if (type != kDescriptor) return;
  auto& others = descriptor.others[attribute];
  others.clear();
  for (const Descriptor* other : descriptor.All<const Descriptor*>(attribute)) {
    Require(other != nullptr, kNullPointer, "Reason: there is no descriptor");
    Require(other->is_final, kNotFinalized, "Reason: a descriptor is not final yet");
    others.push_back(std::make_shared<Descriptor>(*other));
  }
}

void CheckFinal(const Descriptor& descriptor) {
  Require(!descriptor.is_final, kBadParam, "Reason: the descriptor is final");
  for (const Rule& rule : kRules) {
    if (rule.kind != descriptor.kind || !rule.is_required) continue;
    Require(descriptor.Has(rule.attribute), kBadParam,
            "Reason: attribute " + std::to_string(rule.attribute) + " is missing");
  }
  switch (descriptor.kind) {
    case kTensor: return CheckTensor(descriptor);
    case kConvolution: return CheckWindow(descriptor);
    case kConvolutionForward:
      return CheckConvolution(descriptor.Other(702), DimsOf(descriptor, 704), DimsOf(descriptor, 703),
                              DimsOf(descriptor, 705));
    case kConvolutionBackwardData:
      return CheckConvolution(descriptor.Other(708), DimsOf(descriptor, 710), DimsOf(descriptor, 709),
                              DimsOf(descriptor, 711));
    case kPointwiseOperation: return CheckPointwise(descriptor);
    case kMatmulOperation: return CheckMatmul(descriptor);
    case kReductionOperation: return CheckReduction(descriptor);
    case kResampleForward: return CheckPool(descriptor);
    case kNormForward: return CheckNorm(descriptor);
    case kSdpaForward: return CheckSdpa(descriptor);
    case kPlan: return CheckPlan(descriptor);
    case kDeviceProperties:
      return Require(descriptor.Has(2701) != descriptor.Has(2702), kBadParam,
                     "Reason: a device is a handle's or described");
    case kVariantPack:
      return Require(descriptor.attributes.at(1000).count == descriptor.attributes.at(1001).count, kBadParam,
                     "Reason: as many addresses as ids are wanted");
    default: return;
  }
}

}  // namespace standin::cudnn
