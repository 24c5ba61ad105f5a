// analytic_model.cc: work by kind, and rates from probes.
#include "cost/estimator/analytic_model.h"

#include <algorithm>

#include "collage/ir/op.h"
#include "collage/ir/visitor.h"
#include "cost/machine/probes.h"

namespace collage {
namespace {

bool IsContraction(WorkKind kind) { return kind < WorkKind::kElements; }

constexpr const char* kProbeOf[kNumWorkKinds] = {kProductProbe, kConvolutionProbe, kGroupedProbe, kElementsProbe,
                                                 kReductionProbe};

WorkKind KindOf(const CallNode& call) {
  const OpDef& op = *call.op();
  if (op.multiply_adds) {
    if (!op.spatial) return WorkKind::kProduct;
    return call.attrs().IntOr("groups", 1) > 1 ? WorkKind::kGroupedConvolution : WorkKind::kConvolution;
  }
  return op.pattern <= OpPatternKind::kInjective ? WorkKind::kElements : WorkKind::kReduction;
}

double ElementsOf(const Type& type) {
  double elements = 0;
  for (const Type& field : FlattenTensorTypes(type)) {
    elements += static_cast<double>(NumElements(AsTensorType(field)->static_shape()));
  }
  return elements;
}

double AmountOf(const CallNode& call) {
  std::vector<Type> types;
  double read = 0;
  for (const Expr& arg : call.args()) {
    types.push_back(arg->checked_type());
    read += ElementsOf(arg->checked_type());
  }
  if (call.op()->multiply_adds) return call.op()->multiply_adds({types, call.attrs()});
  const double written = ElementsOf(call.checked_type());
  return KindOf(call) == WorkKind::kReduction ? std::max(read, written) : written;
}

}  // namespace

WorkByKind WorkByKindOf(const Function& function) {
  WorkByKind result{WorkOf(function), {}};
  double products = 0;
  PostOrder(function->body(), [&](const Expr& expr) {
    const CallNode* call = As<CallNode>(expr);
    if (call == nullptr || call->op() == nullptr || call->op()->is_reshape) return;
    const double amount = AmountOf(*call);
    result.amounts[static_cast<size_t>(KindOf(*call))] += amount;
    if (IsContraction(KindOf(*call))) products += amount;
  });
  // As many as float32 ones: those of narrow types count less.
  for (size_t kind = 0; kind < kNumWorkKinds; ++kind) {
    if (IsContraction(static_cast<WorkKind>(kind)) && products > 0) {
      result.amounts[kind] *= result.work.multiply_adds / products;
    }
  }
  return result;
}

AnalyticModel::AnalyticModel(const std::function<std::optional<double>(const std::string&)>& probe,
                             const MachineRates& rates, int num_threads, CacheLevel operands)
    : rates_(rates), num_threads_(num_threads), operands_(operands), call_(probe(kSmallestCall).value_or(0)) {
  const auto beyond_call = [&](const std::string& name) -> std::optional<double> {
    const std::optional<double> seconds = probe(name);
    // Less than the call itself is noise, not a rate.
    return seconds ? std::optional(std::max(*seconds - call_, 0.1 * *seconds)) : std::nullopt;
  };
  if (const auto seconds = beyond_call(kMovingProbe)) {
    const double bound = Moving(WorkOf(ProbeNamed(kMovingProbe).make()));
    if (bound > 0) moving_share_ = std::min(1.0, bound / *seconds);
  }
  for (size_t kind = 0; kind < kNumWorkKinds; ++kind) {
    const bool is_contraction = IsContraction(static_cast<WorkKind>(kind));
    const WorkByKind work = WorkByKindOf(ProbeNamed(kProbeOf[kind]).make());
    const std::optional<double> seconds = beyond_call(kProbeOf[kind]);
    // Elements are computed on top of being moved.
    const double moved = is_contraction ? 0 : Moving(work.work) / moving_share_;
    if (seconds) {
      per_unit_[kind] = std::max(*seconds - moved, 0.0) / work.amounts[kind];
    } else if (rates_.multiply_adds > 0) {
      per_unit_[kind] = 1 / (rates_.multiply_adds * kUnknownEfficiency);
    }
  }
}

double AnalyticModel::Seconds(const WorkByKind& work) const {
  double products = 0;
  double elements = 0;
  for (size_t kind = 0; kind < kNumWorkKinds; ++kind) {
    double& sum = IsContraction(static_cast<WorkKind>(kind)) ? products : elements;
    sum += work.amounts[kind] * per_unit_[kind];
  }
  return call_ + std::max(products, Moving(work.work) / moving_share_) + elements;
}

}  // namespace collage
