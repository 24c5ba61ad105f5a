// toolchain.cc: the operators that the toolchain takes, and how a partition becomes a kernel's blob.
#include <collage/ir/visitor.h>
#include <collage/target/toolchain_module.h>

#include <cstring>

#include "kernels.h"

namespace scan {
namespace {

using namespace collage;  // NOLINT: this file speaks of little else

/// The operator of a composite, the function that a row of the pattern table matched.
const CallNode& OperatorOf(const Function& function) {
  const CallNode* found = nullptr;
  PostOrder(function->body(), [&](const Expr& expr) {
    const CallNode* call = As<CallNode>(expr);
    if (call != nullptr && call->op() != nullptr) found = call;
  });
  COLLAGE_CHECK(found != nullptr) << "a match without an operator";
  return *found;
}

/// Checks that an operator works along the last axis of a float32 tensor.
Result<void> CheckRows(const CallNode& call) {
  const TensorTypeNode& data = *AsTensorType(call.args()[0]->checked_type());
  for (const DataType dtype : {data.dtype(), AsTensorType(call.checked_type())->dtype()}) {
    if (dtype != kFloat32) return Reason{"works on float32 only, got " + dtype.ToString(), "scan"};
  }
  if (data.rank() == 0) return Reason{"works on rows, not on a scalar", "scan"};
  const int64_t axis = call.attrs().Int("axis");
  if (axis != -1 && axis != data.rank() - 1) return Reason{"works along the last axis only", "scan"};
  return {};
}

Result<void> CheckSum(const Function& composite) {
  const CallNode& call = OperatorOf(composite);
  if (call.attrs().Bool("exclusive")) return Reason{"sums include the element itself", "scan"};
  return CheckRows(call);
}

class Scan : public Toolchain {
 public:
  std::string name() const override { return "scan"; }
  std::string description() const override { return "running sums of rows"; }
  std::string license() const override { return "Apache-2.0"; }
  int priority() const override { return 10; }

  Availability Probe() const override {
    if (const auto missing = WhyModuleMissing({"libcollage_rt_scan.so"})) {
      return {false, "", *missing, "add the folder that it was built in to $COLLAGE_MODULE_PATH"};
    }
    return {true, "1.0", "", ""};
  }

  std::vector<PatternTableEntry> PatternTable() const override {
    return {
        {"scan.sum", "cumsum(*)", CheckSum},
    };
  }

  Result<CompiledPartition> RelayToRuntime(const PartitionRequest& request) const override {
    const CallNode& call = OperatorOf(request.function);
    const Shape shape = AsTensorType(call.args()[0]->checked_type())->static_shape();
    const std::string& op = call.op()->name;
    Blob blob{Operation::kSum, 0, shape.back()};
    if (op != "cumsum") return Reason{"has no kernel for '" + op + "'", name()};
    blob.count = shape.back() == 0 ? 0 : NumElements(shape) / shape.back();
    CompiledPartition partition;
    partition.loader = name();
    partition.blob.resize(sizeof blob);
    std::memcpy(partition.blob.data(), &blob, sizeof blob);
    return partition;
  }
};

std::unique_ptr<Toolchain> MakeScan() { return std::make_unique<Scan>(); }

}  // namespace
}  // namespace scan

COLLAGE_TOOLCHAIN_MODULE(scan::MakeScan)
